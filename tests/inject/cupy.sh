#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cupy.sh - the allocator that umadvise.cupy sets under umadvise run. cupy is that of fake_cupy, which has what
# umadvise.cupy uses of it.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${PYTHON3=}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/inject/python.sh"
unset PYTHONPATH CUPY_GPU_MEMORY_LIMIT UMADVISE_RUN_MANAGED
fake=$(cd "$top_srcdir/tests/inject/fake_cupy" && pwd)

py() { # PROGRAM [OPTION...]
	PYTHONPATH=${path-$fake} timeout 60 "$UMADVISE" run "${@:2}" -- "$python" -c "$1" 2>"$tmp/err"
}
say='cupy.cuda.alloc(8); print(*cupy.log, sep=", ")'
is "$(py "import cupy; $say")" "async 8" "importing cupy sets the allocator in stream order"
is "$(py "import cupy; a = cupy.cuda.get_allocator(); import umadvise.cupy; print(a is cupy.cuda.get_allocator())")" \
	True "importing umadvise.cupy as well sets nothing more"
is "$(py "import umadvise.cupy, cupy; $say")" "async 8" "so it is before cupy"
is "$(py "import cupy.cuda; import cupy; $say")" "async 8" "importing a module of cupy sets it"
is "$(py "import cupy; $say" --managed 16MiB)" "async 8" "it is set with --managed BYTES"
is "$(py "import cupy; $say" --managed none)" "pool 8" "with --managed none CuPy's pool stays"
is "$(CUPY_GPU_MEMORY_LIMIT=0 py "import cupy; $say")" "pool 8" "with a limit of CuPy's pool, also 0, it stays"
is "$(FAKE_CUPY_SETS=1 py "import cupy; $say")" "own 8" "another allocator stays"
is "$(py "import cupy; cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc); import umadvise.cupy; $say")" \
	"pool 8" "an allocator that the program sets later stays"
is "$(FAKE_CUPY_OLD=1 py "import cupy; $say")" "pool 8" "with a CuPy that asks no stream for a capture, its pool stays"
is "$(PYTHONPATH=$share:$fake "$python" -c "import umadvise.cupy, cupy, umadvise.cupy; $say" 2>&1)" "pool 8" \
	"without umadvise run CuPy's pool stays"
is "$(path=$fake:$top_srcdir/tests/inject/fake_torch py "import torch, cupy; $say
from torch.optim.optimizer import after; print(len(after))")" "async 8
1" "a program of CuPy and PyTorch has both"
is "$(path='' py '
import sys
sys.path = [p for p in sys.path if "-packages" not in p]
try:
	import cupy
except ImportError as error:
	print(error, error.name)')" "No module named 'cupy' cupy" "without cupy the error is the same"
is "$(cat "$tmp/err")" "" "nothing is printed"

case='import cupy; c = cupy.cuda'
is "$(py "$case; c.stream.ptr = 7; $say")" "async 8" "a stream that does not capture is as the default stream"
is "$(py "$case; c.stream.ptr = 7; c.stream.captures = True; $say")" "pool 8" \
	"what a capture allocates is of CuPy's pool, as the graph is launched with that memory"
is "$(py "$case; c.stream.ptr = 7; c.stream.captures = None; $say")" "pool 8" "so it is in a capture that has failed"
is "$(py "$case; c.failures[:] = [RuntimeError('no pools')]; $say")" "async 8, pool 8" \
	"a device without memory pools has CuPy's"
is "$(py "$case; c.failures[:] = [2]; $say")" "async 8, free, synchronize, async 8" \
	"without memory the allocation is repeated after unused memory was freed"
is "$(py "$case; c.failures[:] = [2, RuntimeError('no pools')]; $say")" "async 8, free, synchronize, async 8, pool 8" \
	"so it is repeated in CuPy's pool if the device has none any more"
error='
try:
	c.alloc(8)
except Exception as error:
	print(type(error).__name__, error, error.__context__)'
is "$(py "$case; c.failures[:] = [2, 2]$error")" "OutOfMemoryError 8 of 70 None" \
	"without memory the error is CuPy's, with what the device has allocated"
is "$(py "$case; c.failures[:] = [700]$error")" "CUDARuntimeError status 700 None" "other errors are those of CUDA"
is "$(py "$case; c.failures[:] = [2, 700]$error")" "CUDARuntimeError status 700 None" "so they are when it is repeated"
tap_done
