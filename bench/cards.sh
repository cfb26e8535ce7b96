# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=bash
#
# cards.sh - the devices on which plans are compared with bounds; sourced by bound.sh, recompute.sh, relaunch_bound.sh

# card NAME FOLDER [PART] writes FOLDER/NAME.profile: both directions of the link at full rate, divided by PART.
card() {
	local capacity flops bandwidth launch link

	case $1 in
	v100) capacity='32 GiB' flops=13e12 bandwidth=800e9 launch=5000 link=12000000000 ;;
	a100) capacity='40 GiB' flops=60e12 bandwidth=1.3e12 launch=4000 link=24000000000 ;;
	h100) capacity='80 GiB' flops=250e12 bandwidth=2.8e12 launch=3000 link=52000000000 ;;
	*) echo "cards.sh: no card $1: want v100, a100 or h100" >&2; exit 2 ;;
	esac
	link=$((link / ${3:-1}))
	printf '%s\n' "name = $1" "capacity = $capacity" "flops = $flops" "mem_bandwidth = $bandwidth" \
		"launch_ns = $launch" "h2d = $link" "d2h = $link" 'duplex = 1' 'eta = 1' >"$2/$1.profile"
}
