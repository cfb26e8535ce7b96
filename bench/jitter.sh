#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# jitter.sh - measures the cost of kernels that take longer or shorter than planned
#
#     bench/jitter.sh [TRACE...] >table.md
#
# For each trace (default: those of tests/data that repeat) on v100 and a100, at 1.5 and 2 times the memory: steady time
# of lookahead with each kernel's time changed by up to 25 %, over the time without changes; the sum of kernel times is
# the same. First for the library (hints of whole blocks), then for the last plan played as written. Combinations in
# which an operation does not fit have no row. PROFILES, RATIOS, JITTER, SEED and ITERATIONS may be set; UMADVISE names
# the tool (default: build/plain/tools/umadvise).

top=$(cd "$(dirname "$0")/.." && pwd)
tool=${UMADVISE:-$top/build/plain/tools/umadvise}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
[ -x "$tool" ] || { echo "jitter.sh: no tool: $tool" >&2; exit 1; }
data=$top/tests/data
[ $# -gt 0 ] ||
	set -- "$data"/{alexnet_b200,cg_laplace3d,cifar_vgg16_b100,gpt2_small,lstm_lm,resnet50,vgg16}.umtrace.gz

# $1: trace, $2: profile, $3: ratio, $4: jitter. Steady ns and faults of lookahead, then of the plan.
play() {
	"$tool" simulate "$1" --profile "$2" --oversubscribe "$3" --strategy lookahead \
		--plan "$tmp/plan.umplan" --no-recompute --jitter "$4" --seed "${SEED:-0}" \
		--iterations "${ITERATIONS:-16}" --format csv 2>/dev/null |
		awk -F, 'NR > 1 { printf "%s %s ", $6, $8 }'
}

echo '| trace | profile | x | ms | ms, off | loss % | faults | plan ms | plan ms, off | loss % |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'
for trace in "$@"; do
	name=$(basename "$trace" .umtrace.gz)
	for card in ${PROFILES:-v100 a100}; do
		for ratio in ${RATIOS:-1.5 2}; do
			[ ! -t 2 ] || printf '\r%s %s %s   ' "$name" "$card" "$ratio" >&2
			"$tool" plan "$trace" --profile "$card" --oversubscribe "$ratio" --no-recompute \
				-o "$tmp/plan.umplan" >/dev/null 2>&1 || continue
			echo "$name $card $ratio $(play "$trace" "$card" "$ratio" 0) $(play "$trace" "$card" "$ratio" \
				"${JITTER:-25}")" | awk '{
				printf "| %s | %s | %s | %.3f | %.3f | %.2f | %d | %.3f | %.3f | %.2f |\n", $1, $2, $3,
					$4 / 1e6, $8 / 1e6, ($8 / $4 - 1) * 100, $9, $6 / 1e6, $10 / 1e6,
					($10 / $6 - 1) * 100
			}'
		done
	done
done | tee "$tmp/rows"
[ ! -t 2 ] || echo >&2
awk -F'|' 'NF > 9 {
		n++; a += log(1 + $7 / 100); w = $7 > w ? $7 : w
		b += log(1 + $11 / 100); v = $11 > v ? $11 : v
	}
	END { if (n) printf "\n%d cases: the library loses %.2f %% in the geometric mean, %.2f %% at worst; " \
		"plans as written %.2f %%, %.2f %%.\n", n, (exp(a / n) - 1) * 100, w, (exp(b / n) - 1) * 100, v
	}' "$tmp/rows"
