#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# NVTX ranges of a program are its iterations (UMADVISE_ITERATION): with NVTX's own headers, in C and C++, beside
# another tool, and with several libraries that each initialise NVTX.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${CXX:=c++}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

so=$top_builddir/.libs/libumadvise.so
spy=$top_builddir/tests/runtime/.libs/nvtx_spy.so
[ -e "$so" ] || skip_all "no shared library is built"
[ -e "$spy" ] || skip_all "no shared library of the test is built"
[ -z "$SANITIZE" ] || skip_all "programs without sanitizers do not load a library with them"
so=$(cd "$(dirname "$so")" && pwd)/libumadvise.so
spy=$(cd "$(dirname "$spy")" && pwd)/nvtx_spy.so
for include in /usr/include /usr/local/cuda/include none; do
	[ -e "$include/nvtx3/nvToolsExtPayload.h" ] && break
done
[ "$include" != none ] || skip_all "no headers of NVTX 3"

app=$top_srcdir/tests/runtime/nvtx_app.c
flags=(-I"$top_srcdir/include" -isystem "$include" -pthread)
link=("$so" "-Wl,-rpath,$(dirname "$so")" -ldl)
# shellcheck disable=SC2086 # CC is a list
ok "a library with NVTX compiles" $CC -std=gnu11 -fPIC -shared "${flags[@]}" -DLIBRARY -o "$tmp/librange.so" "$app" -ldl
# shellcheck disable=SC2086 # CC is a list
ok "a program in C compiles" $CC -std=gnu11 "${flags[@]}" -o "$tmp/c" "$app" "$tmp/librange.so" "${link[@]}" \
	-Wl,-rpath,"$tmp"
# shellcheck disable=SC2086 # CXX is a list
ok "a program in C++ compiles" $CXX -std=c++17 -x c++ "${flags[@]}" -o "$tmp/cpp" "$app" -x none "$tmp/librange.so" \
	"${link[@]}" -Wl,-rpath,"$tmp"

marked() { # PATTERN PROGRAM KIND
	UMADVISE_ITERATION=$1 "$tmp/$2" "$3" 2>&1
}

for lang in c cpp; do
	for kind in push push-ex start; do
		is "$(marked 'Train step *' $lang $kind | cut -d' ' -f1)" 6 "$lang, $kind: each range is an iteration"
	done
done
ok "iterations by NVTX have hints" test "$(marked 'Train step *' c push | cut -d' ' -f2)" -ge 4
is "$(marked 'Train step' c wide | cut -d' ' -f1)" 6 "ranges with wide names are iterations"
is "$(marked 'trainer/Train*' c domain | cut -d' ' -f1)" 6 "ranges of a domain are iterations"
is "$(marked 'Train*' cpp domain-push | cut -d' ' -f1)" 6 "a pattern without a domain fits every domain"
is "$(marked 'other/Train*' c domain | cut -d' ' -f1)" 0 "ranges of another domain are none"
is "$(marked 'trainer/Train step' c string | cut -d' ' -f1)" 6 "ranges named by registered strings are iterations"
is "$(marked 'Train step *' c library | cut -d' ' -f1)" 6 "ranges of another library of the process are iterations"
is "$(marked 'Train step *' cpp thread | cut -d' ' -f1)" 6 "ranges of another thread are iterations"
is "$(marked 'Train step *' c both | cut -d' ' -f1)" 6 "a program that calls umadv_iter is marked by that only"
is "$(marked 'Train step mark' c irregular | cut -d' ' -f1)" 0 "marks without a duration are no iterations"
is "$(marked 'Train step *' c no-context)" "0 0" "a program without a context runs"
is "$(NVTX_INJECTION64_PATH=$so marked 'Train step *' c no-context)" "0 0" \
	"a program without a context runs with the library loaded by NVTX"
is "$(NVTX_INJECTION64_PATH=$so marked 'Train step *' c fork | cut -d' ' -f1)" 6 "a forked child has its iterations"
is "$(NVTX_INJECTION64_PATH=$so marked 'Train step *' c before | cut -d' ' -f1)" 6 \
	"NVTX may load the library before a context is opened"

# Another tool.
count() { grep -cE "^[0-9]+ [0-9]+ $1" "$tmp/spied"; }
beside() { # VARIABLE KIND
	rm -f "$tmp/spied"
	env "$1=$spy" NVTX_SPY="$tmp/spied" UMADVISE_NVTX=off UMADVISE_ITERATION='Train step *' "$tmp/c" "$2"
}
for variable in NVTX_INJECTION64_PATH UMADVISE_NVTX_NEXT; do
	is "$(beside $variable domain | cut -d' ' -f1)" 6 "$variable: ranges are iterations beside another tool"
	is "$(count 'start [0-9]+ [0-9]+ Train step')" 6 "$variable: the other tool has each range"
	is "$(count 'end [0-9]+ [0-9]+')" 6 "$variable: the other tool has the end of each"
	is "$(count 'domain 1 trainer')" 1 "$variable: the other tool has the domain"
done
ok "a program runs without UMADVISE_ITERATION" env NVTX_INJECTION64_PATH="$so" UMADVISE_NVTX_NEXT="$spy" \
	NVTX_SPY="$tmp/alone" "$tmp/c" domain
is "$(grep -c 'Train step' "$tmp/alone")" 6 "the other tool has each range then"
is "$(env NVTX_INJECTION64_PATH="$so" UMADVISE_NVTX_NEXT="$so" UMADVISE_ITERATION='Train step *' "$tmp/c" push |
	cut -d' ' -f1)" 6 "the library is not its own next tool"
is "$(env NVTX_INJECTION64_PATH=/none.so UMADVISE_ITERATION='Train step *' "$tmp/c" push | cut -d' ' -f1)" 6 \
	"a tool that does not exist is no harm"

# A real profiler.
if command -v nsys >"$tmp/which"; then
	is "$(UMADVISE_NVTX=off UMADVISE_ITERATION='Train step *' nsys profile -t nvtx -s none --cpuctxsw=none \
		-o "$tmp/r" "$tmp/c" push 2>"$tmp/nsys" | grep -c '^6 ')" 1 "ranges are iterations under nsys"
	ok "nsys exports what it recorded" nsys export --type sqlite -o "$tmp/r.sqlite" "$tmp/r.nsys-rep"
	is "$(python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("select count(*) from NVTX_EVENTS where coalesce(text, (select value from"
      " StringIds where id = textId)) like \"Train step _\"").fetchone()[0])' "$tmp/r.sqlite")" 6 "nsys has each range"
else
	skip 3 "no nsys"
fi

# Marks of the library itself.
rm -f "$tmp/spied"
is "$(env NVTX_INJECTION64_PATH="$spy" NVTX_SPY="$tmp/spied" UMADVISE_NVTX=iterations UMADVISE_ITERATION='*' \
	"$tmp/c" none | cut -d' ' -f1)" 6 "ranges of the library itself are no iterations: only the inner ones are"
ok "they reach the other tool" test "$(count 'domain [0-9]+ umadvise')" = 1

tap_done
