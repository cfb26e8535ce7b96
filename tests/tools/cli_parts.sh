#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise simulate: ops that use parts of large tensors, look up a little in them, or use more than the budget. In sum
# from the third iteration on the library is not behind the driver alone, nor behind prefetches of what each op uses.
. "${top_srcdir:=.}/tests/tap.sh"

trace() { "${PYTHON3:-python3}" "$top_srcdir/tests/fixture/parts_trace.py" "$@"; }

# $1: profile, further: traces. Failures: a strategy is missing, lookahead is more than 2 % slower in sum, or more
# than 10 % slower in more than $late iterations.
behind() {
	"$UMADVISE" simulate "${@:2}" --profile "$1" --oversubscribe 1.5,2 --iterations 52 --per-iteration -f json \
		--strategy on-demand,prefetch-on-use,lookahead -o "$tmp/runs.json" || echo "status $?"
	"${PYTHON3:-python3}" - "$tmp/runs.json" "$late" <<'END'
import json, sys
runs = {}
for r in json.load(open(sys.argv[1]))["runs"]:
    key = (r["trace"], round(r["oversubscribe"], 2))
    runs.setdefault(key, {})[r["strategy"]] = [i["ns"] for i in r["iterations"][2:]]
for key, r in runs.items():
    ours = r["lookahead"]
    best = min(r["on-demand"], r["prefetch-on-use"], key=sum)
    late = sum(a > 1.1 * b for a, b in zip(ours, best))
    if sum(ours) > 1.02 * sum(best) or late > int(sys.argv[2]):
        print(*key, "%.3f" % (sum(ours) / sum(best)), late)
END
}

trace slabs --mib 24 --slabs 8 >"$tmp/slabs.umtrace"
trace slabs --mib 24 --slabs 8 --odd 10 --iterations 20 >"$tmp/odd.umtrace"
trace tables --mib 8 --layers 12 >"$tmp/tables.umtrace"
trace tables --mib 8 --layers 12 --odd 1 >"$tmp/saved.umtrace"
trace giant --mib 16 --layers 8 >"$tmp/giant.umtrace"
trace checkpoint --mib 16 --layers 8 >"$tmp/checkpoint.umtrace"
for device in v100 a100 h100; do
	late=1
	is "$(behind "$device" "$tmp/slabs.umtrace" "$tmp/tables.umtrace" "$tmp/giant.umtrace" \
		"$tmp/checkpoint.umtrace" "$tmp/saved.umtrace")" "" \
		"$device: lookahead is not slower on slabs, tables, large ops and CPU accesses"
	late=5
	is "$(behind "$device" "$tmp/odd.umtrace")" "" \
		"$device: lookahead is not slower on slabs with longer iterations"
done

"$UMADVISE" plan "$tmp/giant.umtrace" --oversubscribe 1.5 -o "$tmp/giant.umplan" >/dev/null
like "$("$UMADVISE" plan --show "$tmp/giant.umplan")" \
	"paged +op [0-9]+ 'update_all' uses more than the budget: the driver pages it" "plan --show names the paged op"
tap_done
