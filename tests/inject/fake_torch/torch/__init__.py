# SPDX-License-Identifier: Apache-2.0
"""What share/python uses of PyTorch, for tests/inject/torch.sh: tensors, operations, dispatch modes, optimizers."""
import os

if os.environ.pop('FAKE_TORCH_FAILS', ''):
    raise ImportError('a library of torch is missing')


def disabled(func, types, args=(), kwargs=None):
    raise TypeError('a class of tensors has no operations of its own')


class Storage:
    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address


class Tensor:
    """At an address of the device; None: a tensor without memory. The address 0: one of the CPU."""

    def __init__(self, address):
        self.address = address
        self.is_cuda = address != 0

    def untyped_storage(self):
        if self.address is None:
            raise NotImplementedError('no storage')
        return Storage(self.address)

    __torch_dispatch__ = staticmethod(disabled)


def call(func, *args, **kwargs):
    """An operation: first the innermost mode, then classes of tensors, then the function."""
    from torch.utils import _python_dispatch

    types = [type(a) for a in args if isinstance(a, Tensor) and type(a) is not Tensor]
    mode = _python_dispatch._get_current_dispatch_mode()
    if mode:
        _python_dispatch.modes.pop()
        try:
            result = mode.__torch_dispatch__(func, types, args, kwargs)
        finally:
            _python_dispatch.modes.append(mode)
        if result is not NotImplemented:
            return result
    for t in types:
        if t.__torch_dispatch__ is not disabled:
            return t.__torch_dispatch__(func, types, args, kwargs)
    return func(*args, **kwargs)
