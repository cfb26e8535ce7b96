/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - the time of a POSIX clock in ns
 */
#ifndef UM_BASE_CLOCK_H
#define UM_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t um_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
