/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/owners.h"

#include "base/vec.h"

#include <pthread.h>
#include <stdatomic.h>

struct range {
	uint64_t addr, bytes;
	const void *owner;
	int device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static UM_VEC(struct range) ranges;
static atomic_int several; /* contexts have owned memory at once: an op with unknown memory has to look */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void watch(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

void um_owners_add(uint64_t addr, uint64_t bytes, const void *owner, int device)
{
	pthread_once(&once, watch);
	pthread_mutex_lock(&lock);
	if (ranges.n && ranges.at[0].owner != owner)
		atomic_store_explicit(&several, 1, memory_order_relaxed);
	(void)um_vec_push(&ranges, ((struct range){addr, bytes, owner, device}));
	pthread_mutex_unlock(&lock);
}

void um_owners_remove(uint64_t addr, const void *owner)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < ranges.n; i++)
		if (ranges.at[i].addr == addr && ranges.at[i].owner == owner) {
			ranges.at[i] = ranges.at[--ranges.n];
			break;
		}
	if (!ranges.n)
		um_vec_fini(&ranges);
	pthread_mutex_unlock(&lock);
}

int um_owners_other(uint64_t addr, const void *owner, int *device)
{
	int found = 0;

	if (!atomic_load_explicit(&several, memory_order_relaxed))
		return 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < ranges.n && !found; i++)
		if (addr - ranges.at[i].addr < ranges.at[i].bytes && ranges.at[i].owner != owner) {
			*device = ranges.at[i].device;
			found = 1;
		}
	pthread_mutex_unlock(&lock);
	return found;
}
