#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""jax_steps.py [STEPS] - trains a network with JAX, as its users write it, and prints what came out

Twelve layers of width 1024, batches of 2048, Adam, one compiled function for each step. Prints a line of JSON: the time
of each step in ms by the wall, and a digest of the parameters.
"""
import hashlib
import json
import sys
import time

import jax
from jax import numpy as jnp

LAYERS, WIDTH, BATCH = 12, 1024, 2048


def loss(weights, x, y):
    for w in weights:
        x = x + jax.nn.gelu(x @ w)
    return jnp.mean((x - y) ** 2)


@jax.jit
def step(weights, moments, key):
    x, y = jax.random.normal(key, (2, BATCH, WIDTH))
    gradients = jax.grad(loss)(weights, x, y)
    moments = [(0.9 * a + 0.1 * g, 0.99 * b + 0.01 * g * g) for (a, b), g in zip(moments, gradients)]
    return [w - 1e-3 * a / (jnp.sqrt(b) + 1e-8) for w, (a, b) in zip(weights, moments)], moments


def main():
    key, took = jax.random.key(0), []
    weights = [jax.random.normal(k, (WIDTH, WIDTH)) / WIDTH for k in jax.random.split(key, LAYERS)]
    moments = [(jnp.zeros_like(w), jnp.zeros_like(w)) for w in weights]
    for k in jax.random.split(key, int((sys.argv + [16])[1])):
        begin = time.perf_counter()
        weights, moments = jax.block_until_ready(step(weights, moments, k))
        took.append(round(1e3 * (time.perf_counter() - begin), 3))
    digest = hashlib.sha256()
    for w in weights:
        digest.update(bytes(memoryview(jax.device_get(w)).cast('B')))
    assert jax.devices()[0].platform == 'gpu'
    print(json.dumps({'ms': took, 'digest': digest.hexdigest()[:16]}))


main()
