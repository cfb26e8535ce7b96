#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# torch.sh - the environment of umadvise run for PyTorch, and what umadvise.torch declares. torch is that of
# fake_torch, which has what umadvise.torch uses of it.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${SANITIZE=}" "${PYTHON3=}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/inject/python.sh"
unset PYTHONPATH PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF PYTORCH_NO_CUDA_MEMORY_CACHING UMADVISE_RUN_PYTORCH
folder=$(cd "$top_builddir/python" 2>/dev/null && pwd -P)
fake=$(cd "$top_srcdir/tests/inject/fake_torch" && pwd)

# --- the environment --------------------------------------------------------------------------------------------------

run() { "$UMADVISE" run "$@"; }
variable() { # NAME ASSIGNMENT-OR-OPTION...: what a program gets
	local name=$1 given=() options=()
	for i in "${@:2}"; do
		case $i in
		-*) options+=("$i") ;;
		*) given+=("$i") ;;
		esac
	done
	env "${given[@]}" "$UMADVISE" run "${options[@]}" -- env | sed -n "s/^$name=//p"
}
is "$(variable PYTHONPATH)" "$folder" "the folder of the modules is in PYTHONPATH"
is "$(variable PYTHONPATH PYTHONPATH=/a:/b)" "$folder:/a:/b" "it is before the user's folders"
is "$(run "$UMADVISE" run env | sed -n 's/^PYTHONPATH=//p')" "$folder" "run in run adds it once"
conf=backend:cudaMallocAsync
is "$(variable PYTORCH_CUDA_ALLOC_CONF)" "$conf" "PyTorch's allocations are the driver's"
is "$(variable PYTORCH_CUDA_ALLOC_CONF --managed=16MiB)" "$conf" "so they are with --managed BYTES"
is "$(variable PYTORCH_CUDA_ALLOC_CONF --managed=all)" "$conf" "so they are with --managed all"
is "$(variable PYTORCH_CUDA_ALLOC_CONF --managed=none)" "" "with --managed none the allocator is not set"
for given in PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64 PYTORCH_CUDA_ALLOC_CONF=; do
	is "$(variable PYTORCH_CUDA_ALLOC_CONF "$given")" "${given#*=}" "$given is kept"
done
for given in PYTORCH_ALLOC_CONF=max_split_size_mb:64 PYTORCH_NO_CUDA_MEMORY_CACHING=1; do
	is "$(variable 'PYTORCH_[A-Z_]*' "$given")" "${given#*=}" "$given is kept, and no other allocator set"
done

# --- loading ----------------------------------------------------------------------------------------------------------

py() { PYTHONPATH=${path-$fake} timeout 60 "$UMADVISE" run -- "$python" "$@" 2>"$tmp/err"; }
hooks='from torch.optim.optimizer import after; print(len(after))'
is "$(py -c "import ctypes; print(ctypes.CDLL(None).umadvise_run_wants())")" 0 \
	"the preloaded library has the functions that modules call"
is "$(py -c "import torch; import torch as again; $hooks")" 1 "importing torch follows the optimizers once"
is "$(py -c "import torch, umadvise.torch; $hooks")" 1 "importing umadvise.torch as well adds nothing"
is "$(py -c "import umadvise.torch; import torch; $hooks")" 1 "so it does before torch"
is "$(py -c "import torch.optim.optimizer; $hooks")" 1 "importing a module of torch follows the optimizers"
loaded="import sys; print([m for m in sys.modules if 'torch' in m or 'umadvise' in m])"
is "$(py -c "$loaded")" "[]" \
	"a program without torch loads nothing"
is "$(PYTHONPATH=$share:$fake "$python" -c "import umadvise.torch, torch, umadvise.torch; $hooks" 2>&1)" 0 \
	"without umadvise run nothing happens"
look='import torch, sys
s = torch.__spec__
print(torch.__file__, type(s.loader).__name__, s.loader is torch.__loader__)
print([f for f in sys.meta_path if type(f).__module__ == "sitecustomize" and f.framework != "cupy"])'
is "$(py -c "$look")" "$(PYTHONPATH=$fake "$python" -c "$look")" "the module torch is the same as without"
ask='import importlib.util; s = importlib.util.find_spec("torch"); print(s.loader.get_filename("torch"), s.origin)'
is "$(py -c "$ask; import torch; $hooks")" "$(PYTHONPATH=$fake "$python" -c "$ask")
1" "asking whether torch is there changes nothing"
none='
try:
	import torch
except ImportError as error:
	print(error, error.name)
'
is "$(path='' py -c "$none")" "No module named 'torch' torch" "without torch the error is the same"
is "$(path='' py -c "$none
import sys
sys.path.append('$fake')
import torch
$hooks")" "No module named 'torch' torch
1" "torch that is found later is followed"
is "$(FAKE_TORCH_FAILS=1 py -c "$none
import torch
$hooks")" "a library of torch is missing None
1" "an error of torch is the program's, and torch that is loaded later is followed"
is "$(cat "$tmp/err")" "" "nothing is printed"

for value in 0 off no false; do
	is "$(UMADVISE_RUN_PYTORCH=$value py -c "import torch; $hooks")" 0 \
		"UMADVISE_RUN_PYTORCH=$value: nothing happens"
done
for value in 1 on yes true; do
	is "$(UMADVISE_RUN_PYTORCH=$value py -c "import torch; $hooks")" 1 \
		"UMADVISE_RUN_PYTORCH=$value: it is followed"
done

other() { # NAME TEXT: another version of torch.optim.optimizer
	cp -r "$fake" "$tmp/$1" && chmod -R u+w "$tmp/$1" && echo "$2" >"$tmp/$1/torch/optim/optimizer.py"
}
other without 'after = ()'
is "$(path=$tmp/without py -c "import torch; $hooks" && cat "$tmp/err")" 0 "a torch without hooks runs as without"
other broken 'raise RuntimeError("a broken module")'
is "$(path=$tmp/broken py -c 'import torch; print("runs")' && cat "$tmp/err")" runs "an error in the module is no error"
cp -r "$fake" "$tmp/modes" && chmod -R u+w "$tmp/modes" && rm "$tmp/modes/torch/utils/_python_dispatch.py"
is "$(path=$tmp/modes py -c "import torch; $hooks" && cat "$tmp/err")" 0 "a torch without modes runs as without"

mkdir "$tmp/own" && echo 'raise ValueError("of the program")' >"$tmp/own/umadvise.py"
is "$(cd "$tmp/own" && py -c "import torch; $hooks" && cat "$tmp/err")" 0 \
	"a program with a module umadvise of its own runs as without"

# --- the user's sitecustomize -----------------------------------------------------------------------------------------

mkdir "$tmp/site"
echo 'print("of the user"); mine = 7' >"$tmp/site/sitecustomize.py"
is "$(path=$tmp/site:$fake py -c "import sitecustomize, torch; print(sitecustomize.mine); $hooks")" "of the user
7
1" "the user's sitecustomize runs, and is the module of that name"
cp -r "$share" "$tmp/second"
is "$(path=$tmp/second:$tmp/site:$fake py -c "import torch; $hooks")" "of the user
1" "a second installation in PYTHONPATH does no harm"
echo 'raise ValueError("of the user")' >"$tmp/site/sitecustomize.py"
PYTHONPATH=$tmp/site:$fake "$python" -c '' 2>"$tmp/want"
is "$(path=$tmp/site:$fake py -c "import torch; $hooks")" 1 "an error in it does not end the program"
is "$(cat "$tmp/err")" "$(cat "$tmp/want")" "Python reports the error as without"
like "$(cat "$tmp/want")" "ValueError: of the user" "the report names it"

# --- operations -------------------------------------------------------------------------------------------------------

$CC -std=c11 -D_GNU_SOURCE -shared -fPIC -I"$top_srcdir/lib" -o "$tmp/declared_log.so" \
	"$top_srcdir/tests/inject/declared_log.c" ||
	{ skip 14 "no library can be built" && tap_done; }
observe() { # WHAT
	UM_TEST_SHORT=1 LD_PRELOAD=$tmp/declared_log.so PYTHONPATH=$share:$fake "$python" \
		"$top_srcdir/tests/inject/torch_steps.py" "$1" 2>&1
}
times() { # N TEXT: that often
	local i
	for ((i = 0; i < $1; i++)); do echo "$2"; done
}
observed='begin 1000
compute
end
iteration
compute'
unobserved='compute
iteration
compute'
is "$(observe addresses)" "begin 1000 2000 3000 4000
compute
end
42
begin
compute
end
42
iteration" "an operation declares the memory of its CUDA tensors, in lists too, and returns its result"
is "$(observe error)" "begin 1000
end
of the program
iteration" "an error of an operation is the program's, and ends it"
is "$(observe ample)" "$(times 2 'compute
compute')
$observed" "no operation declares its memory while all fits"
is "$(observe many)" "$(times 3 "$observed" && times 3 "$unobserved")
0" "three steps are observed, and nothing between steps; iterations go on"
is "$(observe several)" "$(times 6 "$observed" && times 2 "$unobserved")" "three steps of each optimizer are observed"
is "$(observe closure)" "$(times 2 "$unobserved")" "a step that computes gradients is not observed"
is "$(observe step_fails)" "begin 1000
end
of the step
begin 1000
compute
end
$observed
0" "a step that ends with an error leaves its mode to the next one, which ends it"
is "$(observe own_mode)" "$(times 2 'mode
compute
iteration
mode
compute')
left
$observed" "a mode of the program has precedence"
is "$(observe mode_in_step)" "mode
begin 1000
compute
end
iteration
compute
$observed
0" "a mode that the program has in a step runs as without"
is "$(observe compiled)" "$(times 2 "$unobserved")" "a program with compiled functions is not observed"
is "$(observe not_compiled)" "$observed" "a program that has compiled nothing is"
is "$(observe tensor_class)" "pair
begin 5001
compute
end
42
begin 6000
compute
end
42
iteration" "a class of tensors with operations of its own declares those that it calls"
is "$(observe no_mode)" "$(times 2 "$unobserved")" "an observation that fails ends, and the program goes on"
tap_done
