/* SPDX-License-Identifier: Apache-2.0
 *
 * joint.h - memory that contexts of several devices use
 *
 * in    ranges that two contexts have adopted; uses of them, in the order of the calls
 * out   what the context that uses a range is to request before its op; which ranges it plans like its own memory
 * owns  the table of the process's ranges, under a lock of its own
 *
 * No plan of one device knows when another one uses a range, so plans leave such memory out. The context that uses it
 * prefetches the blocks that are not on its device, on the op's stream: the program has ordered that after the uses on
 * other devices. A range that several contexts only read is advised to be read mostly: then each device keeps a copy.
 * A range that one context alone uses for long belongs to that context, and its plans hold it, until another one uses
 * it. Each return doubles what "long" is.
 *
 * Thread-safe; may be called with a context's lock held, and calls nothing. Cost of a use: O(ranges + blocks).
 */
#ifndef UM_RUNTIME_JOINT_H
#define UM_RUNTIME_JOINT_H

#include <stdatomic.h>
#include <stdint.h>

#define UM_JOINT_CONTEXTS 16 /* of a process; further ones plan such memory like their own */
#define UM_JOINT_RUNS 32 /* of blocks that one use prefetches; further ones fault */

struct um_joint_run {
	uint64_t addr, bytes;
};

enum um_joint_advice { UM_JOINT_AS_IT_IS, UM_JOINT_ADVISE, UM_JOINT_WITHDRAW };

/* What a context requests before its op, in this order. */
struct um_joint_request {
	enum um_joint_advice advice; /* read mostly, for `of` */
	struct um_joint_run of; /* the range that is used; 0 bytes: none */
	unsigned n; /* to be prefetched */
	struct um_joint_run run[UM_JOINT_RUNS];
};

enum um_joint_how {
	UM_JOINT_ON_CPU, /* an access of the CPU */
	UM_JOINT_SOMEWHERE, /* what it accesses in the range is not known: only copies are prefetched */
	UM_JOINT_WHOLE /* it accesses all of the range */
};

/* Changes whenever another range is shared, or belongs to a context alone. */
extern atomic_uint um_joint_news;

/* A number for a context, until um_joint_leave_all; -1: there are too many. */
int um_joint_enter(void);
void um_joint_leave_all(int context);

/* No thread is in the table while the process forks. The lock of the list of contexts is taken first. */
void um_joint_before_fork(void);
void um_joint_after_fork(void);

/* Both contexts have adopted the range. `alone`: the one of them that has used it, or -1: both, or neither. Without
 * memory it stays as it is. */
void um_joint_add(int a, int b, struct um_joint_run range, int alone);
/* The memory of a tensor ends for that context. */
void um_joint_leave(int context, struct um_joint_run tensor);

/* The first range at or after `from` that the context has adopted with others. 0: none. `*alone`: it is the context's
 * own now. */
int um_joint_next(int context, uint64_t from, struct um_joint_run *range, int *alone);

/* The context is about to use a part of a tensor that is not its own alone; of several ranges in it, the first one is
 * meant. `write`: it may change it. `stays`: what the context uses stays on its device until another one uses it. */
void um_joint_use(int context, struct um_joint_run part, int write, int stays, enum um_joint_how how,
		  struct um_joint_request *out);

#endif
