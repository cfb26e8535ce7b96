/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_counts.c - state and counters of the executor
 */
#include "replay/executor_state.h"

int um_executor_active(const struct um_executor *ex)
{
	return ex->program != NULL;
}

int um_executor_stuck(const struct um_executor *ex)
{
	return !um_lanes_gates(&ex->lanes);
}

int um_executor_is_warm(const struct um_executor *ex)
{
	return ex->program && ex->turn;
}

uint64_t um_executor_queued(const struct um_executor *ex)
{
	const uint64_t *by = ex->lanes.queued.hints;

	return by[UM_HINT_SCHEDULED] + by[UM_HINT_PREDICTED] + by[UM_HINT_ANNOUNCED];
}

void um_executor_queued_by(const struct um_executor *ex, struct um_hints_by_source *to)
{
	for (int i = 0; i < UM_HINT_SOURCES; i++) {
		to->hints[i] += ex->lanes.queued.hints[i];
		to->prefetch_bytes[i] += ex->lanes.queued.prefetch_bytes[i];
	}
}

void um_executor_counts(const struct um_executor *ex, struct um_executor_counts *out)
{
	const struct um_lanes *l = &ex->lanes;

	out->issued = out->prefetch_bytes = 0;
	for (int i = 0; i < UM_HINT_SOURCES; i++) {
		struct um_hints_by_source *by = &out->issued_by;

		by->hints[i] = atomic_load_explicit(&l->issued[i], memory_order_relaxed);
		by->prefetch_bytes[i] = atomic_load_explicit(&l->prefetch_bytes[i], memory_order_relaxed);
		out->issued += by->hints[i];
		out->prefetch_bytes += by->prefetch_bytes[i];
	}
	out->refused = ex->read_mostly.refused + ex->host_resident.refused + atomic_load(&l->refused);
	out->evict_bytes = atomic_load_explicit(&l->evict_bytes, memory_order_relaxed);
	out->discard_bytes = atomic_load_explicit(&l->discard_bytes, memory_order_relaxed);
	out->kept_bytes = ex->kept_bytes;
	out->waits = (struct um_executor_wait_counts){
		.gates_waited = atomic_load_explicit(&l->gates_waited, memory_order_relaxed),
		.gates_late = atomic_load_explicit(&l->gates_late, memory_order_relaxed),
		.stuck = atomic_load_explicit(&l->stuck, memory_order_relaxed),
		.host_wait_ns = atomic_load_explicit(&l->host_wait_ns, memory_order_relaxed)};
	out->dropped = l->dropped + atomic_load_explicit(&l->limit.refused, memory_order_relaxed);
}

void um_executor_counts_add(struct um_executor_counts *to, const struct um_executor_counts *c)
{
	to->issued += c->issued;
	to->refused += c->refused;
	to->dropped += c->dropped;
	to->prefetch_bytes += c->prefetch_bytes;
	to->evict_bytes += c->evict_bytes;
	to->discard_bytes += c->discard_bytes;
	to->waits.gates_waited += c->waits.gates_waited;
	to->waits.gates_late += c->waits.gates_late;
	to->waits.stuck += c->waits.stuck;
	to->waits.host_wait_ns += c->waits.host_wait_ns;
	to->kept_bytes += c->kept_bytes;
	for (int i = 0; i < UM_HINT_SOURCES; i++) {
		to->issued_by.hints[i] += c->issued_by.hints[i];
		to->issued_by.prefetch_bytes[i] += c->issued_by.prefetch_bytes[i];
	}
}
