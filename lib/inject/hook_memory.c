/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_memory.c - allocations: device memory becomes managed memory and a tensor of the context
 *
 * Memory of cuMemAlloc is managed memory of the driver, adopted by the context. Memory of cuMemAllocAsync and of pools
 * that are for this process only comes from the context (umadv_alloc_async), as the driver frees no managed memory in
 * stream order. Other pools, virtual memory and memory of a capture stay the driver's.
 */
#include "inject/driver.h"
#include "inject/pools.h"
#include "inject/session.h"

#include "base/vec.h"

#include <pthread.h>
#include <stdio.h>

#define ATTACH_GLOBAL 1u
#define ATTACH_HOST 2u
#define NO_MEMORY 2
#define NAMED 4096u
#define PITCH 512u /* of the driver's pitched allocations */

#define CALLER __builtin_return_address(0)

/* An allocation that stays device memory: it is known, not announced. */
static int keep_device(int err, const uint64_t *out, uint64_t bytes, enum um_range_kind kind)
{
	struct um_range r = {.bytes = bytes, .kind = kind};

	if (err || !out || !bytes || !um_session_active())
		return err;
	r.at = *out;
	r.device = um_session_device();
	(void)um_session_add(&r);
	return err;
}

/* Device memory comes in pages of this size, so that programs which go a little beyond their allocations do no harm
 * there. Beyond managed memory such an access would end the program. */
#define PAGE ((uint64_t)2 << 20)

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes < PAGE / 2 || bytes > UINT64_MAX - PAGE ? bytes : (bytes + PAGE - 1) / PAGE * PAGE;
}

/* The tensor of an allocation that became managed is all that was allocated, unless that is much more: blocks that are
 * its own as a whole can be evicted and advised as a whole. */
#define MORE 8 /* a tensor is larger than the program's allocation by at most this part */

static uint64_t tensor_bytes(uint64_t bytes, int converted)
{
	uint64_t whole = whole_pages(bytes);

	return converted && whole - bytes <= bytes / MORE ? whole : bytes;
}

/* Managed memory of the driver becomes a tensor. Without memory for the entry it is not announced. The first ones are
 * named by their order, so that a saved plan knows them in the next run. */
static void adopt(struct um_injected *d, uint64_t at, uint64_t bytes, int converted)
{
	struct um_range r = {at, bytes, d, UM_RANGE_ADOPTED, converted};
	uint64_t n = atomic_fetch_add(&d->allocations, 1);
	char name[32];

	if (um_session_add(&r))
		return;
	snprintf(name, sizeof name, "allocation %llu", (unsigned long long)n + 1);
	umadv_adopt(d->adv, (void *)(uintptr_t)at, tensor_bytes(bytes, converted), n < NAMED ? name : NULL,
		    UMADV_OTHER);
	if (converted)
		um_session_populate(d, at, bytes);
	else
		um_session_ask();
}

/* A small allocation that may stay device memory. 1: `err` is the result; 0: it may not, or the device has no room. */
static int keep_small(uint64_t *out, uint64_t bytes, const void *caller, int *err)
{
	int asks = out && bytes && bytes < UM_SESSION_SMALL && um_driver_ready();
	struct um_injected *d = asks ? um_session_place(bytes, caller) : NULL;

	if (!d || !um_session_take_small(d, bytes))
		return 0;
	*err = UM_PASS(cuMemAlloc_v2, (out, bytes));
	if (*err) {
		um_session_give_small(d, bytes);
		return 0;
	}
	return keep_device(0, out, bytes, UM_RANGE_SMALL), 1;
}

/* Allocates managed memory in place of device memory. 1: `err` is the result; 0: the driver should be asked. */
static int convert(uint64_t *out, uint64_t bytes, const void *caller, int *err)
{
	struct um_injected *d = out && bytes && um_driver_ready() ? um_session_place(bytes, caller) : NULL;

	if (!d)
		return 0;
	if (um_session_full(d, bytes)) {
		*err = NO_MEMORY;
		return 1;
	}
	*err = um_real.cuMemAllocManaged(out, whole_pages(bytes), ATTACH_GLOBAL);
	if (*err)
		return 0;
	if (d->standin)
		d->standin->use_memory((void *)(uintptr_t)*out, bytes);
	adopt(d, *out, bytes, 1);
	return 1;
}

int cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
	int err;

	if (keep_small(out, bytes, CALLER, &err) || convert(out, bytes, CALLER, &err))
		return err;
	return keep_device(UM_PASS(cuMemAlloc_v2, (out, bytes)), out, bytes, UM_RANGE_DEVICE);
}

int cuMemAllocPitch_v2(uint64_t *out, size_t *pitch, size_t width, size_t rows, unsigned element)
{
	size_t row = (width + PITCH - 1) / PITCH * PITCH;
	int err;

	if (pitch && width && row >= width && rows && rows <= SIZE_MAX / row &&
	    (element == 4 || element == 8 || element == 16) && convert(out, row * rows, CALLER, &err)) {
		if (!err)
			*pitch = row;
		return err;
	}
	err = UM_PASS(cuMemAllocPitch_v2, (out, pitch, width, rows, element));
	return keep_device(err, out, err ? 0 : *pitch * rows, UM_RANGE_DEVICE);
}

/* Memory that is attached to the host, as that of paged optimizers, is any stream's too on devices that get hints. */
int cuMemAllocManaged(uint64_t *out, size_t bytes, unsigned flags)
{
	int err = UM_PASS(cuMemAllocManaged, (out, bytes, flags));
	struct um_injected *d = err ? NULL : um_session_device();

	if (d && (flags == ATTACH_GLOBAL || flags == ATTACH_HOST))
		adopt(d, *out, bytes, 0);
	return err;
}

int cuMemFree_v2(uint64_t at)
{
	struct um_range r;

	if (!um_ranges_remove(at, &r))
		return UM_PASS(cuMemFree_v2, (at));
	um_session_removed(&r);
	if (r.kind == UM_RANGE_ADOPTED && um_session_active()) {
		umadv_disown(r.device->adv, (void *)(uintptr_t)at, tensor_bytes(r.bytes, r.converted));
		if (!r.converted)
			um_session_end_shared(&r);
	}
	if (r.kind != UM_RANGE_OWN)
		return um_real.cuMemFree_v2(at);
	/* as the driver does; while something captures it would break the capture */
	if (um_real.cuCtxSynchronize && !um_session_captures(NULL))
		um_real.cuCtxSynchronize();
	if (um_session_active())
		umadv_free(r.device->adv, (void *)(uintptr_t)at);
	return 0;
}

/* --- in stream order ---------------------------------------------------------------------------------------------- */

static int convert_async(uint64_t *out, uint64_t bytes, void *stream, const void *caller, int *err)
{
	struct um_injected *d = out && bytes && um_driver_ready() ? um_session_place(bytes, caller) : NULL;
	struct um_range r = {.bytes = bytes, .device = d, .kind = UM_RANGE_OWN, .converted = 1};
	void *p;

	if (!d || um_session_captures(stream))
		return 0;
	if (um_session_full(d, bytes)) {
		*err = NO_MEMORY;
		return 1;
	}
	if (umadv_alloc_async(d->adv, &p, bytes, NULL, UMADV_OTHER, um_session_stream(stream)))
		return 0;
	r.at = (uintptr_t)p;
	if (d->standin)
		atomic_store(&um_session_state.shown, 1);
	if (um_session_add(&r)) {
		umadv_free(d->adv, p);
		return 0;
	}
	um_session_populate_new(d, r.at);
	*out = r.at;
	*err = 0;
	return 1;
}

static int free_async(uint64_t at, void *stream, int (*real)(uint64_t, void *))
{
	struct um_range r;

	if (!um_ranges_find(at, &r) || r.at != at || (r.kind == UM_RANGE_ADOPTED && !r.converted))
		return real ? real(at, stream) : UM_CUDA_SYMBOL_MISSING;
	/* The driver frees memory of cuMemAlloc this way, but no managed memory. */
	if (r.kind == UM_RANGE_ADOPTED && !um_session_captures(stream))
		return um_real.cuStreamSynchronize(stream) ? 0 : cuMemFree_v2(at);
	if (r.kind == UM_RANGE_ADOPTED || !um_ranges_remove(at, &r))
		return real ? real(at, stream) : UM_CUDA_SYMBOL_MISSING;
	um_session_removed(&r);
	if (r.kind != UM_RANGE_OWN)
		return real ? real(at, stream) : UM_CUDA_SYMBOL_MISSING;
	if (um_session_active())
		umadv_free_async(r.device->adv, (void *)(uintptr_t)at, um_session_stream(stream));
	return 0;
}

#define ASYNC(suffix, on)                                                                                              \
	int cuMemAllocAsync##suffix(uint64_t *out, size_t bytes, void *stream)                                         \
	{                                                                                                              \
		int err;                                                                                               \
                                                                                                                       \
		if (convert_async(out, bytes, on, CALLER, &err))                                                       \
			return err;                                                                                    \
		return keep_device(UM_PASS(cuMemAllocAsync##suffix, (out, bytes, stream)), out, bytes,                 \
				   UM_RANGE_DEVICE);                                                                   \
	}                                                                                                              \
	int cuMemAllocFromPoolAsync##suffix(uint64_t *out, size_t bytes, void *pool, void *stream)                     \
	{                                                                                                              \
		int err;                                                                                               \
                                                                                                                       \
		if (um_pools_private(pool) && convert_async(out, bytes, on, CALLER, &err))                             \
			return err;                                                                                    \
		atomic_fetch_or(&um_inject_reasons, UM_REASON_POOL);                                                   \
		return keep_device(UM_PASS(cuMemAllocFromPoolAsync##suffix, (out, bytes, pool, stream)), out, bytes,   \
				   UM_RANGE_DEVICE);                                                                   \
	}                                                                                                              \
	int cuMemFreeAsync##suffix(uint64_t at, void *stream)                                                          \
	{                                                                                                              \
		um_driver_ready();                                                                                     \
		return free_async(at, on, um_real.cuMemFreeAsync##suffix);                                             \
	}

ASYNC(, stream)
ASYNC(_ptsz, stream ? stream : (void *)2)

/* --- virtual memory: counted only --------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `created` */
static UM_VEC(struct created {
	uint64_t handle;
	size_t bytes;
}) created;

int cuMemCreate(uint64_t *handle, size_t bytes, const void *properties, unsigned long long flags)
{
	int err = UM_PASS(cuMemCreate, (handle, bytes, properties, flags)), lost;

	if (err || !um_session_active())
		return err;
	pthread_mutex_lock(&lock);
	lost = um_vec_push(&created, ((struct created){*handle, bytes}));
	pthread_mutex_unlock(&lock);
	if (!lost)
		um_session_unseen((int64_t)bytes, UM_REASON_POOL);
	return 0;
}

int cuMemRelease(uint64_t handle)
{
	size_t bytes = 0;

	if (!um_session_active())
		return UM_PASS(cuMemRelease, (handle));
	pthread_mutex_lock(&lock);
	for (size_t i = created.n; i-- > 0 && !bytes;)
		if (created.at[i].handle == handle) {
			bytes = created.at[i].bytes;
			created.at[i] = created.at[--created.n];
		}
	pthread_mutex_unlock(&lock);
	if (bytes)
		um_session_unseen(-(int64_t)bytes, UM_REASON_POOL);
	return UM_PASS(cuMemRelease, (handle));
}
