/* SPDX-License-Identifier: Apache-2.0
 *
 * number.h - decimal numbers in files, whatever the locale of the host program
 *
 * printf and strtod follow the locale that the program has set; a file must not. Thread-safe as far as localeconv is.
 */
#ifndef UM_IO_NUMBER_H
#define UM_IO_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define UM_NUMBER_MAX 40 /* room for any number as text, with its end */

/* The shortest text that reads back as exactly `x`, which must be finite. Valid JSON. Returns its length. */
size_t um_number_print(char buf[UM_NUMBER_MAX], double x);

/* Digits, perhaps with a fraction and an exponent, without a sign: the whole text or -EINVAL; -ERANGE beyond a double.
 */
int um_number_parse(const char *text, size_t n, double *out);

/* Digits only: -EINVAL, or -ERANGE beyond 2^63 - 1. */
int um_number_parse_u64(const char *text, size_t n, uint64_t *out);

#endif
