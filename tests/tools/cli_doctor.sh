#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise doctor: what it says of the environment, the libraries, the device, and why there are no hints.
: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

doctor() { "$UMADVISE" doctor "$@"; }
verdict() { doctor | tail -n 1; }
json() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }

export UMADVISE_DEVICE=sim
ok "the simulated GPU needs no driver" doctor
like "$(verdict)" '^hints will be issued on .*, within 32768.0 MiB, by lookahead$' \
	"the last line names device, budget and strategy"
like "$(UMADVISE_BUDGET='1.5 GiB' doctor)" '^  budget +1536.0 MiB +\(UMADVISE_BUDGET\)$' \
	"the budget is shown with the variable that sets it"
like "$(UMADVISE_PROFILE=a100 doctor)" '^  profile +a100 +\(UMADVISE_PROFILE\)$' \
	"the profile is shown with the variable that sets it"
like "$(UMADVISE_PROFILE=a1000 doctor)" '^  profile +v100 +\(the default\)$' \
	"a profile that cannot be read is not used"
fails 1 "no hints is status 1" env UMADVISE_DISABLE=1 "$UMADVISE" doctor
like "$(UMADVISE_DISABLE=1 verdict)" '^no hints: UMADVISE_DISABLE .*unset it$' "the verdict names UMADVISE_DISABLE"
like "$(UMADVISE_DEVICE=none verdict)" '^no hints: UMADVISE_DEVICE=none ' "the verdict names UMADVISE_DEVICE=none"
like "$(UMADVISE_STRATEGY=on-demand verdict)" '^no hints: .*UMADVISE_STRATEGY$' \
	"the verdict names the strategy on-demand"
out=$(UMADVISE_EVICT=nobody UMADVISE_BUGDET=1 UMADVISE_NVTX=$'o\033f' doctor)
like "$out" '^  UMADVISE_DEVICE +sim +\(the device: ' "a variable is shown with its value and what it means"
like "$out" '^  UMADVISE_EVICT +nobody +\(ignored: accepted: auto, library or driver\)$' \
	"a value that is not accepted is shown with what is"
like "$out" '^  UMADVISE_BUGDET +.*did you mean UMADVISE_BUDGET\?\)$' \
	"an unknown variable is shown with the one that it is near"
like "$out" '^  UMADVISE_NVTX +o\\x1bf ' "control characters of a value do not reach the terminal"
is "$(UMADVISE_TRACE=$tmp/t UMADVISE_RUN_LOG=$tmp/r doctor >/dev/null; ls "$tmp")" "" \
	"no trace and no report is written"
like "$(UMADVISE_PLAN=$tmp/none doctor)" "^  error: plan $tmp/none: " "a plan that cannot be read is named"

if command -v python3 >/dev/null; then
	UMADVISE_EVICT=nobody UMADVISE_BUGDET=1 doctor --format json >"$tmp/j"
	is "$(json '" ".join(d)' <"$tmp/j")" \
		"schema version environment unknown_variables libraries device choices log verdict hints" \
		"JSON has a key for each part"
	is "$(json '[v["accepted"] for v in d["environment"] if v["value"] == "nobody" and not v["used"]]' <"$tmp/j")" \
		"['auto, library or driver']" "JSON has each variable"
	is "$(json 'd["unknown_variables"]' <"$tmp/j")" "[{'name': 'UMADVISE_BUGDET', 'near': 'UMADVISE_BUDGET'}]" \
		"JSON has unknown variables"
	is "$(json '[l["name"] for l in d["libraries"]][:3]' <"$tmp/j")" \
		"['libcuda.so.1', 'libcudart.so.13', 'libcudart.so.12']" "JSON has the libraries in the order of use"
	is "$(json 'len(d["environment"])' <"$tmp/j")" \
		"$(grep -c '^	{"UMADVISE_' "$top_srcdir/lib/runtime/environment.c")" \
			"JSON has every variable of the table"
else
	skip 5 "no Python"
fi
unset UMADVISE_DEVICE

fails 2 "an operand is a usage error" "$UMADVISE" doctor program
if [ -e /dev/nvidiactl ] || ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
	skip 3 "this machine has a CUDA driver"
else
	fails 1 "without a driver there are no hints" "$UMADVISE" doctor
	like "$(verdict)" "^no hints: no CUDA driver on this machine .*umadvise dryrun -- PROGRAM" \
		"the verdict says what helps"
	like "$(doctor)" '^  driver libcuda.so.1 +not found' "the driver library is shown as missing"
fi

[ -e "$top_builddir/standin/libcuda.so.1" ] || {
	skip 7 "the stand-in driver was not built"
	tap_done
}
# Libtool's wrapper is a shell script that loads nothing.
app=$UMADVISE
[ -x "$top_builddir/tools/.libs/umadvise" ] && app=$top_builddir/tools/.libs/umadvise
dry() { "$UMADVISE" dryrun -o "$tmp/dry" "$@" -- "$app" doctor; }
out=$(dry --profile a100 --budget 256MiB)
is "$?" 0 "hints are issued over the stand-in driver"
like "$out" '^  driver libcuda.so.1 +found 13.0, ' "the driver is shown with its version and path"
like "$out" '^  discard +yes ' "the device discards under CUDA 13"
like "$out" '^  profile +a100 +\(the stand-in driver\)$' "the profile is the stand-in's"
like "$(tail -n 1 <<<"$out")" '^hints will be issued on .*, within 256.0 MiB, by lookahead$' \
	"the verdict is that of the stand-in's device"
out=$(dry --cuda 12.4)
like "$out" '^  discard +no +\(dead content is copied' "a capability that is missing is shown with what that means"
like "$out" '^  runtime libcudart.so.13 .*newer than the driver' "a runtime newer than the driver is shown as such"
tap_done
