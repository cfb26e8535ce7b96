# SPDX-License-Identifier: Apache-2.0
#
# UM_DEBUG: --enable-debug[=LEVEL]; sets UM_DEBUG_CPPFLAGS. lib/base/debug.h says what a level checks. Sanitized builds
# check level 2 unless told otherwise.
AC_DEFUN([UM_DEBUG], [
AC_ARG_ENABLE([debug],
	[AS_HELP_STRING([--enable-debug[[=LEVEL]]], [check invariants: 1 cheap ones, 2 (default) more, 3
		also on the op path (default: no; 2 with --enable-sanitize)])],
	[], [AS_IF([test -n "$UM_SANITIZE_FLAGS"], [enable_debug=2], [enable_debug=no])])
AS_CASE([$enable_debug],
	[no], [enable_debug=0],
	[yes], [enable_debug=2],
	[0|1|2|3], [],
	[AC_MSG_ERROR([--enable-debug=$enable_debug: the levels are 0 to 3])])
AC_SUBST([UM_DEBUG_CPPFLAGS], ["-DUM_DEBUG=$enable_debug"])
])
