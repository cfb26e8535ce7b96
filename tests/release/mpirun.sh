# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# mpirun.sh - for tests that start ranks of Open MPI, after tap.sh: `ranks 4 PROGRAM ARGUMENT...`
#
# The test is skipped where none start.

: "${MPIRUN=}" "${tmp:?}"
[ -n "$MPIRUN" ] || skip_all "no mpirun"
unset RANK WORLD_SIZE OMPI_COMM_WORLD_RANK PMI_RANK SLURM_PROCID
if [ "$(id -u)" -eq 0 ]; then
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# Open MPI's own memory at exit is not of interest; containers refuse reads of another process's memory.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
export OMPI_MCA_btl_vader_single_copy_mechanism=none
mkdir "$tmp/mpi" && export TMPDIR=$tmp/mpi

ranks() { timeout -k 5 90 "$MPIRUN" -np "$1" --oversubscribe --bind-to none "${@:2}"; }
[ "$(ranks 2 sh -c 'echo $OMPI_COMM_WORLD_RANK' 2>"$tmp/err" | sort | xargs)" = "0 1" ] ||
	skip_all "mpirun starts no ranks: $(grep . "$tmp/err" | head -n 1)"
# Which ranks had hints in more than half of the iterations.
hinted() {
	sed -n 's/^rank \([0-9]*\): .* \([0-9]*\) of \([0-9]*\) iterations hinted.*/\1 \2 \3/p' |
		awk '2 * $2 > $3 { print $1 }' | xargs
}
