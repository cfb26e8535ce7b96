#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cupy_steps.py PROGRAM [STEPS] - one of bench/cupy_program.py, and what came out

Prints a line of JSON: the time of each step in ms by events of CUDA, and a digest of the arrays in the end.
"""
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bench'))

import cupy  # noqa: E402
import cupy_program  # noqa: E402


def arrays(state):
    return [state] if isinstance(state, cupy.ndarray) else sum((arrays(s) for s in state), [])


def main():
    steps, n = getattr(cupy_program, sys.argv[1])(), int((sys.argv + [16])[2])
    events = [cupy.cuda.Event() for _ in range(n + 1)]
    state = next(steps)
    events[0].record()
    for event in events[1:]:
        state = next(steps)
        event.record()
    events[-1].synchronize()
    digest = hashlib.sha256()
    for array in arrays(state):
        digest.update(cupy.asnumpy(array).tobytes())
    print(json.dumps({'ms': [round(cupy.cuda.get_elapsed_time(a, b), 3) for a, b in zip(events, events[1:])],
                      'digest': digest.hexdigest()[:16]}))


main()
