/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.h - the program's allocations of device memory, by address
 *
 * in    allocations and frees
 * out   the allocation that an address belongs to
 * owns  copies of the entries
 *
 * Looking up takes no lock and no allocation; while an entry is added or removed, it waits for that. Thread-safe. One
 * list for the process.
 */
#ifndef UM_INJECT_RANGES_H
#define UM_INJECT_RANGES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct um_injected; /* inject/session.h */

enum um_range_kind {
	UM_RANGE_ADOPTED = 0, /* managed memory of the driver */
	UM_RANGE_OWN = 1, /* of umadv_alloc */
	UM_RANGE_DEVICE = 2, /* not managed */
	UM_RANGE_SMALL = UM_RANGE_DEVICE | 1 /* likewise, by um_session_take_small */
};

static inline int um_range_is_managed(enum um_range_kind kind)
{
	return !(kind & UM_RANGE_DEVICE);
}

struct um_range {
	uint64_t at, bytes;
	struct um_injected *device;
	enum um_range_kind kind;
	int converted; /* the program asked for device memory and got managed memory */
};

int um_ranges_add(const struct um_range *r); /* 0 or -ENOMEM */
int um_ranges_remove(uint64_t at, struct um_range *out); /* the one that starts there: 1, or 0: none */
int um_ranges_find(uint64_t addr, struct um_range *out); /* 1; 0: none */
#define UM_RANGE_NAMED 1u /* in the serial */
uint64_t um_ranges_name(uint64_t addr); /* names the one that the address is in. Its serial; 0: none */
uint64_t um_ranges_additions(void); /* the latest serial, named */
int um_ranges_any(void); /* 0: the list has never had an entry */

/* --- the same on the path of a launch ----------------------------------------------------------------------------- */

#define UM_RANGES_RECENT 512u

/* An entry that the calling thread has looked up. */
struct um_range_seen {
	uint64_t removals; /* when it was kept; 0: empty */
	uint64_t at, bytes;
	uint64_t serial; /* grows with each addition; UM_RANGE_NAMED: it was named */
	uintptr_t device; /* with the kind in its low bits */
};

#define UM_HIDDEN __attribute__((visibility("hidden")))
#define UM_HIDDEN_THREAD __attribute__((visibility("hidden"), tls_model("initial-exec")))

extern UM_HIDDEN_THREAD _Thread_local struct um_range_seen um_ranges_seen[UM_RANGES_RECENT];
extern UM_HIDDEN struct um_range_bounds {
	_Atomic uint64_t low, high; /* of all entries that were ever there */
	_Atomic uint64_t removals;
} um_range_bounds;

/* Reads the entry into the thread's own. NULL: there is none. */
const struct um_range_seen *um_ranges_look_up(uint64_t addr, struct um_range_seen *r);

/* From the first entry to the last one that were ever there. */
struct um_range_span {
	uint64_t low, high;
};

static inline struct um_range_span um_ranges_span(void)
{
	const struct um_range_bounds *b = &um_range_bounds;

	return (struct um_range_span){atomic_load_explicit(&b->low, memory_order_acquire),
				      atomic_load_explicit(&b->high, memory_order_acquire)};
}

static inline int um_range_spans(struct um_range_span span, uint64_t addr)
{
	return addr >= span.low && addr < span.high;
}

/* The entry of an address in the span, until the thread's next look-up; or NULL. */
static inline const struct um_range_seen *um_ranges_see_inside(uint64_t addr)
{
	const struct um_range_bounds *b = &um_range_bounds;
	struct um_range_seen *r = &um_ranges_seen[(addr >> 21) * 0x9e3779b97f4a7c15u >> 55];

	if (r->removals == atomic_load_explicit(&b->removals, memory_order_acquire) && addr - r->at < r->bytes)
		return r;
	return um_ranges_look_up(addr, r);
}

/* The same of any address. */
static inline const struct um_range_seen *um_ranges_see(uint64_t addr)
{
	return um_range_spans(um_ranges_span(), addr) ? um_ranges_see_inside(addr) : NULL;
}

#define UM_RANGE_KIND_BITS 3u
#define UM_RANGE_CONVERTED_BIT 4u
#define UM_RANGE_BITS 7u

static inline struct um_injected *um_range_device_of(const struct um_range_seen *r)
{
	return (struct um_injected *)(r->device & ~(uintptr_t)UM_RANGE_BITS);
}

/* Removes all of a device. */
void um_ranges_drop(const struct um_injected *device);
/* In a forked child, where another thread may have been changing the list: it seems to be empty from now on. */
void um_ranges_end(void);

#endif
