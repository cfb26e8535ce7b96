/* SPDX-License-Identifier: Apache-2.0
 *
 * A sorted array that one thread changes at a time, and others read without a lock: a reader that finds the sequence
 * number odd or changed reads again. An array that became too small stays allocated, because a reader may still be in
 * it: all of them together are no larger than the last one. Each thread keeps the entries of recent look-ups until
 * something is removed.
 */
#include "inject/ranges.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SMALLEST 256u

/* `device` has kind and converted in its low bits. */
struct entry {
	_Atomic uint64_t at, bytes, serial;
	_Atomic uintptr_t device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for changes */
static _Atomic(struct entry *) list;
static _Atomic size_t n_list;
static size_t room;
static uint64_t additions; /* the latest serial */
static _Atomic uint64_t sequence; /* odd while it changes */

struct um_range_bounds um_range_bounds = {UINT64_MAX, 0, 1};
_Thread_local struct um_range_seen um_ranges_seen[UM_RANGES_RECENT];

/* Each member is ordered by itself: a reader that sees a changed one sees that the sequence number is odd, or later. */
#define GET(x) atomic_load_explicit(&(x), memory_order_acquire)
#define PUT(x, value) atomic_store_explicit(&(x), (value), memory_order_release)

/* Number of entries that start at or before `addr`. */
static size_t count_to(const struct entry *e, size_t n, uint64_t addr)
{
	size_t from = 0;

	while (n) {
		size_t half = n / 2;
		int right = GET(e[from + half].at) <= addr;

		from = right ? from + half + 1 : from;
		n = right ? n - half - 1 : half;
	}
	return from;
}

static void begin_change(void)
{
	PUT(sequence, GET(sequence) + 1);
}

static void end_change(void)
{
	PUT(sequence, GET(sequence) + 1);
}

static void move(struct entry *to, const struct entry *from)
{
	PUT(to->at, GET(from->at));
	PUT(to->bytes, GET(from->bytes));
	PUT(to->serial, GET(from->serial));
	PUT(to->device, GET(from->device));
}

/* Room for one more. Locked. */
static int grow(void)
{
	size_t n = GET(n_list), more = room ? 2 * room : SMALLEST;
	struct entry *e, *old = GET(list);

	if (n < room)
		return 0;
	e = calloc(more, sizeof *e);
	if (!e)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		move(&e[i], &old[i]);
	PUT(list, e);
	room = more;
	return 0;
}

static void widen(const struct um_range *r)
{
	if (r->at < GET(um_range_bounds.low))
		PUT(um_range_bounds.low, r->at);
	if (r->at + r->bytes > GET(um_range_bounds.high))
		PUT(um_range_bounds.high, r->at + r->bytes);
}

int um_ranges_add(const struct um_range *r)
{
	struct entry *e;
	size_t i, n;
	int err;

	pthread_mutex_lock(&lock);
	err = grow();
	if (!err) {
		e = GET(list);
		n = GET(n_list);
		begin_change();
		for (i = n; i && GET(e[i - 1].at) > r->at; i--)
			move(&e[i], &e[i - 1]);
		PUT(e[i].at, r->at);
		PUT(e[i].bytes, r->bytes);
		PUT(e[i].serial, additions += 2);
		PUT(e[i].device,
		    (uintptr_t)r->device | (unsigned)r->kind | (r->converted ? UM_RANGE_CONVERTED_BIT : 0));
		PUT(n_list, n + 1);
		widen(r);
		end_change();
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void tell(struct um_range *out, uint64_t at, uint64_t bytes, uintptr_t device)
{
	out->at = at;
	out->bytes = bytes;
	out->device = (struct um_injected *)(device & ~(uintptr_t)UM_RANGE_BITS);
	out->kind = (enum um_range_kind)(device & UM_RANGE_KIND_BITS);
	out->converted = (device & UM_RANGE_CONVERTED_BIT) != 0;
}

int um_ranges_remove(uint64_t at, struct um_range *out)
{
	struct entry *e;
	size_t i, n;
	int found = 0;

	if (!um_ranges_any())
		return 0;
	pthread_mutex_lock(&lock);
	e = GET(list);
	n = GET(n_list);
	i = count_to(e, n, at);
	if (i && GET(e[i - 1].at) == at) {
		found = 1;
		tell(out, at, GET(e[i - 1].bytes), GET(e[i - 1].device));
		begin_change();
		for (; i < n; i++)
			move(&e[i - 1], &e[i]);
		PUT(n_list, n - 1);
		end_change();
		atomic_fetch_add(&um_range_bounds.removals, 1);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

uint64_t um_ranges_name(uint64_t addr)
{
	struct entry *e;
	uint64_t serial = 0;
	size_t i;

	pthread_mutex_lock(&lock);
	e = GET(list);
	i = count_to(e, GET(n_list), addr);
	if (i && addr - GET(e[i - 1].at) < GET(e[i - 1].bytes)) {
		serial = GET(e[i - 1].serial) | UM_RANGE_NAMED;
		if (serial != GET(e[i - 1].serial)) {
			begin_change();
			PUT(e[i - 1].serial, serial);
			end_change();
			atomic_fetch_add(&um_range_bounds.removals, 1); /* of the copies that are not */
		}
	}
	pthread_mutex_unlock(&lock);
	return serial;
}

uint64_t um_ranges_additions(void)
{
	uint64_t latest;

	pthread_mutex_lock(&lock);
	latest = additions | UM_RANGE_NAMED;
	pthread_mutex_unlock(&lock);
	return latest;
}

void um_ranges_drop(const struct um_injected *device)
{
	struct entry *e;
	size_t n = 0;

	pthread_mutex_lock(&lock);
	e = GET(list);
	begin_change();
	for (size_t i = 0; i < GET(n_list); i++)
		if ((GET(e[i].device) & ~(uintptr_t)UM_RANGE_BITS) != (uintptr_t)device)
			move(&e[n++], &e[i]);
	PUT(n_list, n);
	end_change();
	atomic_fetch_add(&um_range_bounds.removals, 1);
	pthread_mutex_unlock(&lock);
}

void um_ranges_end(void)
{
	PUT(um_range_bounds.low, UINT64_MAX);
	PUT(um_range_bounds.high, 0);
}

int um_ranges_any(void)
{
	return atomic_load_explicit(&um_range_bounds.high, memory_order_relaxed) != 0;
}

/* Without the lock. */
const struct um_range_seen *um_ranges_look_up(uint64_t addr, struct um_range_seen *r)
{
	uint64_t before, after;
	struct um_range_seen found;
	size_t i;

	do {
		const struct entry *e;
		size_t n;

		before = GET(sequence);
		found.removals = GET(um_range_bounds.removals);
		n = GET(n_list); /* before the list, which has room for as many */
		e = GET(list);
		i = count_to(e, n, addr);
		if (i) {
			found.at = GET(e[i - 1].at);
			found.bytes = GET(e[i - 1].bytes);
			found.serial = GET(e[i - 1].serial);
			found.device = GET(e[i - 1].device);
		}
		after = GET(sequence);
	} while (before & 1 || before != after);
	if (!i || addr - found.at >= found.bytes)
		return NULL;
	*r = found;
	return r;
}

int um_ranges_find(uint64_t addr, struct um_range *out)
{
	const struct um_range_seen *r = um_ranges_see(addr);

	if (r)
		tell(out, r->at, r->bytes, r->device);
	return r != NULL;
}
