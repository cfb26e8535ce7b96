#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench/programs.py: programs of many kinds, and that lookahead is not behind the better of the driver alone and
# prefetch-on-use in any of them, from the third iteration on, nor leaves to page faults what hints can prefetch.
. "${top_srcdir:=.}/tests/tap.sh"

command -v python3 >/dev/null || skip_all "no python3"
programs() { python3 "$top_srcdir/bench/programs.py" "$@"; }

# KIND PROFILE RATIO [OPTION]: prints the time of lookahead over that of the faster one, in percent
percent() {
	programs "$1" "${@:4}" >"$tmp/$1.umtrace" &&
		"$UMADVISE" simulate "$tmp/$1.umtrace" --profile "$2" --oversubscribe "$3" --iterations 24 \
			--per-iteration -f json --strategy on-demand,prefetch-on-use,lookahead >"$tmp/$1.json" &&
		python3 - "$tmp/$1.json" <<-'END'
			import json, sys
			runs = {r['strategy']: r for r in json.load(open(sys.argv[1]))['runs']}
			ns = {s: sum(i['ns'] for i in r['iterations'][2:]) for s, r in runs.items()}
			print(round(100 * ns.pop('lookahead') / min(ns.values())))
		END
}
at_most() { # PERCENT KIND PROFILE RATIO [OPTION]
	local got
	got=$(percent "${@:2}") || return 1
	echo "# $2: $got %"
	((got <= $1))
}

ok "the kinds are listed" test "$(programs list | wc -l)" -ge 30
ok "the same seed gives the same program" cmp <(programs rl --iterations 3) <(programs rl --iterations 3)
are_workloads() {
	local kind
	for kind in $(programs list); do
		programs "$kind" --iterations 3 >"$tmp/one.umtrace" || return 1
		"$UMADVISE" trace check "$tmp/one.umtrace" || return 1
	done
}
ok "each kind is a workload" are_workloads
ok "random access is not behind" at_most 100 uniform v100 2
ok "skewed random access is ahead" at_most 98 zipf v100 2
ok "models that are trained in random order are ahead" at_most 90 hyper h100 2
ok "adapters that are exchanged at random are ahead" at_most 60 adapters h100 1.5
ok "tables of which random rows are looked up are far ahead" at_most 25 table h100 2
ok "ops that each exceed the budget are far ahead" at_most 50 triad v100 1.5
ok "one op of five above the budget is far ahead" at_most 50 huge v100 2
ok "a solver with ops above the budget and rejected steps is far ahead" at_most 50 ode v100 2
ok "that solver without marks is far ahead" at_most 50 ode v100 2 --unmarked
ok "coupled solvers with two buffers in turn are far ahead" at_most 70 coupling h100 1.5 --unmarked
ok "a multigrid cycle with an odd one every eighth is far ahead" at_most 50 multigrid h100 1.5

# KIND PROFILE RATIO: prints the page faults from the third iteration on
faults() {
	programs "$1" >"$tmp/$1.umtrace" &&
		"$UMADVISE" simulate "$tmp/$1.umtrace" --profile "$2" --oversubscribe "$3" --iterations 24 \
			--per-iteration -f csv --strategy lookahead | awk -F, '$6 >= 2 { n += $8 } END { print n }'
}
is "$(faults diffusion h100 1.3)" 0 "requests of several sizes, whose results the CPU reads, cause no faults"
is "$(faults multigrid a100 1.5)" 0 "ops above the budget cause no faults as a plan begins after an odd iteration"
is "$(faults speculative v100 1.3)" 0 "a plan that begins leaves earlier ops the copies of what was read mostly"
is "$(faults md a100 1.5)" 0 "odd iterations and reads of the CPU among those of a plan cause no faults"
tap_done
