#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bound.sh - measures the distance of plans from the lower bound
#
#     bench/bound.sh [TRACE...] >table.md
#
# For each trace (default: those of tests/data) on v100, a100 and h100 with duplex 1 and eta 1, at 1.25, 1.5, 2 and 3
# times the memory: the predicted steady time of lookahead's plan over the bound of the linear program (1 is optimal).
# Combinations in which an operation does not fit have no row. UMADVISE names the tool (default:
# build/plain/tools/umadvise), BOUND_TIME the seconds for a bound (default: 30), CARDS the devices; v100/2 is one with
# half of the link's rate. BOUND names the options: --bound, or "--bound --bound-copies", which counts the copies that
# the driver makes.

top=$(cd "$(dirname "$0")/.." && pwd)
tool=${UMADVISE:-$top/build/plain/tools/umadvise}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
[ -x "$tool" ] || { echo "bound.sh: no tool: $tool" >&2; exit 1; }
data=$top/tests/data
[ $# -gt 0 ] ||
	set -- "$data"/{alexnet_b200,cg_laplace3d,cifar_vgg16_b100,gpt2_small,lstm_lm,resnet50,vgg16}.umtrace.gz

. "$top/bench/cards.sh"
read -ra bound <<<"${BOUND:---bound}"

echo '| trace | profile | x | plan ms | bound ms | x bound |'
echo '| --- | --- | --- | --- | --- | --- |'
for trace in "$@"; do
	for card in ${CARDS:-v100 a100 h100}; do
		part=${card#*/}
		[ "$part" != "$card" ] || part=1
		card "${card%/*}" "$tmp" "$part"
		for ratio in 1.25 1.5 2 3; do
			[ ! -t 2 ] || printf '\r%s %s %s   ' "$(basename "$trace")" "$card" $ratio >&2
			"$tool" plan "$trace" --profile "$tmp/${card%/*}.profile" --oversubscribe $ratio "${bound[@]}" \
				--bound-time "${BOUND_TIME:-30}" --no-recompute -o "$tmp/plan.umplan" >/dev/null \
				2>"$tmp/err" || continue
			! grep -q '"paged":true' "$tmp/plan.umplan" || continue
			figures=$(head -n 1 "$tmp/plan.umplan" |
				sed 's/.*"predicted_ns":\([0-9]*\).*"bound_ns":\([0-9]*\).*/\1 \2/')
			awk -v t="$(basename "$trace" .umtrace.gz)" -v c="$card" -v r=$ratio '{
				printf "| %s | %s | %s | %.3f | %.3f | %.3f |\n", t, c, r, $1 / 1e6, $2 / 1e6, $1 / $2
			}' <<<"$figures"
		done
	done
done | tee "$tmp/rows"
[ ! -t 2 ] || echo >&2
awk -F'|' 'NF > 6 { n++; s += log($7); w = $7 > w ? $7 : w }
	END { if (n) printf "\n%d cases: geometric mean %.3f, worst %.3f.\n", n, exp(s / n), w }' "$tmp/rows"
