/* SPDX-License-Identifier: Apache-2.0
 *
 * arbiter.h - shares the memory of one device among the contexts of a user's processes, without a daemon
 *
 * in    the device's name and blocks; what each context needs, may have, and its weight
 * out   how many blocks this context may use
 * owns  a file in the user's runtime directory, open and mapped, and locks on it
 *
 * The file of a device holds a table with a slot for each context. A slot says what its context needs, and how many
 * blocks it *holds*. Only the owner writes a slot. Every context computes the same *target* of each slot from the table
 * (divide.h), so targets are not stored.
 *
 *     held > target   the context evicts, keeps to its target, and then confirms: held = target
 *     held < target   it takes of its target what the others do not hold: held <= blocks - sum of the others' held
 *
 * Blocks are thus free before another context takes them, and the sum of all `held` never exceeds the device. A context
 * that joins begins with what is free, which may be nothing.
 *
 * Locks are open file description locks, which the kernel releases when the process ends, however it ends:
 *
 *     byte 0       guards the table. Held for some microseconds, never while waiting
 *     byte 1 + i   the owner of slot i holds it as long as it has the slot. A free lock means that the owner has ended
 *
 * A process that is killed leaves no lock, and no half-written state that matters: its slot is its own, and whoever
 * finds the lock of a slot free removes the slot. Each change of the table increments its generation, so a context that
 * is alone looks at one number. One that is not also asks the kernel for the locks of the others, at intervals that
 * bound the cost to 1 % of the time.
 *
 * The last context that leaves removes the file. One that opened it in the meantime finds that its file has no name
 * any more, and opens it again. The file of processes that were killed stays, and the next context uses it: it finds no
 * locks, and so an empty table.
 *
 * Start path, and iteration path: no allocation. Calls of one arbiter are not thread-safe.
 */
#ifndef UM_ARBITER_ARBITER_H
#define UM_ARBITER_ARBITER_H

#include "arbiter/divide.h"

#include <stdatomic.h>
#include <stddef.h>

#define UM_ARBITER_CHECK_NS 100000u /* for each other context, between two looks at its lock: that takes below 1 us */

struct um_arbiter_slot {
	struct um_arbiter_claim claim;
	uint64_t held; /* blocks */
	uint64_t pid; /* for people who read the file */
	uint64_t unused[3];
};

/* The file. Its layout, and the bytes that are locked, are the same in all versions with the same magic number. */
struct um_arbiter_table {
	uint64_t magic;
	_Atomic uint64_t used; /* a bit for each slot */
	_Atomic uint64_t generation;
	uint64_t blocks; /* of the device, as the first context says */
	uint64_t unused[4];
	struct um_arbiter_slot slots[UM_ARBITER_MOST];
};

struct um_arbiter {
	struct um_arbiter_table *table; /* mapped; NULL: takes no part */
	int fd;
	unsigned slot;
	int own_directory; /* the directory is for these files only */
	unsigned others; /* contexts, as of the latest look */
	uint64_t seen; /* the generation of the latest look */
	uint64_t check_ns; /* when the locks of the others are looked at next */
	uint64_t held, target; /* blocks, as of the latest look */
	char path[256];
};

/* Takes part. The file is named after `device`: letters, digits, '-'. `blocks`: of the device, for the first context.
 * 0; -ENOTDIR: no directory; -EBUSY: another process does not release the table; -ENOSPC: 64 contexts, or no room for
 * the file; -EPROTO: contexts of another version; other -errno. On failure it takes no part. */
int um_arbiter_open(struct um_arbiter *a, const char *device, uint64_t blocks, const struct um_arbiter_claim *claim);
/* Leaves. */
void um_arbiter_close(struct um_arbiter *a);
/* In a forked child: the locks are the parent's. Async-signal-safe. */
void um_arbiter_abandon(struct um_arbiter *a);

/* Did another context end without leaving? 0 also where it is too early to ask again. */
int um_arbiter_lost_one(struct um_arbiter *a);

/* Is there a reason to look? One load where the context is alone. */
static inline int um_arbiter_has_news(struct um_arbiter *a)
{
	if (!a->table)
		return 0;
	return atomic_load_explicit(&a->table->generation, memory_order_relaxed) != a->seen ||
	       (a->others && um_arbiter_lost_one(a));
}

/* Writes the claim, finds the target, and takes of it what is free: updates `held` and `target`. 0, or -EBUSY: call it
 * again later. */
int um_arbiter_look(struct um_arbiter *a, const struct um_arbiter_claim *claim);
/* The context gives up blocks: it holds `blocks`, fewer than before. 0, or -EBUSY: call it again later. */
int um_arbiter_confirm(struct um_arbiter *a, uint64_t blocks);

#endif
