#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cupy_stencil.py - heat in many plates, with CuPy as a user would write it: knows of no library

    umadvise run -- python cupy_stencil.py [--plates 8] [--size 2048] [--steps 12]

Every plate is a square of float32. A step computes the new temperatures of each plate from four shifted views, in
temporary arrays, and adds all plates up with a kernel of its own. On a GPU the mean stays 1, as no heat leaves a plate.
NVTX ranges "step" mark the steps. The last line has the time of each step in ms, by events of CUDA.
"""
import argparse

import cupy
from cupyx.profiler import time_range

ADD = cupy.RawKernel(r'''
extern "C" __global__ void add(const float *plate, float *sum, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		sum[i] += plate[i];
}
''', 'add')


def step(plate):
    """The next temperatures of a plate whose edges are joined."""
    around = cupy.roll(plate, 1, 0) + cupy.roll(plate, -1, 0) + cupy.roll(plate, 1, 1) + cupy.roll(plate, -1, 1)
    return plate + 0.2 * (around - 4 * plate)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--plates', type=int, default=8)
    p.add_argument('--size', type=int, default=2048, help='cells of an edge')
    p.add_argument('--steps', type=int, default=12)
    o = p.parse_args()
    cells = o.size * o.size
    plates = [cupy.zeros((o.size, o.size), dtype=cupy.float32) for _ in range(o.plates)]
    for plate in plates:
        plate[::2] = 2
    total = cupy.empty_like(plates[0])
    events = [cupy.cuda.Event() for _ in range(o.steps + 1)]
    events[0].record()
    for i in range(o.steps):
        with time_range('step'):
            total.fill(0)
            for k, plate in enumerate(plates):
                plates[k] = step(plate)
                ADD(((cells + 255) // 256,), (256,), (plates[k], total, cupy.int32(cells)))
        events[i + 1].record()
    mean = float(total.mean()) / o.plates
    print(f'{o.plates} plates of {cells * 4 / 2 ** 20:g} MiB, mean {mean:g}')
    print('ms', *(f'{cupy.cuda.get_elapsed_time(a, b):.1f}' for a, b in zip(events, events[1:])))


main()
