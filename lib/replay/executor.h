/* SPDX-License-Identifier: Apache-2.0
 *
 * executor.h - a program's actions due -> calls into the table
 *
 * in    the program, the op that is about to be launched, where slots lie now
 * out   prefetches, evictions, discards; and ops that wait, on the device, for what they need
 * owns  the lanes (workers, queues, streams and events: lanes.h)
 *
 * The app's thread writes what is due into two queues and records an event; it makes no hint call itself. The out
 * workers wait for that event and take blocks away (a prefetch to the host blocks its caller, which is why they have
 * threads of their own); the in workers wait until there is room and bring blocks. Each arrival raises a number in
 * pinned memory, and an op whose blocks are still on their way waits for that number on its stream
 * (cuStreamWaitValue32) instead of faulting.
 *
 * Whatever fails is counted; waiting ops are always released. Content is only ever discarded after may_discard() said
 * that nothing alive needs it, on the app's thread, at the time of issue. Op path: O(actions due), no allocation, no
 * system call. Not thread-safe: the front desk holds the lock (the workers do not need it).
 */
#ifndef UM_REPLAY_EXECUTOR_H
#define UM_REPLAY_EXECUTOR_H

#include "gpu/app_stream.h"
#include "replay/cursor.h"
#include "replay/hint_results.h"
#include "replay/compiled_plan.h"

struct um_executor;

/* A range of managed memory that was ever in use. */
struct um_executor_range {
	uint64_t addr, bytes;
};

/* What waits for a discard on the device, and so what may be discarded without the app's thread waiting. */
enum um_executor_waits {
	UM_NO_OP_WAITS, /* only memory that no tensor has */
	UM_LATER_OPS_WAIT, /* dead content, too */
	UM_OP_WAITS /* the op at hand as well: what it overwrites as a whole, too */
};

struct um_executor_host {
	/* May the content of [addr, addr + bytes) be thrown away now? 0: no; 1: no tensor lies there; 2: a live one. */
	int (*may_discard)(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits);
	/* Cuts off the ends of a range that are not known to be the program's managed memory: a block at the end of an
	 * allocation is there in part, and CUDA refuses a hint that reaches beyond. Where the range lies in one that is
	 * there as a whole and stays, that is put into `*whole`. NULL: all of it is. */
	void (*clip)(void *user, uint64_t *addr, uint64_t *bytes, struct um_executor_range *whole);
	void *user;
	const struct um_app_streams *streams; /* the app's, borrowed until close */
	uint64_t budget_blocks; /* of a device that holds more, and so does not keep the budget by itself; 0: it does */
	uint64_t evict_ns, link_ns; /* to take one block away: the driver's work on the calling thread, and the copy */
};

struct um_executor_counts {
	uint64_t issued, refused, dropped;
	uint64_t prefetch_bytes, evict_bytes, discard_bytes;
};

/* 0, -ENOMEM, -ENOTSUP (the device below cannot be hinted). */
int um_executor_open(struct um_executor **out, struct um_gpu *gpu, const struct um_executor_host *host);
void um_executor_close(struct um_executor *ex);

/* Takes up a program (borrowed until the next adopt, leave or close) at the beginning of an iteration, just before its
 * first op is announced: sends away what that does not ask for at once. 0 or -errno and nothing is issued. */
int um_executor_adopt(struct um_executor *ex, const struct um_compiled_plan *p, uint64_t capacity_blocks,
		      const struct um_executor_range *used, size_t n_used, const struct um_cursor *cursor);

/* The next iteration begins and the program goes on. After the first and the second one, memory outside the program
 * that has died since is sent away. */
void um_executor_begin(struct um_executor *ex, const struct um_executor_range *used, size_t n_used);

/* The program ends with the iteration that was just announced: what it asked for is still done. */
void um_executor_end(struct um_executor *ex);

/* Op number `op` is about to be launched on the app's stream of this number: nothing is taken away before the ops that
 * are announced so far. 0, or -EAGAIN: the queues are full, the program was left. */
int um_executor_op(struct um_executor *ex, uint32_t op, unsigned stream, const struct um_cursor *cursor);

/* The app has more streams than are told apart: a program must be left before the op that shows it. */
int um_executor_crowded(const struct um_executor *ex);

/* The op that was announced last is about to be launched on that stream: returns when it does not write what is still
 * to be discarded. A program makes it wait on the device; where tensors lie elsewhere than planned, or the device
 * cannot make it wait, this does. Op path. */
void um_executor_guard(struct um_executor *ex, unsigned stream, const struct um_use *uses, uint32_t n);

/* The program is left: what is queued and not begun is dropped, ops that wait are released. Returns when no discard of
 * ours is under way or to come, be it of a program that has ended: ops that no program knows do not wait for one. */
void um_executor_leave(struct um_executor *ex);

/* Memory is about to have a new owner: returns when no discard that was asked for while it was dead is under way or to
 * come, and no advice of ours holds for it. Cost: the requests that are pending. */
void um_executor_claim(struct um_executor *ex, uint64_t addr, uint64_t bytes);

/* An op is about to use live tensors: what it writes is no longer read mostly, what it does not only look up a little
 * in is brought again. Op path, but for the first time. */
void um_executor_use(struct um_executor *ex, const struct um_use *uses, uint32_t n);
/* Whoever has this memory from now on knows nothing of our advice. */
void um_executor_release(struct um_executor *ex, uint64_t addr, uint64_t bytes);

/* This memory is no longer there. */
void um_executor_forget(struct um_executor *ex, uint64_t addr, uint64_t bytes);

/* From now on `ears` (copied) hear of the hints that the driver is given: `hear` is called by um_executor_tell, by the
 * end of the executor, or where very many wait to be told. Before the first program. 0 or -ENOMEM. */
int um_executor_listen(struct um_executor *ex, const struct um_hint_ears *ears);
void um_executor_tell(struct um_executor *ex);
/* The op that is about to be announced has this number. Only where somebody listens. */
void um_executor_number(struct um_executor *ex, uint64_t op);

int um_executor_stuck(const struct um_executor *ex); /* ops do not wait any more: see lanes.h */
int um_executor_active(const struct um_executor *ex);
uint64_t um_executor_queued(const struct um_executor *ex); /* requests so far, whatever became of them */
void um_executor_counts(const struct um_executor *ex, struct um_executor_counts *out);

#endif
