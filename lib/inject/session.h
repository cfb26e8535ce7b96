/* SPDX-License-Identifier: Apache-2.0
 *
 * session.h - contexts of libumadvise for a program that does not know of them
 *
 * in    allocations, launches, copies of the hooks; settings of the environment
 * out   the same as tensors and ops of a context for each device; figures for the line at exit
 * owns  the contexts, until the process ends or the device is reset
 *
 * A context is opened at the first allocation on its device. While all allocations fit in the budget, launches are not
 * announced: new memory is prefetched to the device once, and that is all. A run that is recorded is announced from the
 * beginning. While the process exits, in a forked child, and in a program that uses libumadvise by itself, nothing is
 * announced. Thread-safe.
 */
#ifndef UM_INJECT_SESSION_H
#define UM_INJECT_SESSION_H

#include "gpu/app_stream.h"
#include "gpu/standin_table.h"
#include "inject/ranges.h"
#include "inject/summary.h"

#include "umadvise.h"

#define UM_INJECT_DEVICES 16
#define UM_INJECT_USES 512u /* of one op; further ones are left out */

struct um_injected {
	struct umadv *adv; /* NULL: none, or closed */
	atomic_int open; /* it has been opened */
	const struct um_standin_table *standin; /* NULL: a real driver */
	void *context; /* CUcontext */
	int tried, ordinal;
	uint64_t free_bytes, total_bytes; /* of the device, before anything was allocated */
	uint64_t host_bytes; /* most bytes beyond the device's memory */
	_Atomic uint64_t budget; /* bytes that fit */
	void *stream; /* of prefetches while all fits, then of waits for the program (hook_sync.c); NULL: none */
	void *mark; /* an event for these waits; NULL: none yet */
	_Atomic uint64_t live, live_managed; /* bytes; managed: program's and converted */
	_Atomic uint64_t small; /* bytes in small allocations that stay device memory */
	_Atomic uint64_t allocations; /* that were adopted so far */
	char why[160]; /* the reason if allocations stay as they are */
};

/* May an allocation of that size, requested by code at `caller`, become managed? The device of the calling thread, or
 * NULL. */
struct um_injected *um_session_place(uint64_t bytes, const void *caller);
/* The device of the calling thread if its context is open, opened if necessary, but not while a stream captures. NULL:
 * none. */
struct um_injected *um_session_device(void);
struct um_injected *um_session_at(int i); /* the i-th, also not open; for the exit line */

/* Small allocations stay device memory, which the driver packs, up to this part of the budget: of managed memory each
 * would take a block. */
#define UM_SESSION_SMALL ((uint64_t)1 << 20) /* bytes of the smallest that is not small */
#define UM_SESSION_SMALL_PART 40
/* Does a small one of `bytes` stay? Then it counts, until um_session_removed of a UM_RANGE_SMALL, or
 * um_session_give_small. */
int um_session_take_small(struct um_injected *d, uint64_t bytes);
void um_session_give_small(struct um_injected *d, uint64_t bytes);

/* The program has managed memory of its own, which any device may use. */
void um_session_ask(void);
/* Managed memory of the program ends, for all devices but its own. */
void um_session_end_shared(const struct um_range *r);

/* Would the allocation exceed the memory of device and host together? */
int um_session_full(struct um_injected *d, uint64_t bytes);

/* Counts an allocation and adds it to the ranges. 0 or -ENOMEM. */
int um_session_add(const struct um_range *r);
void um_session_removed(const struct um_range *r);
/* Memory that has no address yet: `bytes` may be negative. */
void um_session_unseen(int64_t bytes, enum um_inject_reason reason);

enum um_session_asks {
	UM_SESSION_SEVERAL = 1, /* there is memory of several devices */
	UM_SESSION_ANYWHERE = 2 /* and there are several devices, and memory that any of them may use */
};

extern struct um_session_state {
	atomic_int over; /* the process exits, or is a forked child: nothing is announced any more */
	atomic_int pressed; /* not all that is allocated fits, so that launches are announced. Stays 1 */
	struct um_injected *_Atomic only; /* the device, as long as there is one */
	atomic_int asks; /* enum um_session_asks: a launch may use memory that was allocated for another device */
	atomic_int shown; /* the stand-in has to be shown what kernels use */
	_Atomic int64_t captures; /* under way */
} um_session_state;

static inline int um_session_active(void)
{
	return !atomic_load_explicit(&um_session_state.over, memory_order_relaxed);
}

static inline int um_session_pressed(void)
{
	return atomic_load_explicit(&um_session_state.pressed, memory_order_relaxed);
}

static inline int um_session_asks(void)
{
	return atomic_load_explicit(&um_session_state.asks, memory_order_relaxed);
}

static inline int um_session_shown(void)
{
	return atomic_load_explicit(&um_session_state.shown, memory_order_relaxed);
}

/* Is the stream capturing? Costs nothing while no stream is. */
int um_session_asks_capture(void *stream);
static inline int um_session_captures(void *stream)
{
	return atomic_load_explicit(&um_session_state.captures, memory_order_relaxed) &&
	       um_session_asks_capture(stream);
}
void um_session_capture(int change);

/* A stream as the context knows it: the functions of the per-thread default streams have other names, so that NULL
 * is the legacy stream here, in each thread. */
static inline void *um_session_stream(void *stream)
{
	return stream ? stream : UM_STREAM_LEGACY;
}

/* Announces an op before its launch. */
void um_session_op(struct um_injected *d, void *stream, const char *name, const struct umadv_use *uses, unsigned n);

/* The same for a kernel of the program, and what follows its launch. The stand-in finds by itself what a kernel
 * touches, as it does without the library, but not the tensors inside an allocation of the context. These are shown
 * to it also while nothing is announced. */
struct um_inject_uses;
void um_session_launch(const struct um_inject_uses *uses, void *stream, const char *name);
void um_session_launched(const struct um_inject_uses *uses, void *stream);

/* New memory of the driver goes to the device, if all fits. */
void um_session_populate(struct um_injected *d, uint64_t at, uint64_t bytes);
/* The same for memory of the context around `at` that was never used before. */
void um_session_populate_new(struct um_injected *d, uint64_t at);

#define UM_SESSION_SHARES_AT 64 /* launches between two calls of um_session_share */

/* While all fits, no op is announced and no iteration ends: takes what other processes leave of the devices, or leaves
 * them theirs. */
void um_session_share(void);

/* Is a plan followed, so that what the program uses is prefetched for it? */
int um_session_plans(struct um_injected *d);

/* Do hints run on streams of the library's own? */
int um_session_helped(const struct um_injected *d);

/* The device is reset, or its context destroyed: all of its memory is gone. */
void um_session_reset(int ordinal, const void *context);

/* --- uses of an op, one for each allocation ----------------------------------------------------------------------- */

struct um_inject_uses {
	struct um_injected *device; /* of the launch, or of the first one; NULL: none yet */
	int shares; /* managed memory of the program that is another device's becomes a tensor of this one */
	unsigned n, left_out;
	uintptr_t own; /* not 0: some are memory of the context */
	struct umadv_use at[UM_INJECT_USES];
	uint64_t end[UM_INJECT_USES]; /* of the allocation */
	uint64_t serial[UM_INJECT_USES]; /* likewise */
};

/* Puts them in the order of their allocation. */
void um_inject_uses_sort(struct um_inject_uses *u);

/* Is the address in the allocation of one of the first `n`? */
int um_inject_uses_have(const struct um_inject_uses *u, unsigned n, uint64_t addr);

/* Adds a range of `bytes` in an allocation. */
void um_inject_use_range(struct um_inject_uses *u, uint64_t addr, uint64_t bytes, enum umadv_access access);

static inline void um_inject_uses_init(struct um_inject_uses *u)
{
	u->device = NULL;
	u->shares = 0;
	u->n = u->left_out = 0;
	u->own = 0;
}

/* They are of work that the calling thread gives to its current device. 0: that has no context. */
static inline int um_inject_uses_here(struct um_inject_uses *u)
{
	u->shares = um_session_asks();
	u->device =
		u->shares ? um_session_device() : atomic_load_explicit(&um_session_state.only, memory_order_relaxed);
	return u->device != NULL;
}

/* The memory is not that of the uses' device. If they have none yet, it is this one's. 0: it is no use. */
int um_inject_use_elsewhere(struct um_inject_uses *u, const struct um_range_seen *r);

/* Adds the allocation of an address, from there to its end, and the access to it. Addresses outside all allocations are
 * ignored. 1: it is an address between allocations (um_ranges_span), but in none of them. */
static inline __attribute__((always_inline)) int um_inject_use_in(struct um_inject_uses *u, struct um_range_span span,
								  uint64_t addr, enum umadv_access access)
{
	const struct um_range_seen *r;
	unsigned n = u->n, i = 0;
	uint64_t end;

	if (!um_range_spans(span, addr))
		return 0;
	r = um_ranges_see_inside(addr);
	if (!r)
		return 1;
	if (r->device & UM_RANGE_DEVICE)
		return 0;
	if (u->device != um_range_device_of(r) && !um_inject_use_elsewhere(u, r))
		return 0;
	end = r->at + r->bytes;
	while (i < n && u->end[i] != end)
		i++;
	if (i < n) {
		u->at[i].access |= access;
		if (addr < (uintptr_t)u->at[i].ptr)
			u->at[i].ptr = (const void *)(uintptr_t)addr;
	} else if (n == UM_INJECT_USES) {
		u->left_out++;
	} else {
		u->own |= r->device & UM_RANGE_OWN;
		u->end[n] = end;
		u->serial[n] = r->serial;
		u->at[n] = umadv_use_((const void *)(uintptr_t)addr, 0, 0, access);
		u->n = n + 1;
	}
	return 0;
}

static inline int um_inject_use(struct um_inject_uses *u, uint64_t addr, enum umadv_access access)
{
	return um_inject_use_in(u, um_ranges_span(), addr, access);
}

#endif
