# SPDX-License-Identifier: Apache-2.0
#
# UM_SANITIZE: --enable-sanitize=LIST; sets UM_SANITIZE_FLAGS for compiling and linking. LIST is what -fsanitize= takes.
# `fuzzer` becomes fuzzer-no-link here: a program that has a main of its own cannot take the fuzzer's.
AC_DEFUN([UM_SANITIZE], [
AC_ARG_ENABLE([sanitize],
	[AS_HELP_STRING([--enable-sanitize=LIST], [build with -fsanitize=LIST (address,undefined; thread; ...)])],
	[], [enable_sanitize=no])
UM_SANITIZE_FLAGS=
AS_CASE([$enable_sanitize],
	[no], [],
	[yes], [enable_sanitize=address,undefined],
	[enable_sanitize=$(echo "$enable_sanitize" | sed 's/fuzzer$/&-no-link/; s/fuzzer,/fuzzer-no-link,/')])
AS_IF([test "x$enable_sanitize" != xno], [
	UM_SANITIZE_FLAGS="-fsanitize=$enable_sanitize -fno-omit-frame-pointer"
	AS_CASE([,$enable_sanitize,], [*,undefined,*],
		[UM_SANITIZE_FLAGS="$UM_SANITIZE_FLAGS -fno-sanitize-recover=undefined"])])
AS_IF([test -n "$UM_SANITIZE_FLAGS"], [
	um_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS $UM_SANITIZE_FLAGS"
	AC_MSG_CHECKING([whether $CC links with $UM_SANITIZE_FLAGS])
	AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		AC_MSG_ERROR([--enable-sanitize=$enable_sanitize: this compiler cannot])])
	CFLAGS=$um_save_CFLAGS])
AC_SUBST([UM_SANITIZE_FLAGS])
AM_CONDITIONAL([SANITIZED], [test -n "$UM_SANITIZE_FLAGS"])
])
