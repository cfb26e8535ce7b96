# SPDX-License-Identifier: Apache-2.0
import os
import types

log = []
failures = []  # what the next calls of malloc_async do: a status of CUDA, an error, or None
_allocator = None


class CUDARuntimeError(RuntimeError):
    def __init__(self, status):
        super().__init__(f'status {status}')
        self.status = status


class OutOfMemoryError(MemoryError):
    def __init__(self, size, total, limit=0):
        super().__init__(f'{size} of {total}')


runtime = types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError, memGetInfo=lambda: (30, 100))
memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)


class MemoryPool:
    def malloc(self, size):
        log.append(f'pool {size}')
        return size

    def free_all_blocks(self):
        log.append('free')


class Stream:
    """`captures`: False, True, or None after an error of the capture. Only others than the default stream do."""

    ptr, captures = 0, False

    def is_capturing(self):
        if self.ptr < 3:
            raise CUDARuntimeError(906)
        if self.captures is None:
            raise RuntimeError('an error has ended the capture')
        return self.captures

    def synchronize(self):
        log.append('synchronize')


if os.environ.get('FAKE_CUPY_OLD'):
    del Stream.is_capturing
stream = Stream()


def get_current_stream():
    return stream


def malloc_async(size):
    what = failures.pop(0) if failures else None
    log.append(f'async {size}')
    if isinstance(what, int):
        raise CUDARuntimeError(what)
    if what:
        raise what
    return size


def set_allocator(allocator=None):
    global _allocator
    _allocator = allocator


def get_allocator():
    return _allocator


def alloc(size):
    return _allocator(size)
