#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# workspaces.sh - measures plans that choose algorithms by their workspaces
#
#     bench/workspaces.sh [TRACE...] >table.md
#
# workspaces.py gives the convolutions of each trace (default: alexnet_b200 and vgg16 of tests/data) two or three
# algorithms, on DEVICE (v100 or k40, default: v100) with duplex 1 and eta 1. For each ratio of memory (RATIOS, default:
# 1 1.25 1.5 2 3; of the tensors alive, without workspaces) the steady times of these plans, over the time in core with
# the fastest algorithms: lookahead's with the smallest workspaces, with the fastest algorithm whose workspace fits
# beside the op's own tensors, and with its own choice; superneurons' with the smallest workspaces and by its rule. A
# dash: there is no plan. The arguments in PLAN (default: --no-recompute) go to each plan. UMADVISE names the tool
# (default: build/plain/tools/umadvise).

top=$(cd "$(dirname "$0")/.." && pwd)
tool=${UMADVISE:-$top/build/plain/tools/umadvise}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
[ -x "$tool" ] || { echo "workspaces.sh: no tool: $tool" >&2; exit 1; }
[ $# -gt 0 ] || set -- "$top"/tests/data/{alexnet_b200,vgg16}.umtrace.gz
read -ra plan <<<"${PLAN---no-recompute}"

case ${DEVICE:=v100} in
v100) capacity='32 GiB' flops=13e12 bandwidth=800e9 launch=5000 link=12e9 ;;
k40) capacity='12 GiB' flops=3e12 bandwidth=220e9 launch=8000 link=8e9 ;;
*) echo "workspaces.sh: no device $DEVICE: want v100 or k40" >&2; exit 1 ;;
esac
printf '%s\n' "name = $DEVICE" "capacity = $capacity" "flops = $flops" "mem_bandwidth = $bandwidth" \
	"launch_ns = $launch" "h2d = $link" "d2h = $link" 'duplex = 1' 'eta = 1' >"$tmp/device.profile"
with_workspaces() { # TRACE OPTION...
	"$top/bench/workspaces.py" "$@" --flops $flops --bandwidth $bandwidth --launch $launch
}

figure() { sed -n "1s/.*\"$1\":\([0-9]*\).*/\1/p" "$2"; }

# Prints the time of a plan in ns, or a dash. $1: trace, $2: budget or ratio as arguments of the tool, $3: strategy
time_of() {
	rm -f "$tmp/p.umplan"
	# shellcheck disable=SC2086
	"$tool" plan "$1" --profile "$tmp/device.profile" $2 --strategy "$3" "${plan[@]}" -o "$tmp/p.umplan" \
		>/dev/null 2>&1 && figure predicted_ns "$tmp/p.umplan" || echo -
}

for trace in "$@"; do
	with_workspaces "$trace" >"$tmp/all.umtrace" || exit 1
	with_workspaces "$trace" --only smallest >"$tmp/smallest.umtrace"
	for ratio in ${RATIOS:-1 1.25 1.5 2 3}; do
		ours=$(time_of "$tmp/all.umtrace" "--oversubscribe $ratio" lookahead)
		[ "$ours" != - ] || continue
		budget=$(figure budget "$tmp/p.umplan")
		core=$(figure in_core_ns "$tmp/p.umplan")
		with_workspaces "$trace" --only fitting --budget "$budget" >"$tmp/fitting.umtrace"
		echo "$(basename "$trace" .umtrace.gz) $ratio $budget $core $(
			time_of "$tmp/smallest.umtrace" "--budget $budget" lookahead) $(
			time_of "$tmp/fitting.umtrace" "--budget $budget" lookahead) $(
			time_of "$tmp/smallest.umtrace" "--budget $budget" superneurons) $(
			time_of "$tmp/all.umtrace" "--budget $budget" superneurons) $ours"
	done
done | awk '
function over(ns) { return ns == "-" ? "-" : sprintf("%.3f", ns / $4) }
BEGIN {
	print "| trace | x | MiB | in core ms | smallest | fitting | superneurons, smallest | superneurons |" \
		" lookahead | over the better fixed one |"
	print "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
}
{
	best = $6 == "-" || $5 < $6 ? $5 : $6
	printf "| %s | %s | %.0f | %.3f | %s | %s | %s | %s | %s | %.3f |\n", $1, $2, $3 / 1048576, $4 / 1e6, over($5),
		over($6), over($7), over($8), over($9), $9 / best
	n++
	sum += log($9 / best)
	small += log($9 / $5)
	worse += $9 > best
}
END {
	if (n)
		printf "\n%d cases: lookahead over the smallest %.3f, over the better fixed one %.3f by geometric " \
			"mean; %d slower than the better one.\n", n, exp(small / n), exp(sum / n), worse
}'
