#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cupy_program.py - iterates with CuPy over arrays of several sizes, and knows of no library

    bench/cupy_program.py multigrid|krylov|images [STEPS]

multigrid: V-cycles of 4 levels on 4 squares of 2048 x 2048. krylov: 20 vectors of 2 Mi doubles, made orthogonal, and
their sum. images: 18 images of 3 sizes; grey values, edges and masks of them. The last line has the times of the steps
in ms, by events of CUDA.
"""
import sys

import cupy


def smooth(u, f):
    around = cupy.roll(u, 1, 0) + cupy.roll(u, -1, 0) + cupy.roll(u, 1, 1) + cupy.roll(u, -1, 1)
    return u + 0.2 * (around - 4 * u + f)


def cycle(u, f, levels):
    for _ in range(2):
        u = smooth(u, f)
    if levels:
        r = f - 4 * u + cupy.roll(u, 1, 0) + cupy.roll(u, -1, 0) + cupy.roll(u, 1, 1) + cupy.roll(u, -1, 1)
        r = (r[::2, ::2] + r[1::2, ::2] + r[::2, 1::2] + r[1::2, 1::2]) / 4
        e = cycle(cupy.zeros_like(r), r, levels - 1)
        u = u + cupy.repeat(cupy.repeat(e, 2, 0), 2, 1)
    for _ in range(2):
        u = smooth(u, f)
    return u


def multigrid():
    squares = [(cupy.zeros((2048, 2048), cupy.float32), cupy.ones((2048, 2048), cupy.float32)) for _ in range(4)]
    while True:
        yield squares
        for k, (u, f) in enumerate(squares):
            squares[k] = cycle(u, f, 3), f


def krylov():
    x = cupy.ones(2 << 20)
    while True:
        yield x
        vectors = [x / cupy.linalg.norm(x)]
        for _ in range(20):
            w = 2 * vectors[-1] - cupy.roll(vectors[-1], 1) - cupy.roll(vectors[-1], -1)
            for v in vectors:
                w -= cupy.sum(w * v) * v
            vectors.append(w / cupy.linalg.norm(w))
        x = sum(vectors)
        del vectors, v, w


def sharpen(image):
    color = image.astype(cupy.float32) / 255
    grey = color.mean(axis=2)
    grey = (grey - grey.min()) / (grey.max() - grey.min() + 1e-6)
    edges = cupy.abs(grey - cupy.roll(grey, 1, 0)) + cupy.abs(grey - cupy.roll(grey, 1, 1)) > 0.1
    return (cupy.where(edges[..., None], color * 1.5, color).clip(0, 1) * 255).astype(cupy.uint8)


def images():
    groups = [[cupy.ones((side, side, 3), cupy.uint8) for _ in range(6)] for side in (2048, 1536, 1024)]
    while True:
        yield groups
        groups = [[sharpen(image) for image in group] for group in groups]


def main():
    steps, n = globals()[sys.argv[1]](), int((sys.argv + [12])[2])
    events = [cupy.cuda.Event() for _ in range(n + 1)]
    next(steps)
    events[0].record()
    for event in events[1:]:
        next(steps)
        event.record()
    events[-1].synchronize()
    print('ms', *(f'{cupy.cuda.get_elapsed_time(a, b):.1f}' for a, b in zip(events, events[1:])))


if __name__ == '__main__':
    main()
