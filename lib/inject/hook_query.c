/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_query.c - questions about memory: converted memory answers as the device memory that the program asked for
 */
#include "inject/driver.h"
#include "inject/session.h"

enum attribute { HOST_POINTER = 4, IS_MANAGED = 8, RANGE_START = 11, RANGE_SIZE = 12 }; /* CUpointer_attribute */

#define INVALID_VALUE 1
#define CONVERTED(at, r) (um_ranges_any() && um_ranges_find(at, r) && (r)->converted)

/* Free is what device memory would be if all allocations were device memory. */
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	int err = UM_PASS(cuMemGetInfo_v2, (free_bytes, total));
	struct um_injected *d = err || !um_ranges_any() ? NULL : um_session_device();
	uint64_t live = d ? atomic_load(&d->live) : 0;

	if (d && d->free_bytes)
		*free_bytes = live < d->free_bytes ? d->free_bytes - live : 0;
	return err;
}

int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t at)
{
	struct um_range r;

	if (!CONVERTED(at, &r))
		return UM_PASS(cuMemGetAddressRange_v2, (base, bytes, at));
	if (base)
		*base = r.at;
	if (bytes)
		*bytes = r.bytes;
	return 0;
}

/* 1: answered. A pointer for the host is an error, or 0 in a list. */
static int answer(void *out, int attribute, const struct um_range *r)
{
	if (attribute == IS_MANAGED)
		*(int *)out = 0;
	else if (attribute == HOST_POINTER)
		*(void **)out = NULL;
	else if (attribute == RANGE_START)
		*(uint64_t *)out = r->at;
	else if (attribute == RANGE_SIZE)
		*(size_t *)out = r->bytes;
	else
		return 0;
	return 1;
}

int cuPointerGetAttribute(void *out, int attribute, uint64_t at)
{
	struct um_range r;

	if (!out || !CONVERTED(at, &r))
		return UM_PASS(cuPointerGetAttribute, (out, attribute, at));
	if (attribute == HOST_POINTER)
		return INVALID_VALUE;
	return answer(out, attribute, &r) ? 0 : UM_PASS(cuPointerGetAttribute, (out, attribute, at));
}

int cuPointerGetAttributes(unsigned n, int *attributes, void **out, uint64_t at)
{
	int err = UM_PASS(cuPointerGetAttributes, (n, attributes, out, at));
	struct um_range r;

	if (err || !CONVERTED(at, &r))
		return err;
	for (unsigned i = 0; i < n; i++)
		answer(out[i], attributes[i], &r);
	return 0;
}

/* Other processes cannot open managed memory: from now on allocations stay device memory. */
int cuIpcGetMemHandle(void *handle, uint64_t at)
{
	struct um_range r;

	if (CONVERTED(at, &r))
		atomic_fetch_or(&um_inject_reasons, UM_REASON_IPC);
	return UM_PASS(cuIpcGetMemHandle, (handle, at));
}
