/* SPDX-License-Identifier: Apache-2.0
 *
 * A sorted array under a lock, and in each thread the entries of recent look-ups, by 2 MiB block. A removal makes the
 * threads' entries invalid, an addition does not: what is not there is not kept.
 */
#include "inject/ranges.h"

#include "base/vec.h"

#include <pthread.h>
#include <stdatomic.h>

#define RECENT 64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static UM_VEC(struct um_range) list;
static _Atomic uint64_t low = UINT64_MAX, high; /* bounds of all that were ever there */
static _Atomic uint64_t removals = 1;

static _Thread_local __attribute__((tls_model("initial-exec"))) struct recent {
	uint64_t removals; /* when it was kept; 0: empty */
	struct um_range range;
} recent[RECENT];

/* Index of the first entry that starts behind `addr`. Under lock. */
static size_t after(uint64_t addr)
{
	size_t from = 0, to = list.n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (list.at[mid].at <= addr)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

int um_ranges_add(const struct um_range *r)
{
	int err;

	pthread_mutex_lock(&lock);
	err = um_vec_reserve(&list, 1);
	if (!err) {
		size_t i = after(r->at);

		memmove(list.at + i + 1, list.at + i, (list.n - i) * sizeof *list.at);
		list.at[i] = *r;
		list.n++;
		if (r->at < atomic_load(&low))
			atomic_store(&low, r->at);
		if (r->at + r->bytes > atomic_load(&high))
			atomic_store(&high, r->at + r->bytes);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int um_ranges_remove(uint64_t at, struct um_range *out)
{
	int found = 0;
	size_t i;

	if (!um_ranges_any())
		return 0;
	pthread_mutex_lock(&lock);
	i = after(at);
	if (i && list.at[i - 1].at == at) {
		found = 1;
		*out = list.at[i - 1];
		memmove(list.at + i - 1, list.at + i, (list.n - i) * sizeof *list.at);
		list.n--;
		atomic_fetch_add(&removals, 1);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void um_ranges_drop(const struct um_injected *device)
{
	size_t n = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < list.n; i++)
		if (device && list.at[i].device != device)
			list.at[n++] = list.at[i];
	list.n = n;
	atomic_fetch_add(&removals, 1);
	pthread_mutex_unlock(&lock);
}

int um_ranges_any(void)
{
	return atomic_load_explicit(&high, memory_order_relaxed) != 0;
}

static __attribute__((noinline)) int find_in_list(uint64_t addr, struct recent *keep, struct um_range *out)
{
	const struct um_range *r;
	size_t i;
	int found = 0;

	pthread_mutex_lock(&lock);
	i = after(addr);
	r = i ? &list.at[i - 1] : NULL;
	if (r && addr - r->at < r->bytes) {
		keep->removals = atomic_load(&removals);
		keep->range = *out = *r;
		found = 1;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

int um_ranges_find(uint64_t addr, struct um_range *out)
{
	struct recent *r;

	if (addr < atomic_load_explicit(&low, memory_order_relaxed) ||
	    addr >= atomic_load_explicit(&high, memory_order_relaxed))
		return 0;
	r = &recent[(addr >> 21) % RECENT];
	if (r->removals == atomic_load_explicit(&removals, memory_order_acquire) &&
	    addr - r->range.at < r->range.bytes) {
		*out = r->range;
		return 1;
	}
	return find_in_list(addr, r, out);
}
