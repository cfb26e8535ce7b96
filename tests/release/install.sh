#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# install.sh - what is installed can be used: by pkg-config, shared and static, and by CMake

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${MAKE:=make}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

dest=$tmp/dest
ok "make install DESTDIR=" "$MAKE" -s -C "$top_builddir" install DESTDIR="$dest" || { tap_done; }

libdir=$(find "$dest" -name umadvise.pc -printf '%h\n' | head -n 1)
libdir=${libdir%/pkgconfig}
ok "a .pc file is there" test -n "$libdir"
installed() { # PATTERN NAME
	ok "$2 is there" test -n "$(find "$dest" -path "$1" | head -n 1)"
}
installed '*/include/umadvise.h' "the header"
installed '*/include/umadvise.hpp' "the header for C++"
installed '*/include/umadvise_cuda.h' "the header for launches of CUDA"
installed '*/cmake/umadvise/umadviseConfig.cmake' "the CMake package"
installed '*/man/man7/umadvise.7' "the manual on concepts"
installed '*/man/man3/umadvise.3' "the manual of the API"
installed '*/man/man1/umadvise.1' "the manual of the tool"
installed '*/bin/umadvise' "the tool"
[ ! -e "$top_builddir/lib/inject/.libs/libumadvise-preload.so" ] ||
	installed '*/libumadvise/libumadvise-preload.so' "the library of umadvise run"
installed '*/umadvise/nsys/umadvise.py' "the report for nsys stats"
for i in sitecustomize.py umadvise/__init__.py umadvise/cupy.py umadvise/torch.py; do
	installed "*/libumadvise/python/$i" "python/$i of umadvise run"
done
if [ -n "${SANITIZE-}" ]; then
	skip 1 "env has no sanitizer, and one must come first"
else
	tool=$(find "$dest" -path '*/bin/umadvise')
	is "$("$tool" run env 2>/dev/null | sed -n 's/^PYTHONPATH=\([^:]*\).*/\1/p')" \
		"$(cd "$(find "$dest" -name sitecustomize.py -printf '%h\n')" && pwd -P)" \
		"the installed tool finds them"
fi
installed '*/bash-completion/completions/umadvise' "the completion for bash"
is "$(cd "$dest" && find . -name 'um_*' -o -name 'libum.*' -o -path '*/include/*/*')" "" "nothing private is installed"

consumer=$top_srcdir/tests/release/consumer
version=$(sed -n 's/^Version: //p' "$libdir/pkgconfig/umadvise.pc")
# The prefix is moved below DESTDIR for ours alone; zlib and jansson are the system's.
pc() {
	PKG_CONFIG_PATH=$libdir/pkgconfig ${PKG_CONFIG:-pkg-config} --define-variable=prefix="$dest$prefix" "$@"
}
prefix=$(sed -n 's/^prefix=//p' "$libdir/pkgconfig/umadvise.pc")

if ! command -v "${PKG_CONFIG:-pkg-config}" >/dev/null; then
	skip 5 "no pkg-config"
else
	is "$(pc --modversion umadvise)" "$version" "pkg-config finds it"
	# shellcheck disable=SC2046,SC2086 # lists of flags
	shared() { $CC $SANITIZE -o "$tmp/shared" "$consumer/use.c" $(pc --cflags --libs umadvise); }
	# shellcheck disable=SC2046,SC2086
	static() {
		$CC $SANITIZE -o "$tmp/static" "$consumer/use.c" \
			$(pc --cflags --libs --static umadvise | sed 's/-lumadvise/-l:libumadvise.a/')
	}
	if [ -e "$libdir/libumadvise.so" ]; then
		ok "a program builds against the shared library" shared
		is "$(LD_LIBRARY_PATH=$libdir "$tmp/shared")" "$version" "the program linked to the shared library runs"
	else
		skip 2 "no shared library was built"
	fi
	if [ -e "$libdir/libumadvise.a" ]; then
		ok "a program builds against the static library" static
		is "$("$tmp/static")" "$version" "the program linked to the static library runs"
	else
		skip 2 "no static library was built"
	fi
fi

# CMake takes a compiler with options as a list, and what stands before the compiler as a launcher.
with_cmake() { # FOLDER COMPILER...
	local folder=$tmp/cmake/$1 launcher=
	shift
	while [[ ${2-} = [!-]* ]]; do
		launcher+=${launcher:+;}$1
		shift
	done
	CFLAGS=$SANITIZE cmake -S "$consumer" -B "$folder" -DCMAKE_PREFIX_PATH="$dest$prefix" \
		-DCMAKE_C_COMPILER="$(IFS=';' && echo "$*")" -DCMAKE_C_COMPILER_LAUNCHER="$launcher" &&
		cmake --build "$folder"
}
if command -v cmake >/dev/null; then
	read -ra compiler <<<"$CC"
	ok "CMake finds it, refuses a wrong version, and builds" with_cmake b "${compiler[@]}"
	is "$(LD_LIBRARY_PATH=$libdir "$tmp/cmake/b/use")" "$version" "the program built by CMake runs"
	printf '#!/bin/sh\necho >>"%s/launched"\nexec "$@"\n' "$tmp" >"$tmp/launcher"
	chmod +x "$tmp/launcher"
	ok "CMake builds with a CC of a launcher, a compiler and an option" \
		with_cmake words "$tmp/launcher" "${compiler[@]}" -DUMADVISE_WORDS
	is "$(test -s "$tmp/launched" && grep -rl DUMADVISE_WORDS "$tmp/cmake/words/CMakeFiles/use.dir" | head -n 1 |
		wc -l)" 1 "the launcher and the option are used"
else
	skip 4 "no cmake"
fi
tap_done
