/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.h - what a fuzz target is: any bytes go in, nothing may break
 *
 * `make fuzz` builds each target with libFuzzer and lets it run; in `make check` replay.c feeds it what was found
 * before.
 */
#ifndef UM_TESTS_FUZZ_H
#define UM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_OUT "-" /* where to write: standard output, which whoever runs a target leads to nowhere */

extern const char fuzz_name[]; /* the ending of its samples: "umtrace" */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); /* libFuzzer's name for it; returns 0 */

#endif
