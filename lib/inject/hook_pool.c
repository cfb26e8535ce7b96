/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_pool.c - pools of memory: the driver tells the properties of one to its creator only
 */
#include "inject/pools.h"

#include "inject/driver.h"
#include "inject/session.h"

#include "base/vec.h"

#include <pthread.h>

#define PINNED 1 /* CUmemAllocationType */

struct properties { /* CUmemPoolProps */
	int type, handles;
	struct um_location location;
	void *security;
	size_t most_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `pools` */
static UM_VEC(struct pool {
	const void *handle;
	int device;
}) pools;

int cuMemPoolCreate(void **pool, const void *properties)
{
	const struct properties *p = properties;
	int err = UM_PASS(cuMemPoolCreate, (pool, properties));

	if (err || p->type != PINNED || p->handles || p->location.type != UM_LOC_DEVICE || p->most_bytes)
		return err;
	pthread_mutex_lock(&lock);
	(void)um_vec_push(&pools, ((struct pool){*pool, p->location.id})); /* without memory it stays the driver's */
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuMemPoolDestroy(void *pool)
{
	pthread_mutex_lock(&lock);
	for (size_t i = pools.n; i-- > 0;)
		if (pools.at[i].handle == pool)
			pools.at[i] = pools.at[--pools.n];
	pthread_mutex_unlock(&lock);
	return UM_PASS(cuMemPoolDestroy, (pool));
}

int um_pools_private(const void *pool)
{
	struct um_injected *d = um_driver_ready() ? um_session_device() : NULL;
	void *usual = NULL;
	int found = 0;

	if (!d)
		return 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < pools.n; i++)
		found |= pools.at[i].handle == pool && pools.at[i].device == d->ordinal;
	pthread_mutex_unlock(&lock);
	return found || (um_real.cuDeviceGetDefaultMemPool && !um_real.cuDeviceGetDefaultMemPool(&usual, d->ordinal) &&
			 usual == pool);
}
