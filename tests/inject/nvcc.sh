# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# nvcc.sh - for shell tests that run programs of nvcc under dryrun, after tap.sh
#
# The test is skipped where they cannot run.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}" "${SANITIZE=}" "${tmp:?}"
driver=$(cd "$top_builddir/standin" 2>/dev/null && pwd)
[ -e "$driver/libcuda.so.1" ] || skip_all "the stand-in driver was not built"
[ -e "$top_builddir/lib/inject/.libs/libumadvise-preload.so" ] || skip_all "the library to preload was not built"
[ -n "$NVCC" ] || skip_all "no nvcc here"
[ -z "$SANITIZE" ] || skip_all "a program of nvcc has no sanitizer, and one must come first"
case $("$NVCC" --version) in
*"release 13."*) ;;
*) skip_all "nvcc is not of version 13" ;;
esac
arch=$("$NVCC" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | head -n 1)
build() { # NAME FLAG...
	"$NVCC" -std=c++17 -arch="sm_$arch" -I"$top_srcdir/include" -o "$tmp/$1" "${@:2}"
}
# With the shared runtime. The test is skipped if nvcc links no program.
build_shared() { # NAME SOURCE
	build "$1" "$2" -cudart shared -L"$driver" -l:libcuda.so.1 >"$tmp/log" 2>&1 ||
		skip_all "nvcc links no program: $(head -n 1 "$tmp/log")"
}
dry() { # BUDGET COMMAND...
	"$UMADVISE" dryrun --profile a100 --format json -o "$tmp/report" --budget "$1" -- "${@:2}"
}
run() { # BUDGET OPTION... PROGRAM ARGUMENT...
	dry "$1" "$UMADVISE" run "${@:2}" 2>"$tmp/err"
}
