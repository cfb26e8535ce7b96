#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cupy_train.py - trains a deep network with CuPy as a user would write it: knows of no library

    umadvise run -- python cupy_train.py [--layers 24] [--width 1024] [--batch 2048] [--steps 16]

The layers are products with square weights; activations are kept for the way back. NVTX ranges "step" mark the steps.
The last line has the time of each step in ms, by events of CUDA.
"""
import argparse

import cupy
from cupyx.profiler import time_range


def train(weights, moments, x, target):
    """A step of gradient descent with momentum."""
    kept = [x]
    for w in weights:
        kept.append(cupy.maximum(kept[-1] @ w, 0))
    gradient = (kept.pop() - target) / x.shape[0]
    for w, m in zip(weights[::-1], moments[::-1]):
        x = kept.pop()
        down = x.T @ gradient
        gradient = gradient @ w.T * (x > 0)
        m *= 0.9
        m += down
        w -= 0.01 * m


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in ('layers', 24), ('width', 1024), ('batch', 2048), ('steps', 16):
        p.add_argument(f'--{name}', type=int, default=value)
    o = p.parse_args()
    weights = [cupy.full((o.width, o.width), 1 / o.width, dtype=cupy.float32) for _ in range(o.layers)]
    moments = [cupy.zeros_like(w) for w in weights]
    x, target = (cupy.ones((o.batch, o.width), dtype=cupy.float32) for _ in range(2))
    events = [cupy.cuda.Event() for _ in range(o.steps + 1)]
    events[0].record()
    for i in range(o.steps):
        with time_range('step'):
            train(weights, moments, x, target)
        events[i + 1].record()
    events[-1].synchronize()
    print('ms', *(f'{cupy.cuda.get_elapsed_time(a, b):.1f}' for a, b in zip(events, events[1:])))


main()
