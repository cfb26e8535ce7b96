#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise dryrun: a program's figures, its status and signals, and what is said where there is nothing to tell.
: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${NVCC=}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

[ -e "$top_builddir/standin/libcuda.so.1" ] || skip_all "the stand-in driver was not built"
# shellcheck disable=SC2086 # CC and flags are lists
build() { $CC $SANITIZE -std=c11 -D_GNU_SOURCE -I"$top_srcdir/include" "$@" -ldl -lpthread; }
build -o "$tmp/app" "$top_srcdir/tests/tools/dryrun_app.c" || skip_all "no program can be built"
app=$tmp/app
mkdir "$tmp/t" && export TMPDIR=$tmp/t

dryrun() { "$UMADVISE" dryrun "$@"; }
json() { dryrun --format json -o "$tmp/r.json" "$@"; }
figure() { sed -n "s/^ \{1,3\}\"$1\": \"\\{0,1\\}\\([^\",]*\\)\"\\{0,1\\},\\{0,1\\}\$/\\1/p" "${2:-$tmp/r.json}"; }
figures() { # KEY...: on one line
	local key
	for key; do
		figure "$key"
	done | paste -sd ' '
}

# 4 MiB initialised, doubled, read back, twice: the CPU faults 6 times a block on its way there and on each way back.
one="start compute alloc init launch sync read"
# shellcheck disable=SC2086 # words
ok "a program runs" json "$app" $one launch sync read free
is "$(figures schema program ended profile cuda)" "umdryrun/1 app true v100 13.0" "the report has process and device"
if [ "$(figure cpu)" = on ]; then
	is "$(figures kernels kernels_computed faults batches cpu_faults h2d_bytes d2h_bytes)" \
		"2 2 96 6 36 8388608 8388608" "its figures: initialised, to the device and back twice"
	is "$(grep -c '"faults": 96' "$tmp/r.json")" 3 "kernel and allocation have the same faults"
	# shellcheck disable=SC2086
	ok "a program runs with half of the memory" json --budget 2MiB "$app" $one
	ok "there are evictions" test "$(figure evictions)" -gt 0
	is "$(figures memory_bytes resident_peak_bytes)" "2097152 2097152" "no more than the budget is resident"
else
	skip 5 "this system does not show a process its page tables"
fi
# shellcheck disable=SC2086
ok "a program runs without tracking the CPU" json --cpu off "$app" $one
is "$(figures cpu cpu_faults h2d_bytes d2h_bytes kernels)" "off 0 0 0 1" "nothing comes from it and nothing goes back"
# shellcheck disable=SC2086
ok "a program runs with a driver of 12.4" json --cuda 12.4 --profile a100 "$app" $one
is "$(figures profile cuda)" "a100 12.4" "the report names profile and driver version"
ok "hints, copies, other memory" json "$app" start alloc prefetch refused copy pinned sync
is "$(figures hints hints_refused copies copied_h2d_bytes device_peak_bytes pinned_peak_bytes managed_peak_bytes)" \
	"1 1 1 1048576 1048576 1048576 4194304" "hints and copies are counted"
ok "two processes of a program are run" json sh -c "$app start alloc; $app start; true"
is "$(figure program | paste -sd ' ')" "app app" "each process has a report"
dryrun sh -c "$app start; $app start alloc; $app start _exit=0" >"$tmp/o" 2>"$tmp/e"
is "$(grep -c '^app on' "$tmp/e") $(tail -n 1 "$tmp/e")" \
	"1 2 other processes did no work on the device: app, app (no last report)" \
	"processes that did no work share a line of the table"
dryrun sh -c "$app start; $app start" >"$tmp/o" 2>"$tmp/e"
is "$(grep -c '^app on' "$tmp/e")" 2 "where none did any work each has its table"
ok "a child of fork runs" json "$app" start alloc fork launch sync
is "$(figures program kernels ended)" "app 1 true" "a child of fork has no report"
cp "$tmp/r.json" "$tmp/a.json"
json "$app" start alloc fork launch sync
is "$(grep -v '"pid"' "$tmp/r.json")" "$(grep -v '"pid"' "$tmp/a.json")" "a second run has the same report, to the byte"

# shellcheck disable=SC2086
is "$(dryrun "$app" $one 2>/dev/null)" "sum 2" "kernels with host code compute; standard output is the program's"
is "$(dryrun "$app" start alloc init launch sync read 2>"$tmp/e")" "sum 1" "without, they do not"
like "$(cat "$tmp/e")" '^app on v100 \(simulated\), 32768.0 MiB of device memory, CUDA 13.0:$' "the table has a heading"
like "$(cat "$tmp/e")" '1 of 1 kernels did not compute' "the report says that a kernel did not compute"
like "$(cat "$tmp/e")" '^  twice  *1  *0 ' "the kernel has a row"
ok "the report is written as csv" dryrun --format csv -o "$tmp/r.csv" "$app" start alloc launch sync
is "$(wc -l <"$tmp/r.csv")" 2 "CSV has a heading and a row"
is "$(sed -n 2p "$tmp/r.csv" | cut -d, -f1,3,4)" 'app,1,v100' \
	"the row has the program, the number of kernels and the device"
ok "a log is written" dryrun --log "$tmp/log" -o "$tmp/r" "$app" start alloc launch sync
like "$(cat "$tmp/log")" ' kernel twice ' "the log has events"
fails 137 "a log of a process that is killed" dryrun --log "$tmp/log2" "$app" start alloc launch sync raise=9
ok "the log has all events" cmp "$tmp/log2" "$tmp/log"
printf 'mine\n' >"$tmp/victim"
chmod 604 "$tmp/victim"
ln -s victim "$tmp/to-victim"
ok "--log replaces what a link names" dryrun --log "$tmp/to-victim" "$app" start alloc launch sync
ok "--log leaves the link" test -L "$tmp/to-victim"
is "$(stat -c %a "$tmp/victim")" 604 "--log keeps the permissions of the file"
printf 'mine\n' >"$tmp/victim"
fails 127 "--log of a program that is not there" dryrun --log "$tmp/victim" /nonexistent/program
is "$(<"$tmp/victim")" "mine" "--log leaves the file as it was where no program runs"
fails 125 "--log into a folder that is not there" dryrun --log "$tmp/none/log" "$app" start

fails 5 "an exit status" json "$app" start alloc exit=5
is "$(figure ended)" true "the report says that the program ended"
fails 6 "the status of _exit is passed on" json "$app" start alloc launch sync launch sync _exit=6
is "$(figures ended kernels)" "false 2" "leaves what the last wait knew"
fails 137 "a program killed by SIGKILL is reported as killed" json "$app" start alloc launch sync raise=9
is "$(figures ended kernels)" "false 1" "a killed program has figures"
dryrun "$app" start alloc launch sync raise=9 2>"$tmp/e"
like "$(cat "$tmp/e")" 'The process ended without a last report' "the table says that the program was killed"
fails 134 "a program killed by SIGABRT is reported as aborted" json "$app" start alloc raise=6

cuda_build() { "$NVCC" -I"$top_srcdir/include" "$@" "$top_srcdir/tests/tools/dryrun_app.cu" >"$tmp/e" 2>&1; }
# What nvcc compiles, with the runtime as a library and linked in. 8 MiB are four blocks: 24 CPU faults a pass.
if [ -z "$NVCC" ] || [ -n "$SANITIZE" ]; then
	skip 6 "no nvcc, or a sanitizer that it does not know"
elif ! cuda_build -cudart shared -o "$tmp/shared" || ! cuda_build -cudart static -o "$tmp/linked"; then
	skip 6 "nvcc builds no program: $(head -n 1 "$tmp/e")"
else
	yes AAABCDE | head -c 8388608 >"$tmp/data"
	is "$(dryrun --format json -o "$tmp/r.json" "$tmp/shared" "$tmp/data")" \
		"$(dryrun --cpu off "$tmp/shared" "$tmp/data" 2>/dev/null)" \
		"followed or not, the results are the same"
	is "$(figures program kernels kernels_computed managed_peak_bytes)" "shared 3 3 8388608" \
		"a program of nvcc runs"
	if [ "$(figure cpu)" = on ]; then
		is "$(figures cpu_faults h2d_bytes d2h_bytes)" "96 25165824 25165824" "the CUDA program has its figures"
	else
		skip 1 "this system does not show a process its page tables"
	fi
	ok "the CUDA program runs with less memory" json --budget 4MiB "$tmp/shared" "$tmp/data"
	fails 1 "a program with a static runtime is explained" dryrun "$tmp/linked" "$tmp/data"
	like "$(dryrun "$tmp/linked" "$tmp/data" 2>&1)" \
		"does not support NVIDIA's CUDA runtime inside linked, .*: link the shared one" \
		"a static runtime is reported"
fi

wait_for() { # FILE: has a line
	local i
	for ((i = 0; i < 600; i++)); do
		[ -s "$1" ] && return
		sleep 0.1
	done
	return 1
}
for signal in TERM INT HUP; do
	: >"$tmp/out"
	# Whoever started this by nohup has SIGHUP ignored by all.
	env --default-signal=HUP "$UMADVISE" dryrun -o "$tmp/k" "$app" start alloc launch sync wait \
		>"$tmp/out" 2>"$tmp/e" &
	pid=$!
	wait_for "$tmp/out"
	[ $signal = INT ] && signal=USR1 # the shell lets its background jobs ignore SIGINT
	kill -$signal $pid
	wait $pid
	is $? $((128 + $(kill -l $signal))) "SIG$signal is passed on"
	like "$(cat "$tmp/k")" '1 kernels' "SIG$signal: the kernels before it are reported"
	rm -f "$tmp/k"
done

fails 0 "a program without CUDA is explained" dryrun -o "$tmp/none" true
like "$(dryrun true 2>&1)" '^umadvise dryrun: true never opened libcuda.so.1$' "a program without CUDA is reported"
ok "a program without CUDA leaves no table" test ! -e "$tmp/none"
like "$(dryrun "$app" load 2>&1)" 'app opened libcuda.so.1 but never called cuInit$' \
	"a program that only loads the driver is explained"
fails 127 "an unknown program is refused" dryrun "$tmp/nowhere"
fails 127 "an unknown program in PATH is refused" dryrun no-such-program-here
echo text >"$tmp/text"
fails 126 "a file that is no program is refused" dryrun "$tmp/text"
printf 'exit 4\n' >"$tmp/script" && chmod +x "$tmp/script"
fails 4 "a script without an interpreter line runs" dryrun "$tmp/script"
cp "$app" "$tmp/suid" && chmod u+s "$tmp/suid"
fails 126 "a set-uid program is refused" dryrun "$tmp/suid" start
like "$(dryrun "$tmp/suid" start 2>&1)" 'is set-uid or set-gid' "the refusal names the set-uid program"
if [ -z "$SANITIZE" ] && build -static -o "$tmp/static" "$top_srcdir/tests/tools/dryrun_app.c" 2>/dev/null; then
	like "$(dryrun "$tmp/static" 2>&1)" 'never opened libcuda.so.1: it is linked statically' \
		"a static program is explained"
else
	skip 1 "nothing is linked statically here"
fi
mkdir "$tmp/lib"
cp "$(readlink -f "$top_builddir/standin/libcuda.so.1")" "$tmp/lib/libcuda.so.1"
# shellcheck disable=SC2016 # the loader's own word
if build -o "$tmp/rpath" "$top_srcdir/tests/tools/dryrun_app.c" -Wl,--disable-new-dtags '-Wl,-rpath,$ORIGIN/lib'; then
	like "$(dryrun "$tmp/rpath" 2>&1)" 'its RPATH comes before LD_LIBRARY_PATH and has .*/lib/libcuda.so.1$' \
		"a program with an RPATH is explained"
else
	skip 1 "no RPATH can be made"
fi

# A program with the library names its memory: two tensors in one allocation of the library.
cat >"$tmp/named.c" <<'END'
#include <stdlib.h>
#include <umadvise.h>

int main(int argc, char **argv)
{
	struct umadv *adv;
	void *x, *w;

	(void)argv;
	if (umadv_open(&adv, NULL) || umadv_alloc(adv, &x, 4 << 20, argc > 1 ? "in\033put" : NULL, UMADV_INPUT) ||
	    umadv_alloc(adv, &w, 4 << 20, argc > 1 ? "conv1.weight" : NULL, UMADV_PARAM))
		return 1;
	umadv_iter(adv, NULL);
	umadv_op(adv, NULL, "conv1", UMADV_USES(UMADV_READ(x), UMADV_UPDATE(w)));
	umadv_free(adv, x);
	umadv_close(adv);
	return 0;
}
END
if [ -e "$top_builddir/.libs/libumadvise.so" ] &&
	build -o "$tmp/named" "$tmp/named.c" -L"$top_builddir/.libs" -lumadvise; then
	named() { LD_LIBRARY_PATH=$top_builddir/.libs dryrun "$@"; }
	table=$(named "$tmp/named" yes 2>&1)
	like "$table" '  managed allocation .*  tensors$' "the table has a column for names of tensors"
	like "$table" '^  1 .*  in\\x1bput, conv1\.weight$' \
		"an allocation has the names of the two tensors in it, without control characters"
	named --format json -o "$tmp/named.json" "$tmp/named" yes
	like "$(cat "$tmp/named.json")" '"in\\u001[bB]put"' "JSON has the first name"
	like "$(cat "$tmp/named.json")" '"conv1\.weight"' "JSON has the second name"
	is "$(named "$tmp/named" 2>&1 | grep -c tensors)" 0 "without names the table has no such column"
	is "$(named --format json "$tmp/named" 2>&1 | grep -c tensors)" 0 "without names JSON has no such key"
else
	skip 6 "no shared library was built"
fi
is "$(dryrun "$app" start alloc launch 2>&1 | grep -c tensors)" 0 "without the library the table has no such column"

# The name of a C++ kernel, and a size that is no multiple of a block.
kernel='"_Z25a_kernel_with_a_long_nameIfLi128EEvPT_j"'
if build "-DKERNEL=$kernel" -o "$tmp/cxx" "$top_srcdir/tests/tools/dryrun_app.c"; then
	table=$(dryrun "$tmp/cxx" start alloc launch 2>&1)
	if [[ $table == *_Z25* ]]; then
		skip 2 "built without libstdc++"
	else
		like "$table" '  void a_kernel_with_.*\.\.\..*\(float\*, unsigned int\) ' \
			"the table has the name of a C++ kernel in the source, shortened in the middle"
		like "$(dryrun --format json "$tmp/cxx" start alloc launch 2>&1)" \
			'"symbol": "_Z25a_kernel_with_a_long_nameIfLi128EEvPT_j"' "JSON has its symbol as well"
	fi
fi
if build -DN=750000u -o "$tmp/odd" "$top_srcdir/tests/tools/dryrun_app.c"; then
	is "$(dryrun --format csv "$tmp/odd" start alloc launch 2>&1 | tr -d '\r' | python3 -c 'import csv,sys
r = next(csv.DictReader(sys.stdin))
print(r["managed_peak_bytes"], r["resident_peak_bytes"])')" "3000000 3000000" "no more is resident than allocated"
fi

# A library that was there when the program was built.
mkdir -p "$tmp/lib"
echo 'int cufftPlan1d(void) { return 0; }' >"$tmp/cufft.c"
echo 'int cufftPlan1d(void); int main(void) { return cufftPlan1d(); }' >"$tmp/fft.c"
if build -shared -fPIC -Wl,-soname,libcufft.so.11 -o "$tmp/lib/libcufft.so" "$tmp/cufft.c" &&
	build -o "$tmp/fft" "$tmp/fft.c" -L"$tmp/lib" -lcufft; then
	fails 127 "a program that needs a library that is not there" dryrun "$tmp/fft"
	like "$(dryrun "$tmp/fft" 2>&1)" "^umadvise dryrun: .*/fft needs libcufft.so.11, which is not installed" \
		"the missing library is named"
else
	skip 2 "no shared library can be built"
fi

fails 125 "an output that cannot be" dryrun -o "$tmp/no/such/r" "$app" start exit=3
: >"$tmp/ran"
dryrun -o "$tmp/no/such/r" sh -c "echo yes >'$tmp/ran'" 2>/dev/null
is "$(cat "$tmp/ran")" "" "a refused option does not run the program"
ok "an output that is no file" dryrun -o /dev/null "$app" start
fails 2 "a missing program is refused" dryrun --budget 4MiB
fails 2 "a version that is not there" dryrun --cuda 11.0 "$app"
fails 2 "too little memory is refused" dryrun --budget 1KiB "$app"
fails 3 "a profile that is not there" dryrun --profile nothing "$app"
is "$(ls "$tmp/t")" "" "no folder is left behind"
is "$(find "$tmp" -maxdepth 1 -name '*.json.*' -o -maxdepth 1 -name 'none*')" "" "no half-written file is left"
tap_done
