# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# python.sh - for shell tests that run programs of Python under umadvise run, after tap.sh
#
# The test is skipped where they cannot run.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${PYTHON3=}"
python=${PYTHON3:-$(type -P python3)}
[ -n "$python" ] || skip_all "no python3"
[ -e "$top_builddir/lib/inject/.libs/libumadvise-preload.so" ] || skip_all "the library to preload was not built"
# With a sanitizer the preloaded library comes before the sanitizer's, and Python frees little at its end.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:detect_leaks=0"
export PYTHONDONTWRITEBYTECODE=1
# shellcheck disable=SC2034 # read by the tests
share=$(cd "$top_srcdir/share/python" && pwd)
