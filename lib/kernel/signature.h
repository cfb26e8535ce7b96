/* SPDX-License-Identifier: Apache-2.0
 *
 * signature.h - which parameters of a kernel point to constants, from its mangled name
 *
 * in    names as compilers of C++ mangle them (Itanium C++ ABI)
 * out   a mark for each parameter
 * owns  nothing
 *
 * A hint, not a proof: a kernel may cast `const` away. The demangler is that of the C++ library that the program has
 * loaded. Without one, and of names that are not mangled, nothing is known. Thread-safe.
 */
#ifndef UM_KERNEL_SIGNATURE_H
#define UM_KERNEL_SIGNATURE_H

#include <stddef.h>

/* Sets constant[i] to 1 if the i-th of `n` parameters is a pointer to const, to 0 if not. 0: nothing is known, or the
 * name has another number of parameters. */
int um_signature_constants(unsigned char *constant, size_t n, const char *name);

/* The same of a demangled name, such as "void f<int>(float const*, int)". */
int um_signature_constants_of(unsigned char *constant, size_t n, const char *demangled);

#endif
