# SPDX-License-Identifier: Apache-2.0
"""umadvise.cupy - an allocation of the driver for each array of CuPy, under `umadvise run`

`umadvise run` loads it when the program imports cupy; `import umadvise.cupy` after that does the same. Outside of
`umadvise run` it does nothing.

CuPy's own pool keeps what arrays free and cuts smaller arrays out of it, so that neither the end of an array nor its
death is seen. Here arrays are allocated and freed in stream order by the driver, whose functions `umadvise run`
replaces. The program may set another allocator at any time. CUPY_GPU_MEMORY_LIMIT, which limits CuPy's pool, keeps
that pool; so does its value 0, no limit.
"""
import gc
import os
import sys

from umadvise import library

OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation


def _captures(stream):
    """Graphs are launched again and again, with the memory that was allocated when they were captured."""
    try:
        return stream.ptr > 1 and stream.is_capturing()
    except RuntimeError:  # the capture has failed
        return True


def _allocator(cupy, pool):
    """A function of CuPy's interface. `pool`: the allocator of captures, and of devices without memory pools."""
    error_of_cuda, out_of_memory = cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.memory.OutOfMemoryError
    current, malloc_async = cupy.cuda.get_current_stream, cupy.cuda.malloc_async

    def attempt(size):
        """None: there is no memory."""
        try:
            return malloc_async(size)
        except error_of_cuda as error:
            if error.status != OUT_OF_MEMORY:
                raise
            return None

    def allocate(size):
        stream = current()
        if _captures(stream):
            return pool(size)
        try:
            memory = attempt(size)
            if memory is None:  # as CuPy's pool does
                gc.collect()
                cupy.get_default_memory_pool().free_all_blocks()
                stream.synchronize()
                memory = attempt(size)
        except error_of_cuda:
            raise
        except RuntimeError:
            return pool(size)
        if memory is None:
            free, total = cupy.cuda.runtime.memGetInfo()
            raise out_of_memory(size, total - free)
        return memory

    return allocate


def follow(cupy):
    """Sets the allocator, unless the user has chosen: CuPy's pool with a limit, or another allocator."""
    if (library() is None or os.environ.get('UMADVISE_RUN_MANAGED') == 'none' or
            'CUPY_GPU_MEMORY_LIMIT' in os.environ):
        return
    try:
        pool = cupy.get_default_memory_pool().malloc
        if cupy.cuda.get_allocator() == pool and cupy.cuda.Stream.is_capturing:
            cupy.cuda.set_allocator(_allocator(cupy, pool))
    except Exception:  # of another version: CuPy's own pool stays
        pass


if 'cupy' in sys.modules:
    follow(sys.modules['cupy'])
