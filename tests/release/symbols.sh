#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# symbols.sh - what the shared library exports and contains

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NM:=nm}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

so=$top_builddir/.libs/libumadvise.so
[ -e "$so" ] || skip_all "no shared library was built"

# The version's own name (UMADVISE_0, type A) is not a symbol of ours.
$NM -D --defined-only "$so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort >"$tmp/has"
is "$(grep -v '^umadv_' "$tmp/has" | tr '\n' ' ')" "InitializeInjectionNvtx2 InitializeInjectionNvtxExtension " \
	"beside names that begin with umadv_ the library exports only what NVTX looks up"

sed -n 's/^UMADV_API .*[ *]\(umadv_[a-z0-9_]*\)(.*/\1/p' "$top_srcdir/include/umadvise.h" | LC_ALL=C sort >"$tmp/says"
ok "the header declares functions" test -s "$tmp/says"
is "$(LC_ALL=C comm -13 "$tmp/has" "$tmp/says")" "" "the library exports every function of the header"
is "$(grep '^umadv_' "$tmp/has" | LC_ALL=C comm -23 - "$tmp/says")" "" "every exported symbol is declared in the header"

# The list of exports is written by hand, release by release.
sed -n 's/^\t\([A-Za-z][A-Za-z0-9_]*\);$/\1/p' "$top_srcdir/lib/libumadvise.map" | LC_ALL=C sort >"$tmp/listed"
is "$(diff "$tmp/listed" "$tmp/has")" "" "the exported symbols are those listed in lib/libumadvise.map"
is "$(grep -c '\*;' "$top_srcdir/lib/libumadvise.map")" 1 "the export list has no wildcard but that of local symbols"

preload=$top_builddir/lib/inject/.libs/libumadvise-preload.so
if [ -e "$preload" ]; then
	is "$($NM -D --defined-only "$preload" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u |
		grep -v '^cu[A-Z]' | tr '\n' ' ')" "InitializeInjectionNvtx2 InitializeInjectionNvtxExtension dlsym \
umadvise_run_begin umadvise_run_end umadvise_run_iteration umadvise_run_wants " \
		"the preloaded library exports only the driver's functions, dlsym, and what NVTX and modules call"
else
	skip 1 "no library to preload was built"
fi

if [ "${VERSION_SCRIPT:-yes}" = yes ]; then
	$NM -D --with-symbol-versions "$so" | grep ' [TDBR] ' >"$tmp/versions"
	is "$(grep -v '@@UMADVISE_0$' "$tmp/versions")" "" "all carry the version UMADVISE_0"
else
	skip 1 "this linker knows no symbol versions"
fi

# The tool has the comparison schemes, the players, the probes and SQLite; the library has none of them.
tool=$top_builddir/tools/.libs/umadvise
[ -x "$tool" ] || tool=$top_builddir/tools/umadvise
tool_only='um_(schemes_|deepum|scheme_(vdnn|capuchin|g10|swapadvisor)|play_|plan_player|jitter|trace_period'
tool_only+='|caching_alloc|probe_|bench_|trace_load|umtrace_read|log_read|report_|nsys_[a-ln-z])'
inside() { $NM "$1" | grep -oE " $tool_only.*"; }
for what in um_schemes_add um_play um_probe um_log_read um_umtrace_read; do
	ok "the tool contains $what" grep -q " $what" <($NM "$tool")
done
is "$(inside "$so")" "" "the library contains no comparison scheme, player, probe or report"
ok "the library contains the schemes that a program can choose" grep -q um_scheme_autoswap <($NM "$so")
ok "the tool links SQLite" grep -q sqlite3_open <($NM -D "$tool")
is "$($NM -D "$so" | grep sqlite3)" "" "the library does not link SQLite"

# Machine code and constants of a build for x86-64 without sanitizers: a quarter above what the release has.
limit=819200
text=$(size "$so" 2>/dev/null | awk 'NR == 2 { print $1 }')
if [ -n "$SANITIZE" ] || [ "$(uname -m)" != x86_64 ] || [ -z "$text" ]; then
	skip 1 "sizes are known for x86-64 without sanitizers"
else
	ok "the library has at most $limit bytes of code and constants ($text)" test "$text" -le "$limit"
fi
tap_done
