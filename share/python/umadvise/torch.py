# SPDX-License-Identifier: Apache-2.0
"""umadvise.torch - declares PyTorch's operations to `umadvise run`

`umadvise run` loads it when the program imports torch; `import umadvise.torch` after that does the same. Outside of
`umadvise run` it does nothing.

Once memory is short, some steps of optimizers are observed: each operation of a step declares its tensors,
because parameters of kernels contain addresses that are not used. The end of a step is the end of an iteration. The
program computes the same as without. If an observation fails, it ends, and the program goes on.

Set UMADVISE_RUN_PYTORCH=off to switch it off.
"""
import ctypes
import os
import sys

from umadvise import library

STEPS = 3  # of each optimizer that are observed
_followed = False


def _library():
    """The functions of the preloaded library; None: it is not there."""
    lib = library()
    if lib is not None:
        lib.umadvise_run_begin.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64]
        for name in 'begin', 'end', 'iteration':
            getattr(lib, f'umadvise_run_{name}').restype = None
    return lib


def _tensors(torch, values):
    """The CUDA tensors among arguments, also in lists of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.is_cuda:
                yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(torch, value)


def _observer(torch, lib):
    """A dispatch mode that declares the tensors of each operation."""
    from torch.utils._python_dispatch import TorchDispatchMode

    def addresses(values):
        found = []
        for tensor in _tensors(torch, values):
            try:
                found.append(tensor.untyped_storage().data_ptr())
            except Exception:  # a tensor without memory
                pass
        return found

    plain = torch.Tensor.__torch_dispatch__

    class Observer(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            # A class of its own, such as DTensor, first: it calls operations on the tensors that it consists of.
            if any(t.__torch_dispatch__ is not plain for t in types):
                return NotImplemented
            kwargs = kwargs or {}
            used = addresses(args) + addresses(kwargs.values())
            lib.umadvise_run_begin((ctypes.c_uint64 * len(used))(*used), len(used))
            try:
                return func(*args, **kwargs)
            finally:
                lib.umadvise_run_end()

    return Observer()


def _compiles():
    """Has torch.compile compiled something? A dispatch mode would make it compile anew."""
    return getattr(sys.modules.get('torch._dynamo.convert_frame'), 'FRAME_COUNTER', 0) > 0


class Steps:
    """Follows the steps of the optimizers.

    Only steps are observed: without gradients, PyTorch does the same with a dispatch mode as without one.
    """

    def __init__(self, torch, lib):
        from torch.utils import _python_dispatch

        self.torch, self.lib = torch, lib
        self.current = _python_dispatch._get_current_dispatch_mode
        self.observer, self.failed, self.seen = None, False, {}

    def leave(self):
        """Ends an observation. A step that ended with an error has left it behind."""
        if self.observer is not None and self.current() is self.observer:
            self.observer.__exit__(None, None, None)
            self.observer = None

    def begins(self, optimizer, args, kwargs):
        """An optimizer makes a step. With a second argument it computes gradients in it. A mode of the program comes
        first."""
        try:
            self.leave()
            if (self.failed or len(args) > 1 or kwargs or self.seen.get(id(optimizer), 0) >= STEPS or
                    not self.lib.umadvise_run_wants() or self.current() is not None or _compiles()):
                return
            observer = _observer(self.torch, self.lib)
            observer.__enter__()
            self.observer = observer
            self.seen[id(optimizer)] = self.seen.get(id(optimizer), 0) + 1
        except Exception:
            self.failed = True

    def ended(self, optimizer, *_):
        self.leave()
        if self.lib.umadvise_run_wants():
            self.lib.umadvise_run_iteration()


def follow(torch):
    """Follows the program's optimizers, once."""
    global _followed
    if _followed:
        return
    _followed = True
    off = os.environ.get('UMADVISE_RUN_PYTORCH', '') in ('0', 'off', 'no', 'false')
    lib = None if off else _library()
    if lib is None:
        return
    try:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        steps = Steps(torch, lib)
        register_optimizer_step_pre_hook(steps.begins)
        register_optimizer_step_post_hook(steps.ended)
    except Exception:  # of another version: no operation declares its tensors
        pass


if 'torch' in sys.modules:
    follow(sys.modules['torch'])
