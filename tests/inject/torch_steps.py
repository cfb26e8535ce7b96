# SPDX-License-Identifier: Apache-2.0
"""A program of tests/inject/torch.sh: steps of an optimizer with operations between them. What it does is in its
argument; what its operations do is written to standard error, where declared_log.c writes."""
import os
import sys
import types

import torch
from torch.optim.optimizer import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode, modes

optimizer = Optimizer()


def say(text):
    os.write(2, f'{text}\n'.encode())


def compute(*_, **__):
    say('compute')
    return 42


def work():
    torch.call(compute, torch.Tensor(0x1000))


def steps(n, *args):
    """Steps with an operation each, and another operation after each."""
    for _ in range(n):
        optimizer.step(work, *args)
        work()


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        say('mode')
        return torch.call(func, *args, **(kwargs or {}))


def addresses():
    def work():
        say(torch.call(compute, torch.Tensor(0x1000), torch.Tensor(0), [torch.Tensor(0x2000), (torch.Tensor(0x3000),)],
                       5, None, torch.Tensor(None), key=torch.Tensor(0x4000), other='text'))
        say(torch.call(compute))

    optimizer.step(work)


def fail_with(text):
    def fails(*_):
        raise ValueError(text)

    torch.call(fails, torch.Tensor(0x1000))


def error():
    def work():
        try:
            fail_with('of the program')
        except ValueError as e:
            say(e)

    optimizer.step(work)


def ample():
    del os.environ['UM_TEST_SHORT']
    steps(2)
    os.environ['UM_TEST_SHORT'] = '1'
    steps(1)


def many():
    steps(6)
    say(len(modes))


def several():
    other = Optimizer()
    for _ in range(4):
        for each in optimizer, other:
            each.step(work)
            work()


def closure():
    steps(1, work)
    optimizer.step(work, closure=work)
    work()


def step_fails():
    try:
        optimizer.step(lambda: fail_with('of the step'))
    except ValueError as e:
        say(e)
    work()
    steps(1)
    say(len(modes))


def own_mode():
    with Mode():
        steps(2)
    say('left')
    steps(1)


def mode_in_step():
    def in_mode():
        with Mode():
            work()

    optimizer.step(in_mode)
    work()
    steps(1)
    say(len(modes))


def compiled():
    sys.modules['torch._dynamo.convert_frame'] = types.SimpleNamespace(FRAME_COUNTER=1)
    steps(2)


def not_compiled():
    sys.modules['torch._dynamo.convert_frame'] = types.SimpleNamespace(FRAME_COUNTER=0)
    steps(1)


def tensor_class():
    class Pair(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            say('pair')
            return torch.call(func, *(torch.Tensor(a.address + 1) for a in args))

    class Named(torch.Tensor):
        pass

    def work():
        say(torch.call(compute, Pair(0x5000)))
        say(torch.call(compute, Named(0x6000)))

    optimizer.step(work)


def no_mode():
    def fails(self):
        raise RuntimeError('no mode')

    TorchDispatchMode.__enter__ = fails
    steps(2)


globals()[sys.argv[1]]()
