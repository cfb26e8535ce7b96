#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench/strategies: its csv has what the tool says, its drawing is XML, what is there is not played again.
. "${top_srcdir:=.}/tests/tap.sh"

command -v python3 >/dev/null || skip_all "no python3"
data=$top_srcdir/tests/data
work=$data/cg_laplace3d.umtrace.gz
out=$tmp/out
real=$UMADVISE

# Counts the calls of the tool.
cat >"$tmp/counting" <<-EOF
	#!/bin/sh
	echo "\$*" >>"$tmp/calls"
	exec "$real" "\$@"
EOF
chmod +x "$tmp/counting"
calls() { wc -l <"$tmp/calls"; }
bench() { : >"$tmp/calls"; UMADVISE=$tmp/counting python3 "$top_srcdir/bench/strategies" "$@"; }
column() { # STRATEGY COLUMN...: of the csv
	python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1], newline="")):
    if row["strategy"] == sys.argv[2]:
        print(",".join(row[name] for name in sys.argv[3:]))' "$out/strategies.csv" "$@"
}

few=("$work" --profiles v100 --ratios 1.5 --strategies "lookahead,autoswap,autoswap-no-overhead" --output "$out")
ok "one workload runs on one device" bench "${few[@]}"
is "$(calls)" 6 "the list, the bound, on-demand, and three strategies"
told() { # STRATEGY [OPTION...]: the tool's own figures, as the csv has them
	"$UMADVISE" simulate "$work" --oversubscribe 1.5 --format csv --strategy "$@" 2>/dev/null | tail -n 1 |
		tr -d '\r' | cut -d, -f 4,6-13,15
}
kept() { # STRATEGY
	column "$1" budget_bytes steady_ns in_core_ns faults h2d_bytes d2h_bytes stall_ns hints peak_resident_bytes \
		planned_ns
}
for s in on-demand lookahead autoswap autoswap-no-overhead; do
	is "$(kept "$s")" "$(told "$s")" "$s: as simulate says"
done
bound=$("$UMADVISE" simulate "$work" --oversubscribe 1.5 --strategy infinite --bound --format csv 2>/dev/null |
	tail -n 1 | cut -d, -f17)
is "$(column bound steady_ns)" "$bound" "the bound as simulate says"
time_of() { column "$1" steady_ns; }
quotient() { awk "BEGIN { printf \"%.4f\", $1 / $2 }"; }
is "$(column lookahead x_bound)" "$(quotient "$(time_of lookahead)" "$bound")" "the table has the time over the bound"
is "$(column lookahead planned_x_bound)" "$(quotient "$(column lookahead planned_ns)" "$bound")" \
	"the table has the planned time over the bound"
is "$(column lookahead x_on_demand)" "$(quotient "$(time_of on-demand)" "$(time_of lookahead)")" \
	"the table has the speedup over on-demand"
is "$(column lookahead x_in_core)" "$(quotient "$(time_of lookahead)" "$(column lookahead in_core_ns)")" \
	"the table has the time over in-core"
is "$(column autoswap-no-overhead status)" "no plan" "a scheme that makes none"
is "$(column autoswap-no-overhead x_bound)" "" "is not compared"

table=$(cat "$out/strategies.md")
short=$(awk "BEGIN { printf \"%.3f\", $(time_of lookahead) / $bound }")
like "$table" "^\| cg_laplace3d \| v100 \| 1\.5 \| lookahead \| [0-9.]+ \| $short \|" "the table has the row"
is "$(grep -c '^| cg_laplace3d .* | on-demand |' "$out/strategies.md")" 0 "what was not asked for is not in it"
like "$table" '^\| autoswap \| 1 of 1 \| [0-9.]+ \| [0-9.]+ \(cg_laplace3d, v100, 1\.5x\)' "the summary has a strategy"
like "$table" '^lookahead is behind another by more than 1 % in [01] of 1 cases' \
	"the table says which strategy is ahead"
like "$table" '^- autoswap-no-overhead, no plan \(1\): cg_laplace3d on v100 1.5x$' \
	"the table says which runs have no plan"
xml() { python3 -c 'import sys, xml.dom.minidom
words = [t.firstChild.data for t in xml.dom.minidom.parse(sys.argv[1]).getElementsByTagName("text")]
sys.exit(not set(sys.argv[2:]) <= set(words))' "$@"; }
ok "the drawing is XML, with names and figures" xml "$out/strategies.svg" lookahead autoswap autoswap-no-overhead \
	"$(printf %.2f "$(column lookahead x_on_demand)")"

cp -r "$out" "$tmp/first"
ok "bench/strategies runs a second time" bench "${few[@]}"
is "$(calls)" 1 "asks for the list only"
ok "the second run has the same output" diff -r "$out" "$tmp/first"
sed -i '/,autoswap,/d' "$out/strategies.csv"
ok "a run with a missing play succeeds" bench "${few[@]}"
is "$(calls)" 2 "the missing strategy alone is played"
ok "the completed table equals the first one" cmp <(sort "$out/strategies.csv") <(sort "$tmp/first/strategies.csv")

ok "a run with --again succeeds" bench "${few[@]}" --again bound,lookahead --bound-time 7
is "$(calls)" 3 "only these plays are repeated"
is "$(grep -c -- '--bound-time 7 ' "$tmp/calls")" 1 "the bound runs with its time limit"
ok "bench/strategies ends when it has no time" bench "${few[@]}" --again all --total-time 1e-9
is "$(calls)" 1 "no run is started without time"
like "$(cat "$out/strategies.md")" '^- lookahead, not run \(1\): cg_laplace3d on v100 1.5x$' \
	"runs without time are reported as not run"

# Devices written out with an ideal link are those of the tool.
ideal=$tmp/ideal
ok "an ideal link" bench "$work" --link-ideal --profiles k40,1080ti,v100,rtx4090,a100,h100,h200,gh200 --ratios 2 \
	--strategies on-demand --output "$ideal" --jobs 2
like "$(cat "$ideal/profiles/a100.profile")" '^duplex = 1$' "the ideal profile has independent directions"
like "$(cat "$ideal/profiles/a100.profile")" '^eta = 1$' "the ideal link runs at its full rate"
ops() { "$UMADVISE" simulate "$work" --profile "$1" --strategy infinite --format csv | tail -n 1 | cut -d, -f 2,4,6-7; }
for p in k40 1080ti v100 rtx4090 a100 h100 h200 gh200; do
	is "$(ops "$ideal/profiles/$p.profile")" "$(ops "$p")" "$p: its ops as on the tool's own"
done

# What goes wrong with the tool is a row, or one line.
cat >"$tmp/fake" <<-'EOF'
	#!/bin/sh
	head=trace,profile,oversubscribe,budget_bytes,strategy,steady_ns,in_core_ns,faults
	head=$head,h2d_bytes,d2h_bytes,stall_ns,hints
	case "$*" in
	*--list-strategies*) printf '%s\n' infinite on-demand lookahead nap new huge ;;
	*--bound*) echo "$head,bound_ns"; echo a,b,2,1,infinite,100,100,0,0,0,0,0,200
		echo 'umadvise simulate: the bound was cut short' >&2 ;;
	*nap*) exec sleep 600 ;;
	*new*) echo "umadvise simulate: a, new: it broke" >&2; exit 4 ;;
	*) echo "$head"; echo a,b,2,1,s,400,100,0,0,0,0,1 ;;
	esac
EOF
chmod +x "$tmp/fake"
fake() {
	UMADVISE=$tmp/fake python3 "$top_srcdir/bench/strategies" "$work" --profiles a --ratios 2 --output "$tmp/f" "$@"
}
fails 2 "a play that fails is told of" fake --time-limit 5 --jobs 2
table=$(cat "$tmp/f/strategies.md")
like "$table" '^\| cg_laplace3d \| a \| 2 \| huge \| 0.000 \| 2.000 ' "an unknown strategy has its row"
like "$table" '^Bounds, the bound was cut short \(1\): cg_laplace3d on a 2x\.$' "what the tool says of a bound is told"
like "$table" '^- nap, time limit \(1\): cg_laplace3d on a 2x: 5 s$' "a play that takes too long is named"
like "$table" '^- new, failed \(1\): cg_laplace3d on a 2x: it broke$' "a failed run is reported with its message"

one_line() { # NAME ARGUMENT...
	local name=$1 said
	shift
	said=$(bench --output "$tmp/no" "$@" 2>&1 >/dev/null)
	is "$?/$(wc -l <<<"$said")" "2/1" "$name: one line"
}
one_line "an unknown strategy" "$work" --strategies belady
one_line "an unknown device" "$work" --profiles nonesuch --ratios 2
one_line "no such trace" "$tmp/none.umtrace"
one_line "what is no trace" "$data/README.md" --ratios 2
one_line "a ratio of nothing" "$work" --ratios 0
one_line "two of one name" "$work" "$work"
one_line "an unknown strategy again" "$work" --again belady
ok "bench/strategies prints its help" bench --help
ok "bench/papers prints its help" python3 "$top_srcdir/bench/papers" --help
tap_done
