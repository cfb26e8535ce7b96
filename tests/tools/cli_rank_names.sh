#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_rank_names.sh - %r in the names of files that the library, the tool and the stand-in driver write or read

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

unset RANK WORLD_SIZE OMPI_COMM_WORLD_RANK PMI_RANK SLURM_PROCID
vector=$top_builddir/examples/vector
there() { # REGEX FILES: those whose names match
	is "$(find "$tmp" -name '[a-z]*' | sed 's,.*/,,' | LC_ALL=C sort | grep -E "^$1\$" | xargs)" "$2" "$3"
}

# --- the library ------------------------------------------------------------------------------------------------------

UMADVISE_TRACE=$tmp/t%r.umtrace.gz UMADVISE_RUN_LOG=$tmp/l%r.umlog "$vector" >"$tmp/out"
there '[tl][0-9].*' "l0.umlog t0.umtrace.gz" "without a launcher the files are rank 0's"
OMPI_COMM_WORLD_RANK=3 UMADVISE_TRACE=$tmp/t%r.umtrace.gz UMADVISE_RUN_LOG=$tmp/l%r.umlog "$vector" >"$tmp/out"
there '[tl]3.*' "l3.umlog t3.umtrace.gz" "a recording and a run log have the rank in their names"
ok "the run log is read" "$UMADVISE" report "$tmp/l3.umlog"
ok "the recording is planned" "$UMADVISE" plan "$tmp/t3.umtrace.gz" --profile v100 --budget 32MiB --no-recompute \
	-o "$tmp/v3.umplan"
cold=$(sed -n 's/.*; \([0-9]*\) of 6 iterations hinted/\1/p' "$tmp/out")
warm=$(OMPI_COMM_WORLD_RANK=3 UMADVISE_PLAN=$tmp/v%r.umplan "$vector" |
	sed -n 's/.*; \([0-9]*\) of 6 iterations hinted/\1/p')
ok "the plan of this rank is read: $warm of 6 iterations hinted, $cold without it" test "$warm" -gt "$cold"
out=$(OMPI_COMM_WORLD_RANK=4 UMADVISE_PLAN=$tmp/v%r.umplan "$vector" 2>&1)
is $? 0 "a rank without a plan runs"
like "$out" "/v4.umplan: " "it says which plan is missing"

# --- under the stand-in driver ----------------------------------------------------------------------------------------

driver=$(cd "$top_builddir/standin" 2>/dev/null && pwd)
# With a sanitizer the preloaded library comes before the sanitizer's.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
# shellcheck disable=SC2086 # CC and flags are lists
if [ -e "$driver/libcuda.so.1" ] && [ -e "$top_builddir/lib/inject/.libs/libumadvise-preload.so" ] &&
	$CC $SANITIZE -std=c11 -D_GNU_SOURCE -I"$top_srcdir/include" -o "$tmp/app" \
		"$top_srcdir/tests/inject/inject_app.c" -pthread; then
	run() { # RANK
		PMI_RANK=$1 "$UMADVISE" dryrun --profile a100 --budget 64MiB --format json -o "$tmp/d%r.json" \
			--log "$tmp/e%r" -- "$UMADVISE" run --record "$tmp/rt%r" --run-log "$tmp/rl%r" \
			--plan "$tmp/rp%r.umplan" -- "$tmp/app" compute 2>"$tmp/err"
	}
	first=$(run 1)
	there '[der].*1.*' "d1.json e1 rl1 rp1.umplan rt1" "dryrun and run write files of this rank"
	for f in d1.json e1 rl1 rp1.umplan rt1; do
		ok "$f has content" test -s "$tmp/$f"
	done
	before=$(stat -c %i "$tmp/rp1.umplan")
	is "$(run 1)" "$first" "with the plan of its rank the program computes the same"
	is "$(stat -c %i "$tmp/rp1.umplan")" "$before" "a plan that is there is read, not written"
	run 2 >"$tmp/out"
	ok "another rank writes a plan of its own" test -s "$tmp/rp2.umplan"
	PMI_RANK=5 LD_LIBRARY_PATH=$driver UMADVISE_DRYRUN_OUT=$tmp/s%r.%p UMADVISE_DRYRUN_LOG=$tmp/s%r.log \
		"$tmp/app" compute >"$tmp/out"
	is "$(find "$tmp" -name 's5.[0-9]*' | wc -l)" 1 "the driver's report has rank and process id in its name"
	ok "the driver's log has the rank in its name" test -s "$tmp/s5.log"
else
	skip 11 "the stand-in driver or the library to preload was not built"
fi
tap_done
