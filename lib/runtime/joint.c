/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/joint.h"

#include "base/vec.h"
#include "replay/block_lru.h"

#include <pthread.h>
#include <stdlib.h>

#define ALONE 64 /* uses by one context, and none by another, after which a range is its own */
#define MOST_ALONE (1u << 20)
#define READS 4 /* uses that only read, since the last that wrote, after which a range is read mostly */
#define MOST_READS (1u << 20)

struct range {
	struct um_joint_run of;
	uint16_t *here; /* by block, a bit for each context whose device has it */
	uint16_t adopters; /* a bit for each context */
	uint16_t readers; /* since the last write */
	int alone; /* the context whose own it is; -1: none */
	int last; /* the context that used it last; -1: none */
	uint32_t uses, most_uses; /* by that one, since another one did; until it is its own */
	uint32_t reads, most_reads; /* since the last write; until it is read mostly */
	int read_mostly;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static UM_VEC(struct range) ranges;
static uint16_t contexts; /* a bit for each number in use */
atomic_uint um_joint_news;

void um_joint_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void um_joint_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static uint64_t end_of(struct um_joint_run r)
{
	return r.addr + r.bytes;
}

static size_t blocks_of(struct um_joint_run r)
{
	return (um_block_of(end_of(r) - 1) - um_block_of(r.addr)) / UM_BLOCK_BYTES + 1;
}

static int overlap(struct um_joint_run a, struct um_joint_run b)
{
	return a.addr < end_of(b) && b.addr < end_of(a);
}

static void has_changed(void)
{
	atomic_fetch_add_explicit(&um_joint_news, 1, memory_order_release);
}

static void forget(struct range *r)
{
	free(r->here);
	*r = ranges.at[--ranges.n];
	if (!ranges.n)
		um_vec_fini(&ranges);
	has_changed();
}

/* The contexts of `gone` do not share the range any more. */
static void part(struct range *r, unsigned gone)
{
	r->adopters &= (uint16_t)~gone;
	if (!(r->adopters & (r->adopters - 1)))
		forget(r);
}

int um_joint_enter(void)
{
	int free_one = 0;

	pthread_mutex_lock(&lock);
	while (free_one < UM_JOINT_CONTEXTS && contexts >> free_one & 1)
		free_one++;
	if (free_one < UM_JOINT_CONTEXTS)
		contexts |= (uint16_t)(1u << free_one);
	pthread_mutex_unlock(&lock);
	return free_one < UM_JOINT_CONTEXTS ? free_one : -1;
}

void um_joint_leave_all(int context)
{
	pthread_mutex_lock(&lock);
	for (size_t i = ranges.n; i-- > 0;)
		part(&ranges.at[i], 1u << context);
	contexts &= (uint16_t) ~(1u << context);
	pthread_mutex_unlock(&lock);
}

void um_joint_leave(int context, struct um_joint_run tensor)
{
	pthread_mutex_lock(&lock);
	for (size_t i = ranges.n; i-- > 0;)
		if (overlap(ranges.at[i].of, tensor))
			part(&ranges.at[i], 1u << context);
	pthread_mutex_unlock(&lock);
}

void um_joint_add(int a, int b, struct um_joint_run range, int alone)
{
	struct range r = {.of = range,
			  .adopters = (uint16_t)(1u << a | 1u << b),
			  .alone = alone,
			  .last = alone,
			  .most_uses = ALONE,
			  .most_reads = READS};

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < ranges.n; i++)
		if (overlap(ranges.at[i].of, range)) {
			ranges.at[i].adopters |= r.adopters;
			ranges.at[i].alone = -1;
			goto out;
		}
	r.here = calloc(blocks_of(range), sizeof *r.here);
	if (!r.here || um_vec_push(&ranges, r))
		free(r.here);
out:
	has_changed();
	pthread_mutex_unlock(&lock);
}

int um_joint_next(int context, uint64_t from, struct um_joint_run *range, int *alone)
{
	const struct range *first = NULL;

	pthread_mutex_lock(&lock);
	for (const struct range *r = ranges.at, *end = r + ranges.n; r < end; r++)
		if (r->adopters >> context & 1 && r->of.addr >= from && (!first || r->of.addr < first->of.addr))
			first = r;
	if (first) {
		*range = first->of;
		*alone = first->alone == context;
	}
	pthread_mutex_unlock(&lock);
	return first != NULL;
}

static uint32_t twice(uint32_t n, uint32_t most)
{
	return n < most ? 2 * n : n;
}

/* Counts the use of a range that is not one context's own. */
static void count(struct range *r, int context, unsigned bit)
{
	if (r->alone >= 0) {
		r->most_uses = twice(r->most_uses, MOST_ALONE);
		r->alone = -1;
		has_changed();
	}
	r->uses = r->last == context ? r->uses + 1 : 1;
	r->last = context;
	if (r->uses < r->most_uses || r->readers & ~bit)
		return;
	r->alone = context;
	has_changed();
}

/* The copies are gone, which one stays is not known. */
static void forget_blocks(struct range *r)
{
	for (size_t k = 0; k < blocks_of(r->of); k++)
		r->here[k] = 0;
}

static void advise(struct range *r, unsigned bit, int write, struct um_joint_request *out)
{
	if (!write) {
		r->readers |= (uint16_t)bit;
		if (r->read_mostly || ++r->reads < r->most_reads || !(r->readers & (r->readers - 1)))
			return;
		r->read_mostly = 1;
		out->advice = UM_JOINT_ADVISE;
		return;
	}
	r->reads = r->readers = 0;
	if (!r->read_mostly)
		return;
	r->read_mostly = 0;
	r->most_reads = twice(r->most_reads, MOST_READS);
	forget_blocks(r);
	out->advice = UM_JOINT_WITHDRAW;
}

static void prefetch(struct um_joint_request *out, uint64_t from, uint64_t to)
{
	struct um_joint_run *last = out->n ? &out->run[out->n - 1] : NULL;

	if (last && end_of(*last) == from)
		last->bytes += to - from;
	else if (out->n < UM_JOINT_RUNS)
		out->run[out->n++] = (struct um_joint_run){from, to - from};
}

static void use(struct range *r, int context, struct um_joint_run used, int write, int stays, enum um_joint_how how,
		struct um_joint_request *out)
{
	unsigned bit = how == UM_JOINT_ON_CPU ? 0 : 1u << context;
	uint64_t from = used.addr > r->of.addr ? used.addr : r->of.addr;
	uint64_t to = end_of(used) < end_of(r->of) ? end_of(used) : end_of(r->of);
	uint64_t first = um_block_of(r->of.addr), next;

	if (bit)
		count(r, context, bit);
	if (bit || write)
		advise(r, bit, write, out);
	out->of = r->of;
	if (how == UM_JOINT_SOMEWHERE && !r->read_mostly)
		return;
	for (uint64_t a = from; a < to; a = next) {
		uint16_t *here = &r->here[(um_block_of(a) - first) / UM_BLOCK_BYTES];

		next = um_block_of(a) + UM_BLOCK_BYTES < to ? um_block_of(a) + UM_BLOCK_BYTES : to;
		if (bit && !(stays && *here & bit))
			prefetch(out, a, next);
		*here = (uint16_t)(r->read_mostly ? *here | bit : bit);
	}
}

void um_joint_use(int context, struct um_joint_run part_used, int write, int stays, enum um_joint_how how,
		  struct um_joint_request *out)
{
	struct range *first = NULL;

	out->advice = UM_JOINT_AS_IT_IS;
	out->of.bytes = out->n = 0;
	pthread_mutex_lock(&lock);
	for (struct range *r = ranges.at, *end = r + ranges.n; r < end; r++)
		if (overlap(r->of, part_used) && (!first || r->of.addr < first->of.addr))
			first = r;
	if (first)
		use(first, context, part_used, write, stays, how, out);
	pthread_mutex_unlock(&lock);
}
