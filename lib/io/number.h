/* SPDX-License-Identifier: Apache-2.0
 *
 * number.h - decimal numbers in files, independent of the host program's locale
 *
 * printf and strtod follow the locale of the program; files must not. As thread-safe as localeconv.
 */
#ifndef UM_IO_NUMBER_H
#define UM_IO_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define UM_NUMBER_MAX 40 /* room for any number as text, with the NUL */

/* The shortest text that reads back as exactly `x`, which must be finite. Valid JSON. Returns its length. */
size_t um_number_print(char buf[UM_NUMBER_MAX], double x);

/* Digits, with an optional fraction and exponent, without a sign. 0; -EINVAL unless the whole text matches; -ERANGE
 * beyond a double. */
int um_number_parse(const char *text, size_t n, double *out);

/* Digits only: -EINVAL, or -ERANGE beyond 2^63 - 1. */
int um_number_parse_u64(const char *text, size_t n, uint64_t *out);

#endif
