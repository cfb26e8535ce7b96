/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/sharing.h"

#include "runtime/environment.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NEED_STEPS 32 /* the need is rounded up to this part of the device: each change costs all contexts a plan */

static uint64_t to_blocks(uint64_t bytes)
{
	return bytes / UM_BLOCK_BYTES + (bytes % UM_BLOCK_BYTES != 0);
}

/* The device's name among those of this user. 0: it is not shared. */
static int name_device(const struct um_chosen_device *d, char *name, size_t size)
{
	const char *given = um_variable_get("UMADVISE_SHARE_DEVICE");
	size_t n;

	if (!d->gpu->api->now) {
		snprintf(name, size, "%s", d->gpu->caps.uuid);
		return *name != '\0';
	}
	if (!given)
		return 0;
	n = (size_t)snprintf(name, size, "simulated-%s", given);
	for (char *c = name; *c; c++)
		*c = isalnum((unsigned char)*c) ? *c : '-';
	return n < size;
}

static uint64_t most_blocks(const struct um_chosen_device *d, const struct um_options *o)
{
	return o->pub.budget ? to_blocks(um_chosen_device_most(d)) : UINT64_MAX;
}

void um_sharing_use(struct um_sharing *s, struct um_chosen_device *d, uint64_t blocks)
{
	int all = blocks >= s->arbiter.table->blocks || blocks >= s->claim.most;

	s->in_use = blocks;
	um_chosen_device_grant(d, all ? UINT64_MAX : blocks * UM_BLOCK_BYTES);
}

void um_sharing_open(struct um_sharing *s, struct um_chosen_device *d, const struct um_options *o,
		     struct um_notices *notices)
{
	int weight = o->pub.share ? o->pub.share : 1, err;
	char name[64];

	if (weight == UMADV_SHARE_OFF || o->strategy == UM_STRATEGY_ON_DEMAND || !um_gpu_takes_hints(d->gpu) ||
	    !name_device(d, name, sizeof name))
		return;
	s->claim = (struct um_arbiter_claim){UINT64_MAX, most_blocks(d, o), (uint64_t)weight};
	err = um_arbiter_open(&s->arbiter, name, um_chosen_device_whole(d) / UM_BLOCK_BYTES, &s->claim);
	if (err) {
		um_notices_log(notices, UMADV_LOG_INFO,
			       "the memory of device %s is not shared out: %s (UMADVISE_SHARE=off switches this off)",
			       name, strerror(-err));
		return;
	}
	um_chosen_device_shares(d, s->arbiter.table->blocks * UM_BLOCK_BYTES, o->pub.budget);
	um_sharing_use(s, d, s->arbiter.held);
	s->hinted = d->budget;
	if (s->arbiter.others)
		um_notices_log(notices, UMADV_LOG_INFO, "%u other contexts use the device: %llu of %llu MiB are free",
			       s->arbiter.others, (unsigned long long)(s->arbiter.held * UM_BLOCK_BYTES >> 20),
			       (unsigned long long)(s->arbiter.table->blocks * UM_BLOCK_BYTES >> 20));
}

void um_sharing_close(struct um_sharing *s, struct um_gpu *gpu)
{
	if (s->evicted)
		gpu->api->cudaEventDestroy(gpu, s->evicted);
	s->evicted = NULL;
	um_arbiter_close(&s->arbiter);
}

/* The need in steps, so that a little more memory does not change all budgets. */
static void declare(struct um_sharing *s, uint64_t bytes)
{
	uint64_t step = s->arbiter.table->blocks / NEED_STEPS + 1, need = to_blocks(bytes + bytes / 8);

	need = (need + step - 1) / step * step;
	if (s->claim.need == UINT64_MAX || need > s->claim.need)
		s->claim.need = need;
}

int um_sharing_look(struct um_sharing *s, const struct um_chosen_device *d, uint64_t live, uint64_t *blocks)
{
	const struct um_arbiter_claim was = s->claim;
	const struct um_arbiter *a = &s->arbiter;

	if (live && a->others)
		declare(s, live);
	if (d->limited && s->claim.most != UINT64_MAX)
		s->claim.most = to_blocks(um_chosen_device_most(d));
	if (!um_arbiter_has_news(&s->arbiter) && was.need == s->claim.need && was.most == s->claim.most)
		return 0;
	if (um_arbiter_look(&s->arbiter, &s->claim)) {
		s->claim = was; /* another process has the table: the next time */
		return 0;
	}
	*blocks = a->target < a->held ? a->target : a->held;
	return *blocks != s->in_use;
}
