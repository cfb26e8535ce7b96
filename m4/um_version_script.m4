# SPDX-License-Identifier: Apache-2.0
#
# UM_VERSION_SCRIPT: conditional HAVE_VERSION_SCRIPT where the linker takes one; elsewhere libtool's list must do.
AC_DEFUN([UM_VERSION_SCRIPT], [
AC_CACHE_CHECK([whether the linker takes --version-script], [um_cv_version_script], [
	echo 'X { global: a; local: *; };' >conftest.map
	um_save_LDFLAGS=$LDFLAGS
	LDFLAGS="$LDFLAGS -shared -fPIC -Wl,--version-script=conftest.map"
	AC_LINK_IFELSE([AC_LANG_SOURCE([int a(void); int a(void) { return 0; }])],
		[um_cv_version_script=yes], [um_cv_version_script=no])
	LDFLAGS=$um_save_LDFLAGS
	rm -f conftest.map])
AC_SUBST([VERSION_SCRIPT], [$um_cv_version_script])
AM_CONDITIONAL([HAVE_VERSION_SCRIPT], [test "x$um_cv_version_script" = xyes])
])
