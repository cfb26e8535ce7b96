#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# symbols.sh - the shared library shows umadv_* and nothing else, and all that the header declares

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NM:=nm}"
. "$top_srcdir/tests/tap.sh"

so=$top_builddir/.libs/libumadvise.so
[ -e "$so" ] || skip_all "no shared library was built"

# The version's own name (UMADVISE_0, type A) is not a symbol of ours.
$NM -D --defined-only "$so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort >"$tmp/has"
is "$(grep -v '^umadv_' "$tmp/has")" "" "nothing but umadv_* is visible"

sed -n 's/^UMADV_API .*[ *]\(umadv_[a-z0-9_]*\)(.*/\1/p' "$top_srcdir/include/umadvise.h" | LC_ALL=C sort >"$tmp/says"
ok "the header declares functions" test -s "$tmp/says"
is "$(LC_ALL=C comm -13 "$tmp/has" "$tmp/says")" "" "every function of the header is there"
is "$(LC_ALL=C comm -23 "$tmp/has" "$tmp/says")" "" "every visible function is in the header"

if [ "${VERSION_SCRIPT:-yes}" = yes ]; then
	$NM -D --with-symbol-versions "$so" | grep ' [TDBR] ' >"$tmp/versions"
	is "$(grep -v '@@UMADVISE_0$' "$tmp/versions")" "" "all carry the version UMADVISE_0"
else
	skip 1 "this linker knows no symbol versions"
fi

# Schemes that are only compared with (lib/peers) are in the tool, and not in the library.
peers() { $NM "$1" | grep -oE ' um_(peers|deepum|scheme_(vdnn|capuchin|g10|swapadvisor)).*'; }
tool=$top_builddir/tools/.libs/umadvise
[ -x "$tool" ] || tool=$top_builddir/tools/umadvise
ok "the tool has schemes to compare with" test -n "$(peers "$tool")"
is "$(peers "$so")" "" "the library has none of them"
ok "but those of its own" grep -q um_scheme_autoswap <($NM "$so")

# SQLite is the tool's matter.
ok "the tool has SQLite" grep -q sqlite3_open <($NM -D "$tool")
is "$($NM -D "$so" | grep sqlite3)" "" "the library has not"
tap_done
