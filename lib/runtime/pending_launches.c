/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/pending_launches.h"

#include "model/tensor.h"

static struct um_pending_launch *find(struct um_pending_launches *p, uint64_t thread)
{
	for (struct um_pending_launch *l = p->of; l < p->of + p->n; l++)
		if (l->thread == thread)
			return l;
	return NULL;
}

/* A record for the thread; those without an op are used again. NULL: there is none. */
static struct um_pending_launch *add(struct um_pending_launches *p, uint64_t thread)
{
	struct um_pending_launch *l = p->of;

	while (l < p->of + p->n && l->n)
		l++;
	if (l == p->of + UM_PENDING_THREADS) {
		p->overflow = 1;
		return NULL;
	}
	p->n += l == p->of + p->n;
	l->thread = thread;
	return l;
}

void um_pending_launches_called(struct um_pending_launches *p, uint64_t thread)
{
	struct um_pending_launch *l;

	if (!p->thread) {
		p->thread = thread;
		return;
	}
	if (!p->shared) {
		p->shared = 1;
		add(p, p->thread)->n = UINT32_MAX; /* its ops were not recorded */
		return;
	}
	l = find(p, thread);
	if (l)
		l->n = 0;
}

void um_pending_launches_op(struct um_pending_launches *p, const struct um_use *uses, uint32_t n)
{
	uint64_t thread = um_app_stream_thread();
	struct um_pending_launch *l = find(p, thread);

	l = l ? l : add(p, thread);
	if (!l)
		return;
	l->n = n > UM_PENDING_RANGES ? UINT32_MAX : n;
	for (uint32_t i = 0; i < n && l->n != UINT32_MAX; i++) {
		l->at[i].addr = uses[i].tensor->addr + uses[i].off;
		l->at[i].end = l->at[i].addr + uses[i].bytes;
	}
}

int um_pending_launches_search(const struct um_pending_launches *p, uint64_t addr, uint64_t bytes)
{
	if (p->overflow)
		return 1;
	for (const struct um_pending_launch *l = p->of; l < p->of + p->n; l++) {
		if (l->n == UINT32_MAX)
			return 1;
		for (uint32_t i = 0; i < l->n; i++)
			if (l->at[i].addr < addr + bytes && l->at[i].end > addr)
				return 1;
	}
	return 0;
}
