#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# dist.sh - the release archive has every file, and is the same whoever makes it, when and where
#
# Archives are made with UM_TEST_PACKAGES only: each takes seconds of configure, copies and xz.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${MAKE:=make}"
. "$top_srcdir/tests/tap.sh"

# The .git of a work tree is a file.
if [ -e "$top_srcdir/.git" ] && git -C "$top_srcdir" ls-files >"$tmp/files" 2>/dev/null; then
	cat >"$tmp/show.mk" <<-'END'
		include Makefile
		show: ; @printf '%s\n' $(patsubst $(top_srcdir)/%,%,$(DISTFILES))
	END
	"$MAKE" -s -C "$top_builddir" -f "$tmp/show.mk" show >"$tmp/names"
	ok "the Makefile lists the files of the archive" test -s "$tmp/names"
	# Of folders all files are in the archive.
	gone=$(awk '
		FNR == NR { listed[$0]; next }
		/^\.git/ { next }
		{
			for (name = $0; name != "" && !(name in listed); )
				if (!sub(/\/[^\/]*$/, "", name))
					name = ""
			if (name == "") print
		}' "$tmp/names" "$tmp/files")
	is "$gone" "" "every file of the repository is in the release archive"
else
	skip 2 "no repository"
fi

if [ -z "${UM_TEST_PACKAGES-}" ]; then
	skip 1 "archives are made with UM_TEST_PACKAGES"
	tap_done
fi
if ! tar --version | grep -q GNU || ! command -v xz >/dev/null; then
	skip 1 "no GNU tar, or no xz"
	tap_done
fi

archive() { # FOLDER SOURCES: configures there and makes it
	mkdir "$tmp/$1" && cd "$tmp/$1" && "$2/configure" -q --cache-file="$tmp/cache" && "$MAKE" -s dist
}
made=$(sed -n 's/^AC_INIT(\[\([^]]*\)\], \[\([^]]*\)\])$/\1-\2/p' "$top_srcdir/configure.ac")
first=$tmp/a/$made.tar.xz
(umask 022 && TZ=UTC archive a "$top_srcdir") >"$tmp/log" 2>&1
is $? 0 "make dist succeeds" || diag "$(tail "$tmp/log")"

# Other times, modes, folder, umask, time zone and settings of tar and xz. In an unpacked archive NEWS has its time.
mkdir "$tmp/src"
(umask 077 && tar -xf "$first" -C "$tmp/src" --no-same-permissions --no-same-owner)
find "$tmp/src" -type f ! -name NEWS -exec touch -d 2020-02-02 {} +
(umask 077 && export TZ=Asia/Tokyo XZ_OPT=-0 TAR_OPTIONS=--owner=daemon LC_ALL=en_US.UTF-8 &&
	archive b "$tmp/src/$made") >"$tmp/log" 2>&1
is $? 0 "make dist succeeds in the unpacked archive" || diag "$(tail "$tmp/log")"
ok "both archives are the same, byte for byte" cmp "$first" "$tmp/b/$made.tar.xz"

tar -tvf "$first" --numeric-owner --full-time --utc >"$tmp/list"
is "$(awk '{ print $1 }' "$tmp/list" | LC_ALL=C sort -u | tr '\n' ' ')" "-rw-r--r-- -rwxr-xr-x drwxr-xr-x " \
	"files of the archive are readable for all and writable for their owner"
is "$(awk '{ print $2 }' "$tmp/list" | LC_ALL=C sort -u)" 0/0 "all of it belongs to user and group 0"
is "$(awk '{ print $4, $5 }' "$tmp/list" | LC_ALL=C sort -u | wc -l)" 1 "all files have one time"

(cd "$tmp/a" && SOURCE_DATE_EPOCH=86400 "$MAKE" -s dist) >"$tmp/log" 2>&1
is "$(tar -tvf "$first" --full-time --utc | awk '{ print $4, $5 }' | LC_ALL=C sort -u)" "1970-01-02 00:00:00" \
	"SOURCE_DATE_EPOCH sets that time"
tap_done
