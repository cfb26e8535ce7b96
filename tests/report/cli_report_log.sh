#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise report of the library's own log: what it has and what it does not, a log that was cut, what is no log; the
# variable that makes one.
: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"

example=$top_builddir/examples/cg # two contexts, one after the other: the log is the second one's
export UMADVISE_RUN_LOG=$tmp/a.umlog
ok "a program runs with UMADVISE_RUN_LOG" "$example"
unset UMADVISE_RUN_LOG
report() { "$UMADVISE" report "$@"; }

out=$(report "$tmp/a.umlog")
is $? 0 "its log is read"
like "${out//$'\n'/ }" 'note: .*has no  *kernels, faults and migrations' "it says what a log does not have"
like "$out" 'hints issued +[1-9]' "the library's counts are shown"
like "$out" ' iteration 19 ' "the report has the iterations of the log"
like "$out" '^  A-north +8\.0 +1  +[a-z]' "tensors, without the columns that a log does not fill"
like "$out" '  product +80 +560 +1440\.0 +160\.0' "operations as they were announced"
like "$out" '  prefetch  A-east +[1-9]' "the report has the hints of the log"
like "$out" '  faults .*not recorded +--cuda-um-gpu-page-faults=true' \
	"the report says what would have recorded the rest"
unlike() { if [[ $1 =~ $2 ]]; then ok "$3" false; else ok "$3" true; fi; }
unlike "$out" 'slower than planned' "a plan that takes what it predicts is no finding"
zcat "$tmp/a.umlog" | sed 's/"played_ns":/&9/' >"$tmp/slow.umlog"
slow=$(report "$tmp/slow.umlog")
like "$slow" '  high +slower than planned: ' "a plan that takes more than it predicts is a finding"
like "${slow//$'\n'/ }" 'an iteration under the plan takes [0-9.]+ ms, predicted [0-9.]+ ms' "it has both times"
sed 's/"hints_issued":/"hints_refused":7,&/' "$tmp/slow.umlog" >"$tmp/refused.umlog"
slow=$(report "$tmp/refused.umlog")
like "${slow//$'\n'/ }" '; [0-9]+ +hints +of +the +run +were +refused' "it names refused hints as the cause"
unlike "$out" 'summary:|Nsight Systems' "no sums of nothing"

if python3 -c 'import json' 2>/dev/null; then
	is "$(report "$tmp/a.umlog" --format json | python3 -c '
import json, sys
d = json.load(sys.stdin)
L = d["library"]
print(d["schema"], d["schema_version"], L["ops"], L["iterations"], L["strategy"], L["why_no_hints"], L["errors"],
      len(d["iterations"]), d["iterations"][3]["gpu_page_faults"], sum(a["announced"] for a in d["announced"]),
      d["summary"]["missing"])')" \
		"umreport/1 umlog/1 122 20 lookahead None 0 20 None 122 ['kernels', 'migrations', 'faults']" "as JSON"
fi
is "$(report "$tmp/a.umlog" --report announced --format csv | tail -n 2)" \
	"$(printf 'dot,20,40,335544320,0\r\nstep,20,80,671088640,503316480\r')" "as CSV"
ok "a log becomes a page" report "$tmp/a.umlog" --format html -o "$tmp/a.html"

# Logs of ranks say which one they are of.
for i in 0 1; do
	OMPI_COMM_WORLD_RANK=$((i + 4)) OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=$i \
		OMPI_COMM_WORLD_LOCAL_SIZE=2 UMADVISE_RUN_LOG=$tmp/log%r.umlog "$example" >/dev/null
done
like "$(zcat "$tmp/log5.umlog" | head -n 1)" '"rank":5,"ranks":8,"local_rank":1,"local_ranks":2,"host":"[^"]+"' \
	"the header has the rank"
like "$(report "$tmp/log5.umlog" --report library | tr -s ' \n' ' ')" \
	' rank 5 ranks 8 rank of the node 1 ranks of the node 2 node [^ ]+ ' "the report has the rank"
unlike "$(zcat "$tmp/a.umlog" | head -n 1)" '"rank"' "without a launcher there is none"
if python3 -c 'import json' 2>/dev/null; then
	is "$(report --merge "$tmp/log4.umlog" "$tmp/log5.umlog" --report ranks --format json | python3 -c '
import json, sys
print([(r["rank"], r["local_rank"], r["slower_ns"], r["reason"], r["stall_ns"] > 0, r["prefetch_bytes"] > 0,
        r["kernel_ns"]) for r in json.load(sys.stdin)["ranks"]])')" \
		"[(4, 0, 0, None, True, True, None), (5, 1, 0, None, True, True, None)]" "merged, each rank has its row"
fi
sed 's/"rank":5/"rank":"x"/' <(zcat "$tmp/log5.umlog") >"$tmp/rank.umlog"
fails 3 "a rank that is no number" report "$tmp/rank.umlog"

head -c "$(($(wc -c <"$tmp/a.umlog") - 5))" "$tmp/a.umlog" >"$tmp/cut.umlog"
out=$(report "$tmp/cut.umlog")
is $? 0 "one that was cut is read as far as it goes"
like "$out" '^note: the file ends inside a part' "the report says that the log was cut"

refused() { # NAME FILE PATTERN
	local out
	out=$(report "$2" 2>&1)
	is $? 3 "$1 is refused"
	is "$(printf '%s\n' "$out" | wc -l)" 1 "the refusal is one line"
	like "$out" "$3" "the refusal says why"
}
gzip -c "$top_srcdir/README.md" >"$tmp/text.gz"
refused "any gzip" "$tmp/text.gz" 'text\.gz:1: '
refused "a umtrace" "$top_srcdir/tests/data/resnet50.umtrace.gz" 'not a umlog'
printf '{"umlog":2}\n' >"$tmp/newer"
refused "a newer version" "$tmp/newer" 'version 2: this tool reads version 1'
{
	head -c 200 "$tmp/a.umlog"
	printf 'XXXXXXXXXXXXXXXX'
	tail -c +217 "$tmp/a.umlog"
} >"$tmp/damaged"
refused "a damaged one" "$tmp/damaged" 'damaged:'
zcat "$tmp/a.umlog" | sed 's/\("hint":.*"bytes":\)[^,]*/\19007199254740993/' >"$tmp/wide"
refused "a hint for more than there can be" "$tmp/wide" '`bytes` is 9007199254740993: want an integer from 0 to 109'

out=$(UMADVISE_RUN_LOG=/nonexistent/b "$top_builddir/examples/vector" 2>&1)
is $? 0 "a log that can not be written is no matter to the program"
like "$out" 'no run log is written: /nonexistent/b: cannot write' "it is said"
ok "a name with the process's number" env UMADVISE_RUN_LOG="$tmp/%p.log" "$top_builddir/examples/vector"
is "$(find "$tmp" -name '[0-9]*.log' | wc -l)" 1 "the log is named after its process"
tap_done
