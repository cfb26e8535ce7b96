#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bitsandbytes_model.py - trains a small model with a paged optimizer of bitsandbytes, and knows of no library

    bench/bitsandbytes_model.py 32|8 fp32|bf16 [STEPS]

The language model gpt of pytorch_model.py with PagedAdamW32bit or PagedAdamW8bit, and weights of the given type. A
batch is one sequence of 256 tokens, so that state, gradients and weights are most of the memory. The last line has the
times of the steps in ms, by events of CUDA.
"""
import sys

import bitsandbytes
import torch

import pytorch_model

OPTIMIZERS = {'32': bitsandbytes.optim.PagedAdamW32bit, '8': bitsandbytes.optim.PagedAdamW8bit}
TYPES = {'fp32': torch.float32, 'bf16': torch.bfloat16}


def main():
    bits, dtype = sys.argv[1:3]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    torch.manual_seed(0)
    pytorch_model.BATCH = 1
    model = pytorch_model.Gpt().to('cuda', TYPES[dtype])
    optimizer = OPTIMIZERS[bits](model.parameters(), lr=1e-4)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    marks[0].record()
    for n in range(steps):
        pytorch_model.predict(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        marks[n + 1].record()
    torch.cuda.synchronize()
    print('steps', *(f'{a.elapsed_time(b):.3f}' for a, b in zip(marks, marks[1:])))


main()
