/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/declared.h"

#include "inject/session.h"

#include "base/bisect.h"
#include "gpu/nvtx_listen.h"

#include <stdlib.h>

_Thread_local int um_declared_on;

static _Thread_local struct {
	uint64_t serial[UM_DECLARED_MOST]; /* ascending */
	unsigned n, depth;
	uint64_t since; /* additions before the operation */
} declared;

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

enum um_declared um_declared_search(const struct um_range_seen *r)
{
	size_t i = 0;

	if (r->serial > declared.since)
		return UM_DECLARED_USED;
	UM_BISECT(i, declared.n, k, declared.serial[k] < r->serial)
	if (i < declared.n && declared.serial[i] == r->serial)
		return UM_DECLARED_USED;
	return r->serial & UM_RANGE_NAMED ? UM_DECLARED_UNUSED : UM_DECLARED_NOTHING;
}

int umadvise_run_wants(void)
{
	return um_session_active() && um_session_pressed();
}

void umadvise_run_begin(const uint64_t *addresses, uint64_t n)
{
	uint64_t serial;

	if (declared.depth++)
		return;
	declared.n = 0;
	if (n > UM_DECLARED_MOST || !um_session_active()) /* in a forked child the lock of the ranges may be held */
		return;
	for (uint64_t i = 0; i < n; i++) {
		serial = um_ranges_name(addresses[i]);
		if (serial)
			declared.serial[declared.n++] = serial;
	}
	qsort(declared.serial, declared.n, sizeof *declared.serial, by_value);
	declared.since = um_ranges_additions();
	um_declared_on = 1;
}

void umadvise_run_end(void)
{
	if (declared.depth && !--declared.depth)
		um_declared_on = 0;
}

void umadvise_run_iteration(void)
{
	if (atomic_load_explicit(&um_nvtx_marks, memory_order_relaxed))
		return;
	for (int i = 0; i < UM_INJECT_DEVICES && umadvise_run_wants(); i++) {
		struct umadv *adv = um_session_at(i)->adv;

		if (adv)
			umadv_iter(adv, NULL);
	}
}
