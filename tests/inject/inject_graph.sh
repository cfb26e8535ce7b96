#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# inject_graph.sh - umadvise run of a program that launches graphs, under dryrun: each way to change a node

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
tap_done
