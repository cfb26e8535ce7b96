/* SPDX-License-Identifier: Apache-2.0
 *
 * The steady iteration is gone through several times, request by request in the order of issue; each begins as soon as
 * its worker is free and what it waits for is over. All of that has been issued before, so each time is known when it
 * is asked for. The app is taken to be far ahead of the device.
 */
#include "replay/rehearsal.h"

#include "replay/lanes.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define LAPS 4 /* the last one counts */

/* Times by request of a lane, over all laps, each the latest so far: when all requests up to it are over. */
struct track {
	uint64_t *at; /* at[k]: of the first k */
	uint32_t n;
};

struct rehearsal {
	const struct um_program *p;
	const struct um_program_lap *lap;
	const struct um_schedule *s;
	const struct um_profile *profile;
	uint64_t in_ns, out_ns; /* to copy a block */
	unsigned n_out;
	struct track called, arrived, out, drop; /* ins: when the call was over, when the blocks had come */
	uint32_t in_base, out_base, drop_base; /* numbers at the beginning of this lap */
	uint64_t in_free[UM_LANES_IN], out_free[UM_LANES_OUT_MOST], drop_free[UM_LANES_DROP];
	uint64_t stream[UM_LANES_IN_STREAMS]; /* when it is through */
	uint64_t deferred; /* the driver's worker, which does what was asked for on a busy stream */
	uint64_t h2d, d2h; /* engines */
	uint64_t readers, writer; /* hints hold a lock of the driver's together, advice alone: until when */
	uint64_t *left; /* by block: when its copy on the host was complete; 0: there is none */
	uint64_t done; /* the last op */
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void track_add(struct track *t, uint64_t at)
{
	t->at[t->n + 1] = later(t->at[t->n], at);
	t->n++;
}

/* When the first requests, counted in this lap, were over. Those not yet known of are no reason to wait. */
static uint64_t track_at(const struct track *t, uint32_t base, int32_t count)
{
	int64_t k = (int64_t)base + count;

	if (count == INT32_MIN || k <= 0)
		return 0;
	return t->at[k < t->n ? k : t->n];
}

static size_t block_of(const struct rehearsal *r, uint64_t addr)
{
	size_t lo = 0, hi = r->p->blocks.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->p->blocks.at[mid] < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* A copy on one engine; where both are at work, each is the slower for it. */
static uint64_t copy(const struct rehearsal *r, uint64_t *engine, uint64_t other, uint64_t from, uint64_t ns)
{
	uint64_t begin = later(*engine, from);

	if (other > begin)
		ns = (uint64_t)((double)ns * 2 / (1 + r->profile->duplex));
	return *engine = begin + ns;
}

/* The driver's work for an in. Returns when the calling thread is through with it; `*end`: when the blocks have
 * come. */
static uint64_t bring(struct rehearsal *r, const struct um_action *a, uint64_t t, uint64_t *end)
{
	const struct um_profile *p = r->profile;
	size_t i = block_of(r, a->addr);

	*end = t = later(t, r->writer);
	for (uint64_t n = a->bytes / UM_BLOCK_BYTES; n && i < r->p->blocks.n; n--, i++) {
		t += p->c_pf + p->c_evict_unused;
		if (r->left[i]) {
			t += p->c_unmap;
			*end = later(*end, copy(r, &r->h2d, r->d2h, later(t, r->left[i]), r->in_ns));
		} else {
			*end = later(*end, t + p->c_zero);
		}
		r->left[i] = 0;
	}
	*end = later(*end, t);
	r->readers = later(r->readers, t);
	return t;
}

static void in(struct rehearsal *r, const struct um_action *a)
{
	uint32_t k = r->called.n;
	uint64_t *worker = &r->in_free[k % UM_LANES_IN], *stream = &r->stream[k % UM_LANES_IN_STREAMS];
	uint64_t t = later(*worker, track_at(&r->out, r->out_base, a->room));

	t = later(t, track_at(&r->drop, r->drop_base, (int32_t)a->drops)) + r->profile->c_api;
	if (*stream < t) {
		*worker = bring(r, a, t, stream);
	} else {
		*worker = t;
		r->deferred = bring(r, a, later(*stream, r->deferred), stream);
	}
	track_add(&r->called, *worker);
	track_add(&r->arrived, *stream);
}

/* Blocks its caller: the copies, then the mapping on the host. */
static void out(struct rehearsal *r, const struct um_action *a, uint64_t t)
{
	uint64_t *worker = &r->out_free[r->out.n % r->n_out];
	size_t first = block_of(r, a->addr), end = first + a->bytes / UM_BLOCK_BYTES;

	if (end > r->p->blocks.n)
		end = r->p->blocks.n;
	t = later(later(t, *worker), track_at(&r->called, r->in_base, a->room)) + r->profile->c_api;
	t = later(t, r->writer);
	for (size_t i = first; i < end; i++) {
		t += r->profile->c_pf;
		r->left[i] = copy(r, &r->d2h, r->h2d, t, r->out_ns);
	}
	for (size_t i = first; i < end; i++)
		t = later(t, r->left[i]) + r->profile->c_pf_cpu;
	r->readers = later(r->readers, t);
	*worker = t;
	track_add(&r->out, t);
}

static void drop(struct rehearsal *r, const struct um_action *a, uint64_t t)
{
	const struct um_profile *p = r->profile;
	uint64_t *worker = &r->drop_free[r->drop.n % UM_LANES_DROP], n = a->bytes / UM_BLOCK_BYTES;
	size_t i = block_of(r, a->addr);
	int let = a->kind == UM_ACTION_LET;

	t = later(later(t, *worker), track_at(&r->called, r->in_base, a->room));
	if (let) {
		t = r->writer = later(t, later(r->readers, r->writer)) + 2 * (p->c_api + n * p->c_adv);
	} else {
		t = later(t + p->c_api, r->writer) + n * p->c_disc_u;
		r->readers = later(r->readers, t);
	}
	for (; n && i < r->p->blocks.n; n--, i++)
		r->left[i] = let ? t : 0;
	*worker = t;
	track_add(&r->drop, t);
}

static void take_away(struct rehearsal *r, const struct um_action *a)
{
	if (a->kind == UM_ACTION_OUT)
		out(r, a, r->done);
	else if (a->kind != UM_ACTION_IN)
		drop(r, a, r->done);
}

/* In the order of the list, but that an in may wait for what is issued at the same op behind it. */
static void issue(struct rehearsal *r, uint32_t from, uint32_t to)
{
	const struct um_action *a = r->lap->actions.at;
	uint32_t next = from;

	for (uint32_t i = from; i < to; i++) {
		if (a[i].kind != UM_ACTION_IN)
			continue;
		for (; next < to && (next < i || (int64_t)r->out_base + a[i].room > r->out.n); next++)
			take_away(r, &a[next]);
		in(r, &a[i]);
	}
	for (; next < to; next++)
		take_away(r, &a[next]);
}

static void lap(struct rehearsal *r)
{
	r->in_base = r->called.n;
	r->out_base = r->out.n;
	r->drop_base = r->drop.n;
	for (uint32_t op = 0; op < r->p->n_ops; op++) {
		issue(r, r->lap->first[op], r->lap->first[op + 1]);
		r->done = later(r->done, track_at(&r->arrived, r->in_base, r->lap->gate[op])) + r->s->ops.at[op].ns;
	}
}

static int prepare(struct rehearsal *r)
{
	const struct um_profile *p = r->profile;
	double eta = p->eta > 0 ? p->eta : 1;

	r->in_ns = p->o_seg + (uint64_t)((double)UM_BLOCK_BYTES * 1e9 / (p->h2d * eta));
	r->out_ns = p->o_seg + (uint64_t)((double)UM_BLOCK_BYTES * 1e9 / (p->d2h * eta));
	r->n_out = um_lanes_out_workers(p->c_pf + p->c_pf_cpu, r->out_ns);
	r->left = calloc(r->p->blocks.n + 1, sizeof *r->left);
	r->called.at = calloc(LAPS * (size_t)r->lap->n_in + 1, sizeof *r->called.at);
	r->arrived.at = calloc(LAPS * (size_t)r->lap->n_in + 1, sizeof *r->arrived.at);
	r->out.at = calloc(LAPS * (size_t)r->lap->n_out + 1, sizeof *r->out.at);
	r->drop.at = calloc(LAPS * (size_t)r->lap->n_drop + 1, sizeof *r->drop.at);
	return r->left && r->called.at && r->arrived.at && r->out.at && r->drop.at ? 0 : -ENOMEM;
}

int um_rehearse(const struct um_program *program, const struct um_schedule *sched, const struct um_profile *profile,
                uint64_t *ns)
{
	struct rehearsal r = {.p = program,
	                      .lap = &program->lap[UM_PROGRAM_STEADY],
	                      .s = sched,
	                      .profile = profile};
	int err = prepare(&r);

	for (int i = 0; i < LAPS && !err; i++) {
		uint64_t begin = r.done;

		lap(&r);
		*ns = r.done - begin;
	}
	free(r.left);
	free(r.called.at);
	free(r.arrived.at);
	free(r.out.at);
	free(r.drop.at);
	return err;
}
