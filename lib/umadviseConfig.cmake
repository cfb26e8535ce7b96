# SPDX-License-Identifier: Apache-2.0
#
# find_package(umadvise) gives the target umadvise::umadvise: the shared library, or the static one where only that was
# installed. Found from where this file lies, so that an installed tree may be moved.

get_filename_component(_umadvise_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

# include/ stands beside lib/ or, on systems with lib/<machine>/, one folder further up.
find_path(_umadvise_include umadvise.h
	HINTS "${_umadvise_libdir}/../include" "${_umadvise_libdir}/../../include"
	NO_CACHE NO_DEFAULT_PATH)
find_library(_umadvise_shared NAMES libumadvise.so HINTS "${_umadvise_libdir}" NO_CACHE NO_DEFAULT_PATH)
find_library(_umadvise_static NAMES libumadvise.a HINTS "${_umadvise_libdir}" NO_CACHE NO_DEFAULT_PATH)

if(NOT _umadvise_include OR NOT (_umadvise_shared OR _umadvise_static))
	set(umadvise_FOUND FALSE)
	set(umadvise_NOT_FOUND_MESSAGE "umadvise.h or libumadvise is missing beside ${CMAKE_CURRENT_LIST_FILE}")
	return()
endif()

if(NOT TARGET umadvise::umadvise)
	if(_umadvise_shared)
		add_library(umadvise::umadvise SHARED IMPORTED)
		set_target_properties(umadvise::umadvise PROPERTIES IMPORTED_LOCATION "${_umadvise_shared}")
	else()
		include(CMakeFindDependencyMacro)
		find_dependency(Threads)
		find_dependency(ZLIB)
		add_library(umadvise::umadvise STATIC IMPORTED)
		set_target_properties(umadvise::umadvise PROPERTIES
			IMPORTED_LOCATION "${_umadvise_static}"
			IMPORTED_LINK_INTERFACE_LANGUAGES C
			INTERFACE_LINK_LIBRARIES "jansson;ZLIB::ZLIB;Threads::Threads;${CMAKE_DL_LIBS};m")
	endif()
	set_target_properties(umadvise::umadvise PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_umadvise_include}")
endif()
