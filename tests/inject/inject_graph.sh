#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# inject_graph.sh - umadvise run of a program that launches graphs, under dryrun: each way to change a node, and graphs
# that need more than the budget

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

[ -e "$top_builddir/standin/libcuda.so.1" ] || skip_all "the stand-in driver was not built"
[ -e "$top_builddir/lib/inject/.libs/libumadvise-preload.so" ] || skip_all "the library to preload was not built"
# With a sanitizer the preloaded library comes before the sanitizer's.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
# shellcheck disable=SC2086 # CC and flags are lists
$CC $SANITIZE -std=c11 -D_GNU_SOURCE -I"$top_srcdir/include" -o "$tmp/app" "$top_srcdir/tests/inject/graph_app.c" ||
	skip_all "no program can be built"
dry() { # BUDGET COMMAND...
	"$UMADVISE" dryrun --profile a100 --format json -o "$tmp/report" --budget "$1" -- "${@:2}"
}
run() { # BUDGET OPTION... PROGRAM ARGUMENT...
	dry "$1" "$UMADVISE" run "${@:2}" 2>"$tmp/err"
}

# --- nodes that are changed -------------------------------------------------------------------------------------------

launches() { # the tensors of each launch of a graph
	grep '"name":"graph"' "$tmp/g.umtrace" | sed 's/.*"r":\[\([0-9,]*\)\].*/\1/' | tr '\n' ' '
}
changed() { # SETTER TENSORS: what the second and the third launch use
	is "$(run 2GiB --record "$tmp/g.umtrace" "$tmp/app" "$1")" "$(dry 2GiB "$tmp/app" "$1")" \
		"$1: a graph with a changed node computes the same"
	is "$(launches)" "0,1,2,3,4,5,6 $2 " "$1: a launch uses the tensors of the latest parameters"
}
changed kernel-1 "7,1,2,3,4,5,6 8,1,2,3,4,5,6"
changed kernel "7,1,2,3,4,5,6 8,1,2,3,4,5,6"
changed any "7,1,2,3,4,5,6 8,1,2,3,4,5,6"
changed copy "0,1,7,3,4,5,6 0,1,8,3,4,5,6"
changed any-copy "0,1,7,3,4,5,6 0,1,8,3,4,5,6"
changed fill "0,1,2,3,7,5,6 0,1,2,3,8,5,6"
changed any-fill "0,1,2,3,7,5,6 0,1,2,3,8,5,6"
changed child "0,1,2,3,4,7,6 0,1,2,3,4,8,6"
changed any-child "0,1,2,3,4,7,6 0,1,2,3,4,8,6"
changed enabled "2,3,4,5,6 0,1,2,3,4,5,6"

# --- graphs that need more than the budget ----------------------------------------------------------------------------

field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$tmp/report" | head -n 1; }
steps() { # WAY BUDGET: 40 launches of a graph of 96 MiB
	run "$2" "$tmp/app" steps "$1" 40
}
seen() { grep -o '100 % of [0-9]* launches' "$tmp/err"; }
for way in plain disabled streams; do
	want=$(dry 2GiB "$tmp/app" steps $way 40)
	is "$(UMADVISE_RUN_GRAPHS=whole steps $way 72MiB)" "$want" "$way: launched as it is, a graph computes the same"
	whole=$(field device_ns) whole_faults=$(field faults)
	is "$(seen)" "100 % of 40 launches" "$way: graphs are launched as they are where this is set"
	is "$(steps $way 72MiB)" "$want" "$way: launched by its nodes, a graph computes the same"
	is "$(seen)" "100 % of 400 launches" "$way: its nodes are launched"
	ok "$way: the nodes take less than a third of the time" test $(($(field device_ns) * 3)) -lt "$whole"
	ok "$way: the nodes cause less than a tenth of the page faults" \
		test $(($(field faults) * 10)) -lt "$whole_faults"
done
want=$(dry 2GiB "$tmp/app" steps plain 40)
is "$(steps plain 128MiB) $(seen)" "$want 100 % of 40 launches" "a graph that fits is launched as it is"
UMADVISE_DISABLE=1 steps plain 72MiB >/dev/null
is "$(seen)" "100 % of 40 launches" "without hints graphs are launched as they are"
for way in host cooperative late; do
	is "$(steps $way 72MiB)" "$(dry 2GiB "$tmp/app" steps $way 40)" "$way: the graph computes the same"
	is "$(seen)" "100 % of 40 launches" "$way: a graph with such a node is launched as it is"
done
export UMADVISE_DRYRUN_FAIL=cuMemcpyDtoDAsync_v2:30
is "$(steps plain 72MiB | tail -n 1)" "cuGraphLaunch: 1" "the error of a node is the result of the launch"
export UMADVISE_DRYRUN_FAIL=cuLaunchKernel:1
is "$(steps plain 72MiB) $(seen)" "$want 100 % of 41 launches" \
	"a graph whose first node cannot be launched is launched as it is"
unset UMADVISE_DRYRUN_FAIL
for name in cuGraphGetEdges cuGraphKernelNodeGetAttribute; do
	is "$(UMADVISE_DRYRUN_MISSING=$name steps plain 72MiB)" "$want" "without $name a graph computes the same"
	is "$(grep -o 'of [0-9]* launches' "$tmp/err")" "of 40 launches" "without $name a graph is launched as it is"
done
tap_done
