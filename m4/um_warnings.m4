# SPDX-License-Identifier: Apache-2.0
#
# UM_WARNINGS: --enable-werror; sets UM_WARN_CFLAGS. The list is what both gcc and clang know, so nothing is probed.
AC_DEFUN([UM_WARNINGS], [
AC_ARG_ENABLE([werror],
	[AS_HELP_STRING([--enable-werror], [compiler warnings are errors])],
	[], [enable_werror=no])
UM_WARN_CFLAGS="-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes"
AS_IF([test "x$enable_werror" = xyes], [UM_WARN_CFLAGS="$UM_WARN_CFLAGS -Werror"])
AC_SUBST([UM_WARN_CFLAGS])
])
