#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs.sh - the texts are well-formed, and say what the code says

: "${top_srcdir:=.}"
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 99

lint() { # FILE: no warning from groff
	local out
	out=$(groff -man -ww -b -z -Tutf8 "$1" 2>&1)
	printf '%s\n' "$out"
	[ -z "$out" ]
}
for page in doc/umadvise.3 doc/umadvise.7 tools/umadvise.1; do
	if command -v groff >/dev/null; then
		ok "$page is well-formed" lint "$page"
	else
		skip 1 "no groff"
	fi
done

# What is in $1 and not in $2, both sorted lists.
only() { LC_ALL=C comm -23 <(LC_ALL=C sort -u "$1") <(LC_ALL=C sort -u "$2"); }

sed -n 's/^UMADV_API .*[ *]\(umadv_[a-z0-9_]*\)(.*/\1/p' include/umadvise.h >"$tmp/api"
grep -o 'umadv_[a-z_]*(' doc/umadvise.3 | tr -d '(' >"$tmp/man"
ok "the header has functions" test -s "$tmp/api"
is "$(only "$tmp/api" "$tmp/man")" "" "umadvise(3) has every function"
grep -oh 'umadv_[a-z_]*' doc/umadvise.[37] |
	grep -vxE 'umadv_(options|op_info|use|stats|caps|role|launch_fn|kernel|cuda_launch)?' >"$tmp/named"
is "$(only "$tmp/named" "$tmp/api")" "" "the manuals name only functions of the header"

grep -oh 'UMADVISE_[A-Z_]\+' include/umadvise.h | grep -v '^UMADVISE_H$' >"$tmp/env"
grep -oh 'getenv("UMADVISE_[A-Z_]*' -r lib standin --include='*.c' | sed 's/.*"//' >"$tmp/all"
sed -n 's/^\t{"\(UMADVISE_[A-Z_]*\)",.*/\1/p' lib/runtime/environment.c >"$tmp/read"
ok "the library has a table of environment variables" test -s "$tmp/read"
is "$(grep -v '^UMADVISE_DRYRUN_' "$tmp/all")" "" "no other UMADVISE_ variable is read by the library"
sed -n '/^.SH ENVIRONMENT/,/^.SH SEE/s/^\.B \(UMADVISE_[A-Z_]*\)$/\1/p' doc/umadvise.7 >"$tmp/man"
is "$(only "$tmp/env" "$tmp/man")" "" "umadvise(7) has every variable of the header"
is "$(only "$tmp/read" "$tmp/man")" "" "umadvise(7) has every variable of the table"
is "$(only "$tmp/man" "$tmp/read")" "" "umadvise(7) has no variable that the table lacks"
grep '^UMADVISE_DRYRUN_' "$tmp/all" >"$tmp/read"
grep -oh 'UMADVISE_DRYRUN_[A-Z]*' doc/dryrun.md >"$tmp/man"
is "$(only "$tmp/read" "$tmp/man")" "" "doc/dryrun.md has every variable of the stand-in"
is "$(only "$tmp/man" "$tmp/read")" "" "doc/dryrun.md has only variables of the stand-in"

sed -n 's/^\tFIELD(\([a-z0-9_]*\),.*/`\1`/p' lib/io/profile_file.c >"$tmp/keys"
ok "profiles have keys" test -s "$tmp/keys"
grep -oh '`[a-z0-9_]*`' doc/profiles.md doc/simulator.md >"$tmp/man"
is "$(only "$tmp/keys" "$tmp/man")" "" "each key is in doc/profiles.md or doc/simulator.md"

# The tool's own help against its manual, verb by verb.
if [ -x "${UMADVISE:-}" ]; then
	for verb in simulate plan pool report diff calibrate run dryrun doctor trace; do
		"$UMADVISE" "$verb" --help | grep -oE '(^|[ ,])--[a-z-]+' | tr -d ' ,'
	done >"$tmp/help"
	sed 's/\\-/-/g' tools/umadvise.1 | grep -oE -- '--[a-z-]+' >"$tmp/man"
	echo --version >>"$tmp/help"
	is "$(only "$tmp/help" "$tmp/man")" "" "umadvise(1) has every option"
	is "$(only "$tmp/man" "$tmp/help")" "" "the manual lists only options of --help"
else
	skip 2 "the tool was not built"
fi

# Files that texts and comments point to.
grep -rohE '\b(doc|examples|tests|tools|lib|include|bench)/[a-zA-Z0-9_/.-]+\.(md|c|h|sh|[137])\b' \
	README.md CONTRIBUTING.md SECURITY.md doc lib tools standin include \
	--include='*.md' --include='*.[ch137]' >"$tmp/files"
gone=$(LC_ALL=C sort -u "$tmp/files" | while read -r f; do [ -e "$f" ] || echo "$f"; done)
is "$gone" "" "every file that is pointed to is there"

version=$(sed -n 's/^AC_INIT(\[libumadvise\], \[\(.*\)\])$/\1/p' configure.ac)
header=$(awk '/define UMADV_VERSION_[MP]/ { v = v "." $3 } END { print substr(v, 2) }' include/umadvise.h)
is "$header" "$version" "the header and configure agree on the version"
like "$(head -n 1 NEWS)" "^$version" "NEWS begins with it"

scripts() {
	printf '%s\n' quickstart bootstrap .ci/run share/bash-completion/completions/umadvise \
		debian/tests/consumer debian/tests/tool
	find tests bench -name '*.sh'
}
if command -v shellcheck >/dev/null; then
	# shellcheck disable=SC2046 # no blanks in our names
	ok "shellcheck finds nothing" shellcheck -x $(scripts)
else
	skip 1 "no shellcheck"
fi
tap_done
