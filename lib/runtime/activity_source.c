/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/activity_source.h"

#include "gpu/simulation.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define MOST_NAME 2048 /* of an op with its label */

void um_activity_source_init(struct um_activity_source *t, struct um_gpu *gpu)
{
	memset(t, 0, sizeof *t);
	t->gpu = gpu;
	t->process = (uint64_t)getpid();
}

int um_activity_source_add(struct um_activity_source *t, struct um_activity_sink *sink, int watched)
{
	if (t->n == UM_ACTIVITY_SOURCE_MOST)
		return -ENOSPC;
	t->sinks[t->n++] = sink;
	if (watched) {
		t->watched = 1;
		t->process = t->thread = 1;
	}
	return 0;
}

void um_activity_source_fini(struct um_activity_source *t)
{
	t->n = 0;
}

uint64_t um_activity_source_now(const struct um_activity_source *t)
{
	struct timespec ts;

	if (t->gpu->api->now)
		return t->gpu->api->now(t->gpu);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Times differ: otherwise a tensor that is freed at once could be sorted before its own birth. */
static int64_t tick(struct um_activity_source *t)
{
	int64_t now = (int64_t)(t->watched ? t->gpu->api->simulation->watch_tick(t->gpu) : um_activity_source_now(t));

	if (now <= t->last && !t->watched)
		now = t->last + 1;
	return t->last = now;
}

static uint64_t address(const struct um_activity_source *t, uint64_t addr)
{
	uint64_t reported = t->watched ? t->gpu->api->simulation->watch_address(t->gpu, addr) : 0;

	return reported ? reported : addr;
}

static void feed(struct um_activity_source *t, const struct um_activity *a)
{
	for (unsigned i = 0; i < t->n; i++)
		um_activity_feed(t->sinks[i], a);
}

static struct um_activity activity(const struct um_activity_source *t, enum um_activity_kind kind, int64_t begin,
				   int64_t end)
{
	return (struct um_activity){.kind = kind,
				    .begin = begin,
				    .end = end > begin ? end : begin,
				    .process = t->process,
				    .thread = t->thread ? t->thread : (uint64_t)(uintptr_t)pthread_self(),
				    .device = -1,
				    .stream = -1,
				    .op = UM_ACT_NO_OP};
}

static void report_tensor(struct um_activity_source *t, enum um_activity_kind kind, const struct um_tensor *tensor)
{
	int64_t now = tick(t);
	struct um_activity a = activity(t, kind, now, now);

	a.name = tensor->name ? tensor->name : "";
	a.address = address(t, tensor->addr);
	a.bytes = tensor->bytes;
	feed(t, &a);
}

void um_activity_source_tensor(struct um_activity_source *t, const struct um_tensor *tensor)
{
	report_tensor(t, UM_ACT_TENSOR, tensor);
}

void um_activity_source_tensor_end(struct um_activity_source *t, const struct um_tensor *tensor)
{
	report_tensor(t, UM_ACT_TENSOR_END, tensor);
}

void um_activity_source_op(struct um_activity_source *t, uint64_t number, const struct um_op *op)
{
	static const enum um_activity_access access[] = {UM_ACCESS_UNKNOWN, UM_ACCESS_READ, UM_ACCESS_WRITE,
							 UM_ACCESS_UPDATE};
	int64_t now = tick(t);
	struct um_activity a = activity(t, UM_ACT_OP, now, now);
	char name[MOST_NAME];

	a.op = number;
	a.name = op->name;
	if (op->label) {
		snprintf(name, sizeof name, "%s/%s", op->label, op->name);
		a.name = name;
	}
	feed(t, &a);
	a.kind = UM_ACT_USE;
	a.name = NULL;
	for (uint32_t i = 0; i < op->n_uses; i++) {
		a.address = address(t, op->uses[i].tensor->addr + op->uses[i].off);
		a.bytes = op->uses[i].bytes;
		a.access = access[op->uses[i].access & UM_UPDATE];
		feed(t, &a);
	}
}

struct um_activity um_activity_source_hint_activity(const struct um_activity_source *t,
						    const struct um_issued_hint *hint)
{
	static const enum um_hint_kind kinds[] = {[UM_ACTION_PREFETCH] = UM_HINT_PREFETCH,
						  [UM_ACTION_EVICT] = UM_HINT_EVICT,
						  [UM_ACTION_DISCARD] = UM_HINT_DISCARD,
						  [UM_ACTION_DROP_CLEAN] = UM_HINT_ADVISE,
						  [UM_ACTION_EVICT_OR_DROP] = UM_HINT_EVICT};
	struct um_activity a = activity(t, UM_ACT_HINT, (int64_t)hint->begin, (int64_t)hint->end);

	a.hint = kinds[hint->kind];
	a.address = address(t, hint->addr);
	a.bytes = hint->bytes;
	a.op = hint->op;
	a.error = hint->code;
	return a;
}

void um_activity_source_hint(struct um_activity_source *t, const struct um_issued_hint *hint)
{
	struct um_activity a = um_activity_source_hint_activity(t, hint);

	feed(t, &a);
}
