#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# format.sh - sources are formatted by clang-format and .clang-format
#
# Other major versions format some lines differently, so the test asks for the one that the tree was formatted with.

: "${top_srcdir:=.}"
. "$top_srcdir/tests/tap.sh"

version=14
tool=
for name in clang-format-$version clang-format; do
	if command -v "$name" >/dev/null && "$name" --version | grep -q "version $version\\."; then
		tool=$name
		break
	fi
done
[ -n "$tool" ] || skip_all "no clang-format $version"
[ -e "$top_srcdir/.clang-format" ] || skip_all "the source archive has no .clang-format"

printf 'int  f( void ) {return 0;}\n' >"$tmp/a.c"
cp "$top_srcdir/.clang-format" "$tmp/"
ok "an unformatted file is reported" eval "! $tool --dry-run --Werror '$tmp/a.c'"

found=$(cd "$top_srcdir" && find lib tools standin include tests bench examples -name '*.[ch]' ! -path 'tests/data/*' |
	LC_ALL=C sort | xargs "$tool" --dry-run 2>&1 | sed -n 's/^\([^:]*:[0-9]*\):.*/\1/p' | head -n 20)
is "$found" "" "every source is formatted ($tool -i FILE formats one)"
tap_done
