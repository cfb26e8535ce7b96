#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# examples_mpi.sh - the examples under mpirun: results are those of one process, each rank has hints and files of its
# own, and one that is killed leaves no unfinished file

: "${top_srcdir:=.}" "${top_builddir:=.}" "${MPIRUN=}" "${UMADVISE=}"
. "$top_srcdir/tests/tap.sh"

examples=$top_builddir/examples
[ -x "$examples/cg_mpi" ] || skip_all "no Open MPI"
. "$top_srcdir/tests/release/mpirun.sh"
mkdir "$tmp/files"

# --- results ----------------------------------------------------------------------------------------------------------

for name in cg train; do
	out=$("$examples/${name}_mpi" "$tmp/$name.1" 2>&1)
	is $? 0 "$name: one process runs" || diag "$out"
	is "$(hinted <<<"$out")" 0 "$name: one process has hints"
	for n in 3 4; do
		out=$(UMADVISE_TRACE=$tmp/files/$name$n-%r.umtrace.gz UMADVISE_RUN_LOG=$tmp/files/$name$n-%r.umlog \
			ranks $n "$examples/${name}_mpi" "$tmp/$name.$n" 2>&1)
		is $? 0 "$name: $n ranks run" || diag "$out"
		ok "$name: the result of $n ranks is that of one process, to the last bit" \
			cmp "$tmp/$name.1" "$tmp/$name.$n"
		is "$(hinted <<<"$out" | wc -w)" "$n" "$name: each of $n ranks has hints" || diag "$out"
	done
done
out=$(UMADVISE_STRATEGY=on-demand ranks 4 "$examples/cg_mpi" "$tmp/cg.none" 2>&1)
is $? 0 "cg: 4 ranks run without hints" || diag "$out"
ok "cg: without hints the result is the same" cmp "$tmp/cg.1" "$tmp/cg.none"
like "$out" '^rank 3: 512 rows, .* 0 of 20 iterations hinted' "cg: without hints there are none"

# --- one device for all ranks -----------------------------------------------------------------------------------------

# The budgets of a rank after its iterations, in MiB.
budgets() { # FILE
	gzip -dc "$1" | sed -n 's/.*"shared_budget_bytes":\([0-9]*\).*/\1/p' | awk '{ print $1 / 1048576 }'
}
mkdir -m 700 "$tmp/run"
for n in 2 3; do
	out=$(XDG_RUNTIME_DIR=$tmp/run UMADVISE_SHARE_DEVICE=gpu0 UMADVISE_BUDGET=60MiB \
		UMADVISE_RUN_LOG=$tmp/files/shared$n-%r.umlog ranks $n "$examples/cg_mpi" "$tmp/cg.shared" 100 2>&1)
	is $? 0 "cg: $n ranks on one device run" || diag "$out"
	UMADVISE_BUDGET=60MiB ranks 1 "$examples/cg_mpi" "$tmp/cg.alone" 100 >/dev/null 2>&1
	ok "cg: $n ranks on one device: the result is that of one process" cmp "$tmp/cg.alone" "$tmp/cg.shared"
	for k in 0 1; do
		is "$(budgets "$tmp/files/shared$n-$k.umlog" | tail -n 1)" $((60 / n - 2)) \
			"cg: rank $k of $n has its share of the device, less its buffer"
	done
	is "$(ls -A "$tmp/run")" "" "cg: $n ranks leave no file of the device"
done
# the rank that ends last has the device for itself by then
like "$(for k in 0 1; do "$UMADVISE" report "$tmp/files/shared2-$k.umlog"; done)" \
	"shared with other processes MiB +28.0" "the report says what a rank has at the end"

# --- files ------------------------------------------------------------------------------------------------------------

for name in cg4 train4; do
	for k in 0 1 2 3; do
		ok "$name: the run log of rank $k is read" "$UMADVISE" report "$tmp/files/$name-$k.umlog"
	done
	ok "$name: run logs are read as one run" "$UMADVISE" report --merge --format csv --report processes \
		-o "$tmp/processes" "$tmp/files/$name"-*.umlog
	is "$(tail -n +2 "$tmp/processes" | cut -d, -f1 | sort -u | wc -l)" 4 \
		"$name: the report has a process of each rank"
	ok "$name: the recordings of all ranks are whole" "$UMADVISE" simulate "$tmp/files/$name"-[0-3].umtrace.gz \
		--profile v100 --strategy on-demand
	is "$(find "$tmp/files" -name "$name-[0-3].umtrace.gz" | wc -l)" 4 "$name: each rank has a recording"
done

# --- a rank that is killed --------------------------------------------------------------------------------------------

began() { # Have all ranks written an iteration to their logs?
	[ "$(find "$tmp/files" -name 'kill-*.umlog' -size +1 | wc -l)" -eq 4 ]
}
within() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	until "${@:2}"; do
		[ "$SECONDS" -lt "$end" ] || return
		sleep 0.1
	done
}
gone() { ! kill -0 "${pids[@]}" 2>/dev/null; }

UMADVISE_TRACE=$tmp/files/kill-%r.umtrace UMADVISE_RUN_LOG=$tmp/files/kill-%r-%p.umlog \
	ranks 4 "$examples/train_mpi" "$tmp/killed" 1000000 >"$tmp/out" 2>&1 &
run=$!
ok "four ranks begin" within 60 began
mapfile -t pids < <(find "$tmp/files" -name 'kill-*.umlog' | sed 's/.*-\([0-9]*\)\.umlog/\1/')
named=$(find "$tmp/files" -name '.umadvise-*' | wc -l) # without O_TMPFILE they are left by a killed process
kill -9 "$(find "$tmp/files" -name 'kill-2-*.umlog' | sed 's/.*-\([0-9]*\)\.umlog/\1/')"
wait "$run"
is $(($? == 0 || $? == 124)) 0 "mpirun ends with an error when a rank is killed"
ok "the other ranks end" within 20 gone
is "$(find "$tmp" -name 'kill-*.umtrace' -o -name killed)" "" "no recording and no result appears"
if [ "$named" -eq 0 ]; then
	is "$(find "$tmp/files" -name '.*')" "" "no temporary file is left"
else
	skip 1 "this file system has no files without a name"
fi
for k in 0 1 2 3; do
	ok "the run log of rank $k is read up to its last iteration" "$UMADVISE" report "$tmp/files/kill-$k"-*.umlog
done
tap_done
