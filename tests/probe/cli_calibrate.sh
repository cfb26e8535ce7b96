#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_calibrate.sh - umadvise calibrate: on the stand-in it finds what the device was made of, and it survives what
# devices do

: "${top_srcdir:=.}" "${top_builddir:=.}" "${UMADVISE:=$top_builddir/tools/umadvise}"
. "$top_srcdir/tests/tap.sh"

ok "umadvise calibrate prints its help" "$UMADVISE" calibrate --help
fails 2 "an unknown option is refused" "$UMADVISE" calibrate --nonsense
fails 2 "an argument is refused" "$UMADVISE" calibrate file
fails 2 "an invalid size is refused" "$UMADVISE" calibrate --budget many
fails 2 "a budget of 0 is refused" "$UMADVISE" calibrate --budget 0
fails 2 "a time of zero is refused" "$UMADVISE" calibrate --time 0
fails 2 "an unknown probe is refused" "$UMADVISE" calibrate --run-probe nonsense 0 0

# Without a driver, or with one that is none.
mkdir "$tmp/none"
: >"$tmp/none/libcuda.so.1"
fails 3 "a machine without a device is refused" env LD_LIBRARY_PATH="$tmp/none" "$UMADVISE" calibrate -o "$tmp/x"
is "$(ls "$tmp"/x* 2>/dev/null)" "" "no profile is left after the refusal"

standin=$top_builddir/standin
why=
case ${SANITIZE:-} in
*thread*) why="a tool under this sanitizer takes no driver that was built with it" ;;
*) [ -e "$standin/libcuda.so.1" ] || why="no stand-in driver was built" ;;
esac
if [ -n "$why" ]; then
	skip 1 "$why"
	tap_done
fi

calibrate() { # PROFILE ARGUMENT...
	local profile=$1
	shift
	env LD_LIBRARY_PATH="$standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" UMADVISE_DRYRUN_PROFILE="$profile" \
		"$UMADVISE" calibrate "$@"
}

# Constants of $2 that are not within 5 % of those in $1. What no probe can see must be said to be assumed.
differ() {
	awk -F ' *[=#] *' '
		/^(#|name|capacity|measured|coherent|serial_host)/ { next }
		FNR == NR { want[$1] = $2; next }
		$1 ~ /^(c_evict|c_evict_unused|c_zero|duplex_evict)$/ {
			if ($3 !~ /^assumed/)
				print $1 " is not said to be assumed"
			next
		}
		$3 != "" { print $1 ": " $3; next }
		{
			d = $2 - want[$1]
			if (!($1 in want) || (d < 0 ? -d : d) > 0.05 * want[$1])
				print $1 ": got " $2 ", want " want[$1]
		}
	' "$1" "$2"
}

# Every constant of a built-in device, and of the same one bent: each constant times a factor of its own.
ok "a simulated v100 is measured" calibrate v100 -o "$tmp/v100"
like "$(cat "$tmp/v100")" '^measured = yes$' "its profile says that it was measured"
ok "the measured profile can be used" \
	"$UMADVISE" simulate "$top_srcdir/tests/data/cg_laplace3d.umtrace.gz" --profile "$tmp/v100" \
	--strategy infinite
awk -F ' = ' -v OFS=' = ' '
	/^#/ { next }
	{ sub(/ #.*/, "", $2) }
	$1 ~ /^(name|capacity|measured|coherent|serial_host|driver|link_devices)$/ { print; next }
	{
		f = 0.67 + 0.043 * (NR * 7 % 17)
		x = $2 * f
		if ($1 ~ /^(duplex|duplex_evict|eta|b_remote)$/ && x > 1)
			x = 1
		printf "%s = " ($1 ~ /^(c_|o_|launch)/ ? "%d" : "%.9g") "\n", $1, x
	}
' "$tmp/v100" >"$tmp/bent"
if grep -q 'c_cpuf.*assumed' "$tmp/v100"; then
	skip 3 "the CPU is not followed here"
else
	printf '%s\n' 'flops = 13e12' 'mem_bandwidth = 800e9' 'launch_ns = 5000' 'h2d = 12e9' 'd2h = 12e9' \
		'duplex = 0.8' 'eta = 0.9' 'b_remote = 0.8' 'driver = 595' 'o_seg = 400' \
		'link_devices = 1' >"$tmp/known"
	sed -n 's/^| `\(c_[a-z0-9_]*\)`, `\(c_[a-z0-9_]*\)` .* | \([0-9]*\), \([0-9]*\) |$/\1 = \3\n\2 = \4/p
		s/^| `\(c_[a-z0-9_]*\)` .* | \([0-9]*\) |$/\1 = \2/p
		s/^| `\(c_[a-z0-9_]*\)`, `\(c_[a-z0-9_]*\)`.*| \([0-9]*\), \([0-9]*\) |$/\1 = \3\n\2 = \4/p' \
		"$top_srcdir/doc/simulator.md" >>"$tmp/known"
	is "$(differ "$tmp/known" "$tmp/v100")" "" "every constant is found"
	ok "a changed v100 is measured" calibrate "$tmp/bent" -o "$tmp/found"
	is "$(differ "$tmp/bent" "$tmp/found")" "" "every constant is found again"
fi

# JSON, instead of the table. The same device gives the same.
calibrate v100 --format json >"$tmp/v100.json"
like "$(cat "$tmp/v100.json")" '"schema": "umcalibrate/1"' "JSON has a schema"
calibrate v100 -o "$tmp/again" -f json >"$tmp/stdout" 2>"$tmp/stderr"
is "$(cat "$tmp/stdout")" "$(cat "$tmp/v100.json")" "the same device gives the same JSON"
is "$(cat "$tmp/again")" "$(cat "$tmp/v100")" "the same device gives the same profile"
is "$(cat "$tmp/stderr")" "" "no diagnostic is printed"

# Too little memory; nothing is oversubscribed. No such device.
fails 3 "a budget that is too small is refused" calibrate v100 --budget 4MiB -o "$tmp/x"
fails 3 "a budget beyond an eighth of what is free" calibrate v100 --budget 4097MiB -o "$tmp/x"
UMADVISE_DRYRUN_MEMORY=$((64 << 20)) fails 3 "a device with too little memory is refused" calibrate v100 -o "$tmp/x"
fails 3 "an unknown device is refused" calibrate v100 --device 7 -o "$tmp/x"
is "$(ls "$tmp"/x* 2>/dev/null)" "" "no refused run writes a profile"

# A probe that hangs is killed; what it measures stays assumed, the rest is measured. So with less memory, and with a
# driver that has less.
UMADVISE_CALIBRATE_FAULT=remote:hang UMADVISE_DRYRUN_CUDA=12.4 \
	fails 1 "a probe that hangs" calibrate v100 --time 8 --budget 20MiB -o "$tmp/hang"
like "$(cat "$tmp/.tap")" 'probe remote: took longer than 8 s and was killed' "a hanging probe is killed and reported"
like "$(cat "$tmp/hang")" '^b_remote = .* # assumed: ' "its constants are marked as assumed"
like "$(cat "$tmp/hang")" '^c_disc_u = 15000 # assumed: ' "a constant without its function is assumed"
like "$(cat "$tmp/hang")" '^duplex = .* # assumed: ' "a constant that needs more memory is assumed"
like "$(cat "$tmp/hang")" '^c_pf = [0-9]+$' "the rest is measured"

# One that dies, and calls that fail. What was measured is shown and written, and what cannot be written is said.
UMADVISE_CALIBRATE_FAULT=faults:crash UMADVISE_DRYRUN_FAIL=cuMemAdvise_v2:0 \
	fails 3 "a probe that dies, and a profile that cannot be written" calibrate v100 -o "$tmp/no/such/folder"
cp "$tmp/.tap" "$tmp/said"
like "$(cat "$tmp/said")" 'probe faults: died of signal 6' "the one is reported"
like "$(cat "$tmp/said")" "$tmp/no/such/folder: " "the message names the file"
like "$(cat "$tmp/said")" 'probe hints: cudaMemAdvise returned CUDA error 1;' "a call that fails is named"
like "$(cat "$tmp/said")" '^c_pf +ns +[0-9]' "measured constants are shown"
tap_done
