/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - what a test may ask of a real GPU
 *
 * in    bytes of managed memory that a test is about to have in all, its budget, and what the device has free
 * out   whether it may go on, else why not
 *
 * An oversubscribing program can hang a whole GPU, and others use it, too. So managed memory is at most an eighth of
 * what is free, and the budget, which stands for a small card, is below what is managed: the library keeps to it by
 * itself, the device is never near its end. Every program here asks before it allocates.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stdint.h>
#include <stdio.h>

#define GUARD_SHARE 8

/* 0, or -1 with a reason. `budget` 0: none is set, the library would take what the device has. */
static inline int guard_check(uint64_t managed, uint64_t budget, uint64_t free_bytes, char *why, size_t size)
{
	const char *reason = NULL;

	if (size)
		why[0] = 0;
	if (managed > free_bytes / GUARD_SHARE)
		reason = "more managed memory than an eighth of what is free";
	else if (!budget)
		reason = "no budget: the library would use the whole device";
	else if (budget > managed)
		reason = "a budget that is not below what is managed";
	if (reason && size)
		snprintf(why, size, "%s (managed %llu MiB, budget %llu MiB, free %llu MiB)", reason,
			 (unsigned long long)(managed >> 20), (unsigned long long)(budget >> 20),
			 (unsigned long long)(free_bytes >> 20));
	return reason ? -1 : 0;
}

#endif
