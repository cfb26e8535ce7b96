#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# examples_mpi_cuda.sh - cg_mpi.cu under mpirun and dryrun: its results are those of one process and of cg_mpi.c

: "${top_srcdir:=.}" "${top_builddir:=.}" "${MPIRUN=}" "${NVCC=}" "${SANITIZE=}" "${UMADVISE=}" "${MAKE:=make}"
. "$top_srcdir/tests/tap.sh"

examples=$top_builddir/examples
[ -n "$NVCC" ] || skip_all "no nvcc"
[ -z "$SANITIZE" ] || skip_all "nvcc links no sanitizer"
[ -x "$examples/cg_mpi" ] || skip_all "no Open MPI"
. "$top_srcdir/tests/release/mpirun.sh"
app=$examples/cg_mpi-cuda
ok "cg_mpi.cu is built" "$MAKE" -C "$top_builddir" examples/cg_mpi-cuda || tap_done

# Device memory is less than a rank needs: a quarter of the grid takes 36 MiB.
dry() { # RANKS BUDGET PROGRAM ARGUMENT...
	ranks "$1" "$UMADVISE" dryrun --profile a100 --budget "$2" --format json -o "$tmp/report%r" -- "${@:3}"
}
field() { sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "$tmp/report$1" | head -n 1; }

"$examples/cg_mpi" "$tmp/c" >/dev/null 2>&1
for n in 1 3 4; do
	out=$(dry $n 1GiB "$app" "$tmp/cuda.$n" 2>&1)
	is $? 0 "$n ranks solve the system" || diag "$out"
	ok "the solution of $n ranks is that of cg_mpi.c, to the last bit" cmp "$tmp/c" "$tmp/cuda.$n"
	is "$(hinted <<<"$out" | wc -w)" "$n" "each of $n ranks has hints" || diag "$out"
done
out=$(dry 4 28MiB "$app" "$tmp/small" 2>&1)
is $? 0 "4 ranks solve the system with less memory than they need" || diag "$out"
ok "the solution is the same with less memory" cmp "$tmp/c" "$tmp/small"
for k in 0 1 2 3; do
	is "$(field $k kernels_computed)" "$(field $k kernels)" "rank $k: host functions compute all kernels"
done
for k in 0 1 2 3; do
	with[k]=$(field $k device_ns)
done
out=$(UMADVISE_DISABLE=1 dry 4 28MiB "$app" "$tmp/alone" 2>&1)
is $? 0 "4 ranks solve the system with the driver alone" || diag "$out"
ok "the solution is the same with the driver alone" cmp "$tmp/c" "$tmp/alone"
for k in 0 1 2 3; do
	ok "rank $k is faster than with the driver alone (${with[k]} ns)" test "${with[k]}" -lt "$(field $k device_ns)"
done
out=$(dry 4 1GiB "$app" "$tmp/direct" 20 direct 2>&1)
is $? 0 "4 ranks give MPI device memory" || diag "$out"
ok "the solution is the same where MPI gets device memory" cmp "$tmp/c" "$tmp/direct"
tap_done
