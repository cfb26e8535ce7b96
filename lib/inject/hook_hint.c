/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_hint.c - the program's own prefetches to the device, which a plan makes redundant
 *
 * A paged optimizer prefetches the state of each parameter just before its update. While a plan is followed, that
 * memory is resident by then, or its prefetch is queued. Where it is neither, the program's prefetch would displace
 * blocks that the plan counts as resident, or exceed the budget. So it is not passed on. The driver does the rest:
 * prefetches to the host, while streams capture, or of memory that the context does not know.
 */
#include "inject/driver.h"
#include "inject/session.h"

static int is_planned(uint64_t at, uint64_t bytes, struct um_location to)
{
	struct um_range r;

	return to.type == UM_LOC_DEVICE && um_ranges_find(at, &r) && um_range_is_managed(r.kind) && bytes &&
	       bytes <= r.at + r.bytes - at && r.device->ordinal == to.id && um_session_plans(r.device);
}

/* 1: `n` prefetches are not passed on. Otherwise the stream captures or is not valid, which the driver reports. */
static int leave_out(size_t n, void *stream)
{
	if (um_session_asks_capture(stream))
		return 0;
	atomic_fetch_add_explicit(&um_inject_counts.left_to_plan, n, memory_order_relaxed);
	return 1;
}

static int absorb(uint64_t at, uint64_t bytes, struct um_location to, void *stream)
{
	return um_session_pressed() && is_planned(at, bytes, to) && leave_out(1, stream);
}

/* The same if it holds for each range. The k-th location is that of ranges from first[k] on. The driver refuses the
 * legacy default stream. */
static int absorb_batch(const uint64_t *at, const size_t *bytes, size_t n, const struct um_location *to,
			const size_t *first, size_t n_to, void *stream)
{
	if (!um_session_pressed() || !at || !bytes || !n || !to || !first || !n_to || *first || !stream ||
	    stream == UM_STREAM_LEGACY)
		return 0;
	for (size_t i = 0, k = 0; i < n; i++) {
		while (k + 1 < n_to && first[k + 1] <= i)
			k++;
		if (!is_planned(at[i], bytes[i], to[k]))
			return 0;
	}
	return leave_out(n, stream);
}

#define OF_THREAD(stream) ((stream) ? (stream) : (void *)2)

#define PREFETCH(suffix, on)                                                                                           \
	int cuMemPrefetchAsync##suffix(uint64_t at, size_t bytes, int device, void *stream)                            \
	{                                                                                                              \
		if (absorb(at, bytes, device < 0 ? um_on_host() : um_on_device(device), on))                           \
			return 0;                                                                                      \
		return UM_PASS(cuMemPrefetchAsync##suffix, (at, bytes, device, stream));                               \
	}                                                                                                              \
	int cuMemPrefetchAsync_v2##suffix(uint64_t at, size_t bytes, struct um_location to, unsigned flags,            \
					  void *stream)                                                                \
	{                                                                                                              \
		if (!flags && absorb(at, bytes, to, on))                                                               \
			return 0;                                                                                      \
		return UM_PASS(cuMemPrefetchAsync_v2##suffix, (at, bytes, to, flags, stream));                         \
	}                                                                                                              \
	int cuMemPrefetchBatchAsync##suffix(uint64_t *at, size_t *bytes, size_t n, struct um_location *to,             \
					    size_t *to_index, size_t n_to, unsigned long long flags, void *stream)     \
	{                                                                                                              \
		if (!flags && absorb_batch(at, bytes, n, to, to_index, n_to, on))                                      \
			return 0;                                                                                      \
		return UM_PASS(cuMemPrefetchBatchAsync##suffix, (at, bytes, n, to, to_index, n_to, flags, stream));    \
	}

PREFETCH(, stream)
PREFETCH(_ptsz, OF_THREAD(stream))
