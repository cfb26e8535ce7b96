#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# debian.sh - Debian packages build from the release archive, and what they install can be used
#
# With UM_TEST_PACKAGES only: the build compiles all of the library and the tool once more.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${MAKE:=make}"
. "$top_srcdir/tests/tap.sh"

# The list of symbols by itself is quick.
symbols() { awk -f "$top_srcdir/debian/symbols.awk" "$1"; }
ok "a symbols file is made of lib/libumadvise.map" symbols "$top_srcdir/lib/libumadvise.map"
symbols "$top_srcdir/lib/libumadvise.map" >"$tmp/symbols"
is "$(sed -n 's/^ \(umadv_[a-z_]*\)@UMADVISE_[0-9_]* .*/\1/p' "$tmp/symbols")" \
	"$(sed -n 's/^\t\(umadv_[a-z0-9_]*\);$/\1/p' "$top_srcdir/lib/libumadvise.map")" "it has every function"
sed 's,^UMADVISE_0 {.*,UMADVISE_0 {,' "$top_srcdir/lib/libumadvise.map" >"$tmp/map"
fails 1 "a node of the map that names no release is refused" symbols "$tmp/map"
version=$(sed -n 's/^AC_INIT(\[libumadvise\], \[\(.*\)\])$/\1/p' "$top_srcdir/configure.ac")
like "$(head -n 1 "$top_srcdir/debian/changelog")" "^libumadvise \($version-[0-9.]+\) " \
	"debian/changelog begins with the version of configure.ac"

why=
[ -n "${UM_TEST_PACKAGES-}" ] || why="packages are built with UM_TEST_PACKAGES"
for tool in dpkg-buildpackage dh xz; do
	command -v "$tool" >/dev/null || why="no $tool"
done
[ -n "$why" ] || (cd "$top_srcdir" && dpkg-checkbuilddeps) 2>"$tmp/log" || why=$(head -n 1 "$tmp/log")
if [ -n "$why" ]; then
	skip 1 "$why"
	tap_done
fi

mkdir "$tmp/dist" "$tmp/build" "$tmp/root"
(cd "$tmp/dist" && "$top_srcdir/configure" -q && "$MAKE" -s dist) >"$tmp/log" 2>&1
mv "$tmp/dist/libumadvise-$version.tar.xz" "$tmp/build/libumadvise_$version.orig.tar.xz"
is $? 0 "the release archive is made" || diag "$(tail "$tmp/log")"
cd "$tmp/build" && tar -xf "libumadvise_$version.orig.tar.xz" && cd "libumadvise-$version" || exit 99

# Files that no package has and symbols that came or went end it.
build() {
	env -u DEB_BUILD_PROFILES -u CC -u CXX -u NM \
		DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" dpkg-buildpackage -us -uc
}
build >"$tmp/log" 2>&1
is $? 0 "dpkg-buildpackage succeeds" || { diag "$(tail -n 40 "$tmp/log")"; tap_done; }
is "$(grep -E '^dpkg-gensymbols: |^[-+] .*@UMADVISE' "$tmp/log")" "" "the library exports what the symbols file has"
is "$(grep -E '^(dpkg-shlibdeps|dh_[a-z]+): warning' "$tmp/log" | grep -v 'useless dependency')" "" \
	"no step of the build warns"
cd ..
is "$(find . -maxdepth 1 -name '*.deb' -printf '%f\n' | sed 's/_.*//' | LC_ALL=C sort | tr '\n' ' ')" \
	"libumadvise-dev libumadvise0 umadvise " "there are packages of the library, for development, and of the tool"

for deb in *.deb; do
	dpkg-deb -c "$deb" | awk -v deb="${deb%%_*}" '/^[^d]/ { print $6, deb }'
	dpkg-deb -x "$deb" "$tmp/root"
done >"$tmp/files"
is "$(cut -d' ' -f1 "$tmp/files" | LC_ALL=C sort | uniq -d)" "" "no two packages have a file in common"
in_package() { grep -qE "^\./$1 $2\$" "$tmp/files"; }
ok "the library's package has nothing but the library and its documents" test -z \
	"$(grep ' libumadvise0$' "$tmp/files" | grep -vE '/libumadvise\.so\.0[0-9.]* |/usr/share/doc/')"
ok "the package for development has the header" in_package usr/include/umadvise.h libumadvise-dev
ok "the tool's package has its manual" in_package usr/share/man/man1/umadvise.1.gz umadvise
ok "the tool's package has the library of umadvise run" in_package \
	'usr/lib/[^/]*/libumadvise/libumadvise-preload.so' umadvise

if command -v lintian >/dev/null; then
	ok "lintian finds no error" lintian --allow-root --fail-on error ./*.changes
else
	skip 1 "no lintian"
fi

cd "libumadvise-$version" || exit 99
for test in consumer tool; do
	mkdir "$tmp/$test"
	ok "debian/tests/$test succeeds on the unpacked packages" env -u CC UM_ROOT="$tmp/root" \
		AUTOPKGTEST_TMP="$tmp/$test" "debian/tests/$test"
done
tap_done
