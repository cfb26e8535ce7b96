#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytorch.py PROGRAM fp32|bf16 - one of bench/pytorch_model.py, in the size that is asked for, and what came out

    tests/gpu/pytorch.py gpt fp32 [--width 1024] [--layers 8] [--batch 8] [--steps 16] [--compile]

Prints a line of JSON: the time of each step in ms by events of CUDA, the most bytes allocated, and a digest of the
parameters and of what the last step returned. Operations are chosen so that two runs come to the same bits.
"""
import argparse
import hashlib
import json
import os
import sys
import warnings

os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bench'))

import pytorch_model as model  # noqa: E402
import torch  # noqa: E402


def main():
    p = argparse.ArgumentParser()
    p.add_argument('program', choices=model.PROGRAMS)
    p.add_argument('dtype', choices=['fp32', 'bf16'])
    for name, default in ('width', 1024), ('layers', 8), ('batch', 8), ('steps', 16):
        p.add_argument('--' + name, type=int, default=default)
    p.add_argument('--compile', action='store_true', help='the network by torch.compile')
    o = p.parse_args()
    model.WIDTH, model.LAYERS, model.BATCH = o.width, o.layers, o.batch
    warnings.simplefilter('ignore')
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.manual_seed(0)
    create, program, *settings = model.PROGRAMS[o.program]
    network = create().to('cuda')
    called = torch.compile(network) if o.compile else network
    step = program(called, torch.autocast('cuda', torch.bfloat16, enabled=o.dtype == 'bf16'), *settings)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(o.steps + 1)]
    marks[0].record()
    for n in range(o.steps):
        last = step(n)
        marks[n + 1].record()
    torch.cuda.synchronize()
    digest = hashlib.sha256()
    for tensor in *network.parameters(), last:
        digest.update(tensor.detach().cpu().numpy().tobytes())
    print(json.dumps({'ms': [round(a.elapsed_time(b), 3) for a, b in zip(marks, marks[1:])],
                      'peak': torch.cuda.max_memory_allocated(), 'digest': digest.hexdigest()[:16]}))


main()
