/* SPDX-License-Identifier: Apache-2.0
 *
 * size.h - sizes as people write them: "4096", "512 MiB", "1.5GiB"
 */
#ifndef UM_BASE_SIZE_H
#define UM_BASE_SIZE_H

#include <stdint.h>

/* Reads a size in bytes: a number >= 0 (a fraction only with a unit), then nothing, B, KiB, MiB, GiB or TiB. The whole
 * text must fit. 0, or -EINVAL (not a size), -ERANGE (2^63 or more). */
int um_size_parse(const char *text, uint64_t *bytes);

#endif
