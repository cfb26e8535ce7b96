# SPDX-License-Identifier: Apache-2.0
#
# UM_SECTIONS: a section for each function and constant, so that the linker leaves out of a shared library what nothing
# in it calls: the tool and the tests use more of the common code. Sets UM_SECTION_CFLAGS and UM_GC_LDFLAGS; both empty
# where compiler or linker do not know them, and with sanitizers.
AC_DEFUN([UM_SECTIONS], [
AC_REQUIRE([UM_SANITIZE])
AC_CACHE_CHECK([whether the linker takes --gc-sections], [um_cv_sections], [
	um_save_CFLAGS=$CFLAGS um_save_LDFLAGS=$LDFLAGS
	CFLAGS="$CFLAGS -ffunction-sections -fdata-sections"
	LDFLAGS="$LDFLAGS -shared -fPIC -Wl,--gc-sections"
	AC_LINK_IFELSE([AC_LANG_SOURCE([int a(void); int a(void) { return 0; }])],
		[um_cv_sections=yes], [um_cv_sections=no])
	CFLAGS=$um_save_CFLAGS LDFLAGS=$um_save_LDFLAGS])
AS_IF([test "x$um_cv_sections" = xyes && test -z "$UM_SANITIZE_FLAGS"], [
	UM_SECTION_CFLAGS="-ffunction-sections -fdata-sections"
	UM_GC_LDFLAGS=-Wl,--gc-sections])
AC_SUBST([UM_SECTION_CFLAGS])
AC_SUBST([UM_GC_LDFLAGS])
])
