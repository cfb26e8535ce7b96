#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# report_memory.sh - memory runs out while an export is written, read and told: allocations fail in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

cat >"$tmp/few.umtrace" <<'END'
{"umtrace":1,"source":"by hand","workload":"few"}
{"ev":"alloc","t":0,"bytes":4194304,"name":"x","role":"param"}
{"ev":"iter","n":0}
{"ev":"op","name":"a","r":[0],"w":[0],"ns":1000}
{"ev":"iter","n":1}
{"ev":"op","name":"a","r":[0],"w":[0],"ns":1000}
END
ok "a workload is exported" "$UMADVISE" simulate "$tmp/few.umtrace" --strategy on-demand --export "$tmp/few.sqlite"

# Which of SQLite's allocations fail decides what it says: that there is no memory (4), or that it could not (3).
survives "report survives failing allocations" -x 1 -x 2 "$UMADVISE" report "$tmp/few.sqlite"
# Four turns of two kernels, found by repetition.
{
	head -n 2 "$tmp/few.umtrace"
	for turn in 0 1 2 3; do
		printf '{"ev":"iter","n":%d}\n' "$turn"
		printf '{"ev":"op","name":"%s","r":[0],"w":[0],"ns":1000}\n' a b
	done
} >"$tmp/turns.umtrace"
"$UMADVISE" simulate "$tmp/turns.umtrace" --strategy on-demand --export "$tmp/turns.sqlite" >/dev/null
like "$("$UMADVISE" report "$tmp/turns.sqlite" --iteration repetition)" \
	"^note: process 1: no marked iterations" "the sample has repetitions"
survives "report, as JSON into a file" -x 1 -x 2 "$UMADVISE" report \
	"$tmp/turns.sqlite" --iteration repetition --format json --force-overwrite -o "$tmp/out.json"
cp "$tmp/few.sqlite" "$tmp/more.sqlite"
survives "report, several as one" -x 1 -x 2 "$UMADVISE" report \
	--merge "$tmp/few.sqlite" "$tmp/more.sqlite"
survives "report, as a page" -x 1 -x 2 "$UMADVISE" report \
	"$tmp/few.sqlite" --format html --force-overwrite -o "$tmp/out.html"
survives "report, as a trace" -x 1 -x 2 "$UMADVISE" report \
	"$tmp/few.sqlite" --format perfetto --force-overwrite -o "$tmp/trace.json"
survives "simulate --export, as a trace" -x 1 -x 2 "$UMADVISE" \
	simulate "$tmp/few.umtrace" --strategy on-demand --export "$tmp/x.json"
survives "simulate --export survives failing allocations" -x 1 -x 2 "$UMADVISE" simulate \
	"$tmp/few.umtrace" --strategy on-demand --export "$tmp/x.sqlite"
is "$(ls "$tmp"/x.sqlite?* "$tmp"/x.json?* "$tmp"/out.json?* "$tmp"/out.html?* "$tmp"/trace.json?* 2>/dev/null)" "" \
	"no half file is left behind"
tap_done
