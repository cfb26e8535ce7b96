# SPDX-License-Identifier: Apache-2.0
"""What share/python uses of CuPy, for tests/inject/cupy.sh: allocators, a stream, errors. `log` has what they did."""
import os

from cupy import cuda

log = cuda.log
_pool = cuda.MemoryPool()
cuda.set_allocator((lambda size: log.append(f'own {size}')) if os.environ.get('FAKE_CUPY_SETS') else _pool.malloc)


def get_default_memory_pool():
    return _pool
