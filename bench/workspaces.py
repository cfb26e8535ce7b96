#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""workspaces.py - adds algorithms with workspaces (`ws`) to the convolutions of a recorded workload (umtrace)

    bench/workspaces.py TRACE [--flops F] [--bandwidth B] [--launch NS] [--only CHOICE [--budget BYTES]] > with.umtrace

An algorithm takes the roofline of a device: multiplications at F flop/s (default: 13e12, of the profile v100), bytes at
B bytes/s (800e9), NS ns per kernel (5000). Of a convolution of N images with C channels and R x R filters to K channels
of P x P points, in fp32:

implicit GEMM   no workspace. The matrix of input patches is formed in registers, its indices are computed again by
                every thread: GEMM's time times 1.5 (--implicit)
GEMM            a table of indices, 4 C R R P P bytes for one image at most; multiplications and bytes as in the trace
Winograd        F(4x4, 3x3), filters of 3x3 and stride 1: 36 products in place of 144 for 16 points (Lavin and Gray,
                CVPR 2016); transformed input, output and filters are the workspace, 36 fp32 a tile and channel
FFT             larger filters of stride 1: tiles of 32x32, of which 33 - R rows and columns are output, as 32 x 17
                complex numbers a tile and channel; 8 flop a complex product, 5 n log2 n of each transform

Products of the last two reach half of the flop rate (--transformed), as they are many small ones.

convolution_backward makes the gradients of input and filters, one after the other, each with such an algorithm: twice
the time, one workspace. Algorithms that are no faster than one with less workspace are left out. --only keeps one of
each op: `smallest`, `fastest`, or `fitting`, the fastest whose workspace and tensors fit into --budget bytes.
"""

import argparse
import gzip
import json
import math
import sys


def opened(path):
    zipped = open(path, 'rb').read(2) == b'\x1f\x8b'
    return (gzip.open if zipped else open)(path, 'rt', encoding='utf-8')


class Device:
    def __init__(self, o):
        self.flops, self.bandwidth, self.launch = o.flops, o.bandwidth, o.launch
        self.rate = o.transformed

    def ns(self, flops, moved, kernels):
        return max(flops / self.flops, moved / self.bandwidth) * 1e9 + kernels * self.launch


class Convolution:
    """Its shape, from the sizes of its tensors in fp32 and the flop of one product."""

    def __init__(self, batch, x, w, y, flops):
        self.n = batch
        self.crr = round(flops / 2 / (y / 4))
        self.k = max(round(w / 4 / self.crr), 1)
        self.points = y / 4 / batch / self.k
        self.c = max(round(x / 4 / batch / self.points), 1)
        square = self.crr / self.c
        side = round(math.sqrt(square))
        self.r = side if abs(side * side - square) < 0.05 * square else 0  # 0: strided
        self.x, self.w, self.y, self.flops = x, w, y, flops

    def transformed(self, device, numbers, tiles, product_flops, transform_flops):
        """A transform of input and filters, products, a transform back; `numbers`: bytes a tile and channel."""
        a, b, c = numbers * tiles * self.c, numbers * self.c * self.k, numbers * tiles * self.k
        ns = (device.ns(transform_flops * tiles * self.c, self.x + a, 1) +
              device.ns(transform_flops * self.c * self.k, self.w + b, 1) +
              device.ns(product_flops * tiles * self.c * self.k / device.rate, a + b + c, 1) +
              device.ns(transform_flops * tiles * self.k, c + self.y, 1))
        return a + b + c, ns

    def algorithms(self, device, implicit):
        gemm = device.ns(self.flops, self.x + self.w + self.y, 1)
        found = [(0, gemm * implicit), (4 * self.crr * self.points, gemm)]
        side = math.sqrt(self.points)
        if self.r == 3:
            tiles = self.n * math.ceil(side / 4) ** 2
            found.append(self.transformed(device, 4 * 36, tiles, 2 * 36, 2 * 6 * 6 * 12))
        elif self.r > 3:
            tiles = self.n * math.ceil(side / (33 - self.r)) ** 2
            found.append(self.transformed(device, 8 * 32 * 17, tiles, 8 * 32 * 17, 5 * 1024 * 10))
        return found


def shape(e, size, batch):
    back = e['name'].endswith('_backward')
    if back:
        y, x, w = e['r'][:3]
    else:
        x, w, y = e['r'][0], e['r'][1], e['w'][0]
    products = 1
    if back and len(e['w']) > 1:
        products = sum(size[t] in (size[x], size[w]) for t in e['w'])  # gradients of input and filters, no bias
    return Convolution(batch, size[x], size[w], size[y], e['flops'] / products), products


def offers(e, size, batch, device, implicit):
    conv, products = shape(e, size, batch)
    kept = []
    for bytes_, ns in sorted(conv.algorithms(device, implicit)):
        ns = round(ns * products)
        if not kept or ns < kept[-1][1]:
            kept.append([math.ceil(bytes_ / 512) * 512, ns])
    return kept


def restrict(e, ws, size, o):
    if o.only != 'fitting':
        return ws[0 if o.only == 'smallest' else -1]
    room = o.budget - sum(size[t] for t in set(e['r'] + e['w']))
    return [a for a in ws if a[0] <= room or a is ws[0]][-1]


def main():
    p = argparse.ArgumentParser(description='Adds algorithms with workspaces to the convolutions of a umtrace.')
    p.add_argument('trace')
    p.add_argument('--flops', type=float, default=13e12)
    p.add_argument('--bandwidth', type=float, default=800e9)
    p.add_argument('--launch', type=float, default=5000)
    p.add_argument('--implicit', type=float, default=1.5)
    p.add_argument('--transformed', type=float, default=0.5)
    p.add_argument('--only', choices=['smallest', 'fastest', 'fitting'])
    p.add_argument('--budget', type=float, default=math.inf)
    o = p.parse_args()
    device, size = Device(o), {}
    with opened(o.trace) as f:
        header = f.readline()
        batch = json.loads(header)['batch']
        sys.stdout.write(header)
        for line in f:
            e = json.loads(line)
            if e['ev'] == 'alloc':
                size[e['t']] = e['bytes']
            if e['ev'] == 'op' and e['name'] in ('convolution', 'convolution_backward'):
                ws = offers(e, size, batch, device, o.implicit)
                e['ws'] = [restrict(e, ws, size, o)] if o.only else ws
                line = json.dumps(e, separators=(',', ':')) + '\n'
            sys.stdout.write(line)


if __name__ == '__main__':
    main()
