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
like "$(verdict)" '^hints will be issued on .*, within 32768.0 MiB, by strategy lookahead$' \
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

fails 2 "two programs are a usage error" "$UMADVISE" doctor program program
fails 3 "a program that does not exist is refused" "$UMADVISE" doctor "$tmp/none"
fails 3 "a name that is not in PATH is refused" "$UMADVISE" doctor no-such-program-here
printf '#!/bin/sh\nexec true\n' >"$tmp/script"
fails 3 "a script is refused" "$UMADVISE" doctor "$tmp/script"
like "$("$UMADVISE" doctor "$tmp/script" 2>&1)" "name the program that this script starts$" \
	"the line on a script says what to name"
: >"$tmp/empty"
fails 3 "an empty file is refused" "$UMADVISE" doctor "$tmp/empty"

# Programs with stand-ins for the libraries that they are linked with.
export UMADVISE_DEVICE=sim
mkdir "$tmp/lib"
cat >"$tmp/rt.c" <<'END'
const char *cudaGetErrorName(int err) { return err ? "cudaErrorMissingConfiguration" : "cudaSuccess"; }
int cudaMallocManaged(void **p, unsigned long n, unsigned f) { *p = (void *)cudaGetErrorName((int)n); return (int)f; }
END
echo 'int umadv_open(void **adv, const void *o) { *adv = (void *)o; return 0; }' >"$tmp/um.c"
echo 'int cuMemAllocManaged(void **p, unsigned long n, unsigned f) { *p = 0; return (int)(n + f); }' >"$tmp/cu.c"
cat >"$tmp/app.c" <<'END'
int cudaMallocManaged(void **p, unsigned long n, unsigned f);
const char *cudaGetErrorName(int err);
int umadv_open(void **adv, const void *o);
int cuMemAllocManaged(void **p, unsigned long n, unsigned f);
const char nvtx[] = "NVTX_INJECTION64_PATH", made[] = "Cuda compilation tools, release 12.4, V12.4.131";

int main(int argc, char **argv)
{
	void *p = argv;

#ifdef RUNTIME
	cudaGetErrorName(argc);
#endif
#ifdef MANAGED
	cudaMallocManaged(&p, 1, 1);
#endif
#ifdef DRIVER
	cuMemAllocManaged(&p, 1, 1);
#endif
#ifdef LIBRARY
	umadv_open(&p, 0);
#endif
#ifdef NVTX
	return !argc && nvtx[argc] + made[argc];
#endif
	return 0;
}
END
# shellcheck disable=SC2086 # CC is a list
compile() { $CC -w "$@"; }
shared() { compile -shared -fPIC -Wl,-soname,"$1" -o "$tmp/lib/$1" "$2"; }
if shared libcudart.so.11.0 "$tmp/rt.c" && shared libcudart.so.12 "$tmp/rt.c" && shared libcuda.so.1 "$tmp/cu.c" &&
	shared libumadvise.so.0 "$tmp/um.c" &&
	compile -o "$tmp/all" -DRUNTIME -DMANAGED -DDRIVER -DLIBRARY -DNVTX "$tmp/app.c" "$tmp/lib/libcudart.so.12" \
		"$tmp/lib/libcuda.so.1" "$tmp/lib/libumadvise.so.0" &&
	compile -o "$tmp/old" -DRUNTIME "$tmp/app.c" "$tmp/lib/libcudart.so.11.0" &&
	compile -o "$tmp/static" -DMANAGED -DNVTX "$tmp/app.c" "$tmp/rt.c" &&
	compile -s -o "$tmp/stripped" -DMANAGED "$tmp/app.c" "$tmp/rt.c" &&
	compile -o "$tmp/none" "$tmp/app.c" -ffunction-sections -fdata-sections -Wl,--gc-sections; then
	out=$(doctor "$tmp/all")
	is $? 0 "a program that calls the library gets hints"
	like "$out" '^  CUDA runtime +shared, libcudart.so.12 +\(' "a shared runtime is shown with its name"
	like "$out" '^  CUDA version +12 +\(needs a driver' "the version of CUDA is that of the shared runtime"
	like "$out" '^  managed allocations +cudaMallocManaged, cuMemAllocManaged +\(.*umadv_adopt' \
		"imports that allocate managed memory are shown"
	like "$out" '^  calls the library +yes ' "calls of the library are shown"
	like "$out" '^  NVTX +yes ' "NVTX is shown"
	fails 1 "a program that does not call the library gets no hints" "$UMADVISE" doctor "$tmp/old"
	out=$(doctor "$tmp/old")
	like "$(tail -n 1 <<<"$out")" '^no hints: .*/old does not call the library: umadvise\(3\) ' \
		"the verdict says that the program does not call the library"
	like "$out" '^  CUDA version +11 +\(too old' "an old version of CUDA is shown as such"
	like "$out" '^  managed allocations +none +\(.*umadv_alloc or cudaMallocManaged' \
		"a program without managed memory is told what to call"
	out=$(doctor "$tmp/static")
	like "$out" '^  CUDA runtime +static +\(.*-cudart shared' "a static runtime is shown with what dryrun needs"
	like "$out" '^  CUDA version +12 ' "the version of CUDA is read from device code"
	like "$out" '^  managed allocations +unknown ' "functions of a static runtime say nothing of calls"
	like "$(doctor "$tmp/stripped")" '^  CUDA runtime +static ' "a static runtime is found without symbols"
	out=$(PATH=$tmp:$PATH doctor none)
	like "$out" "^  file +$tmp/none\$" "a program is looked for in PATH"
	like "$out" '^  CUDA runtime +none ' "a program without CUDA is shown as such"
	like "$out" '^  NVTX +no +\(a range around each iteration' "the lack of NVTX is shown with what it is for"
	bad=
	size=$(wc -c <"$tmp/all")
	for ((n = 1; n < 60; n++)); do
		head -c $((size * n / 60)) "$tmp/all" >"$tmp/cut"
		doctor "$tmp/cut" >/dev/null 2>&1
		(($? <= 3)) || bad+=" $n"
	done
	is "$bad" "" "files that are cut off do no harm"
	if command -v python3 >/dev/null; then
		doctor --format json "$tmp/all" >"$tmp/j"
		is "$(json '[d["program"][k]["value"] for k in ("cuda", "library", "nvtx")]' <"$tmp/j")" \
			"['12', 'yes', 'yes']" "JSON has the program's properties"
	else
		skip 1 "no Python"
	fi
else
	skip 19 "no shared library can be built"
fi
unset UMADVISE_DEVICE
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
like "$(tail -n 1 <<<"$out")" '^hints will be issued on .*, within 256.0 MiB, by strategy lookahead$' \
	"the verdict is that of the stand-in's device"
out=$(dry --cuda 12.4)
like "$out" '^  discard +no +\(dead content is copied' "a capability that is missing is shown with what that means"
like "$out" '^  runtime libcudart.so.13 .*newer than the driver' "a runtime newer than the driver is shown as such"
tap_done
