/* SPDX-License-Identifier: Apache-2.0
 *
 * owners.h - which context of the process owns memory: tells the program that it passed memory of another one
 *
 * in    ranges that contexts take from their devices, and give back
 * out   the device of the context that owns an address
 * owns  the list of ranges of all contexts, under a lock of its own
 *
 * Thread-safe; may be called with a context's lock held. Called for memory taken from CUDA, and in the op path
 * for addresses of no tensor: one load in a process with one context, else O(ranges).
 */
#ifndef UM_RUNTIME_OWNERS_H
#define UM_RUNTIME_OWNERS_H

#include <stdint.h>

/* Without memory the range is not known, and memory in it counts as no tensor. `owner`: any address of the context. */
void um_owners_add(uint64_t addr, uint64_t bytes, const void *owner, int device);
void um_owners_remove(uint64_t addr, const void *owner);

/* Does `addr` belong to another context than `owner`? Then `*device` is that context's device. */
int um_owners_other(uint64_t addr, const void *owner, int *device);

#endif
