#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# recompute.sh - measures plans that launch operations again
#
#     bench/recompute.sh [TRACE...] >table.md
#
# For each trace (default: those of tests/data with `relaunch`) on v100 and a100 with duplex 1 and eta 1, at 1.5, 2 and
# 3 times the memory: the steady time in core, of lookahead's plan without relaunches and with them, the optimistic
# bound of the linear program, and the plan as played with kernel times that vary by JITTER per cent (default: 25), over
# its own prediction. Combinations in which an operation does not fit have no row. UMADVISE names the tool (default:
# build/plain/tools/umadvise), BOUND_TIME the seconds for a bound (default: 30). BOUNDS names the output of an earlier
# run, whose bounds are used: they do not depend on the planner.

top=$(cd "$(dirname "$0")/.." && pwd)
tool=${UMADVISE:-$top/build/plain/tools/umadvise}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
[ -x "$tool" ] || { echo "recompute.sh: no tool: $tool" >&2; exit 1; }
data=$top/tests/data
[ $# -gt 0 ] || set -- "$data"/{alexnet_b200,cifar_vgg16_b100,gpt2_small,lstm_lm,resnet50,vgg16}.umtrace.gz

. "$top/bench/cards.sh"
card v100 "$tmp"
card a100 "$tmp"

figure() { sed -n "1s/.*\"$1\":\([0-9]*\).*/\1/p" "$2"; }

# $1: trace, $2: profile, $3: ratio. The earlier bound, in ns; $4: the time in core.
earlier() {
	awk -F ' *[|] *' -v name="$(basename "$1" .umtrace.gz)" -v card="$2" -v x="$3" -v core="$4" \
		'$2 == name && $3 == card && $4 == x { printf "%.0f\n", $8 * core }' "$BOUNDS"
}

# $1: trace, $2: profile, $3: ratio
measure() {
	local args=("$1" --profile "$tmp/$2.profile" --oversubscribe "$3") off bound
	local prove=(--bound --bound-time "${BOUND_TIME:-30}")

	"$tool" plan "${args[@]}" --no-recompute -o "$tmp/swaps.umplan" >/dev/null 2>&1 || return
	! grep -q '"paged":true' "$tmp/swaps.umplan" || return
	[ -z "${BOUNDS:-}" ] || prove=()
	"$tool" plan "${args[@]}" ${prove[@]+"${prove[@]}"} -o "$tmp/again.umplan" >/dev/null 2>"$tmp/note" ||
		return
	! grep -q 'operations above the budget' "$tmp/note" || return
	bound=$(figure bound_ns "$tmp/again.umplan")
	[ -z "${BOUNDS:-}" ] || bound=$(earlier "$@" "$(figure in_core_ns "$tmp/again.umplan")")
	[ -n "$bound" ] || { echo "recompute.sh: no bound in $BOUNDS: $*" >&2; return; }
	off=$("$tool" simulate "${args[@]}" --plan "$tmp/again.umplan" --strategy infinite --jitter "${JITTER:-25}" \
		2>/dev/null | sed -n 's/.*(played: \([-+][0-9.]*\) %)$/\1/p')
	echo "$(basename "$1" .umtrace.gz) $2 $3 $(figure in_core_ns "$tmp/again.umplan") $(
		figure predicted_ns "$tmp/swaps.umplan") $(figure predicted_ns "$tmp/again.umplan") $bound $off"
}

for trace in "$@"; do
	for card in v100 a100; do
		for ratio in 1.5 2 3; do
			[ ! -t 2 ] || printf '\r%s %s %s   ' "$(basename "$trace")" $card $ratio >&2
			measure "$trace" $card $ratio
		done
	done
done >"$tmp/rows"
[ ! -t 2 ] || echo >&2
awk 'BEGIN {
	print "| trace | profile | x | in core ms | swaps / in core | plan / in core | bound / in core |" \
		" plan / bound | played off % |"
	print "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
}
{
	printf "| %s | %s | %s | %.3f | %.3f | %.3f | %.3f | %.3f | %s |\n", $1, $2, $3, $4 / 1e6, $5 / $4, $6 / $4,
		$7 / $4, $6 / $7, $8
	n[$3]++
	core[$3] += log($6 / $4)
	bound[$3] += log($6 / $7)
	if ($7 / $4 <= 1.10) {
		m[$3]++
		near[$3] += log($6 / $4)
		worst[$3] = $6 / $4 > worst[$3] ? $6 / $4 : worst[$3]
	}
}
END {
	for (i = split("1.5 2 3", ratio, " "); i; i--) {
		r = ratio[i]
		if (n[r])
			printf "\n%sx, %d cases: geometric mean of plan / in core %.3f, of plan / bound %.3f.\n",
				r, n[r], exp(core[r] / n[r]), exp(bound[r] / n[r])
		if (m[r])
			printf "Of these %d with a bound of at most 1.10: plan / in core %.3f, worst %.3f.\n", m[r],
				exp(near[r] / m[r]), worst[r]
	}
}' "$tmp/rows"
