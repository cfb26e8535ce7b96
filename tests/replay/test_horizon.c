/* SPDX-License-Identifier: Apache-2.0
 *
 * The horizon on the simulated GPU: ops without a plan, whose blocks it requests.
 */
#include "replay/horizon_state.h"

#include "fixture/random.h"
#include "model/profile.h"
#include "replay/horizon_state.h"
#include "replay/lanes.h"
#include "sim/sim.h"
#include "tap.h"

#include <limits.h>

#define BLOCK UM_BLOCK_BYTES
#define TENSORS 64
#define NO_MORE UINT32_MAX
#define USED(...) ((const uint32_t[]){__VA_ARGS__, NO_MORE})

/* Tensors of two blocks each in one allocation, by number. */
struct rig {
	struct um_gpu *gpu;
	struct um_executor *ex;
	struct um_app_streams streams;
	struct um_predictor predictor;
	struct um_horizon horizon;
	struct um_tensor tensor[TENSORS];
	int64_t in_ns; /* of a block */
	uint64_t n_born, live; /* `live`: bytes */
	int writes; /* ops overwrite their tensors */
	uint64_t away; /* a bit for each tensor that is off the device when a plan begins */
	void *memory;
	int err;
};

static uint64_t size_of_tensor(void)
{
	return 2 * BLOCK;
}

static int is_dead(void *user, uint64_t addr)
{
	const struct rig *r = user;

	for (int i = 0; i < TENSORS; i++)
		if (r->tensor[i].id.v && addr < r->tensor[i].addr + r->tensor[i].bytes &&
		    r->tensor[i].addr < addr + BLOCK)
			return 0;
	return 1;
}

/* A block contains one tensor, or none. */
static struct um_predicted_next next_use(void *user, uint64_t addr)
{
	const struct rig *r = user;

	for (int i = 0; i < TENSORS; i++) {
		const struct um_tensor *t = &r->tensor[i];

		if (t->id.v && addr < t->addr + t->bytes && t->addr < addr + BLOCK)
			return um_predictor_next(&r->predictor, t);
	}
	return (struct um_predicted_next){.op = UM_PREDICTOR_UNKNOWN};
}

static enum um_residency plan_begins(void *user, uint64_t addr)
{
	const struct rig *r = user;
	uint64_t i = (addr - r->tensor[0].addr) / size_of_tensor();

	if (i >= TENSORS)
		return UM_RESIDENCY_UNKNOWN;
	return r->away >> i & 1 ? UM_NOT_RESIDENT : UM_RESIDENT;
}

/* What an op overwrites may be discarded if it waits; each op that overwrites does so with all that it misses. */
static int may_discard(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits)
{
	if (((struct rig *)user)->writes && waits == UM_OP_WAITS)
		return 2;
	for (uint64_t a = addr; a < addr + bytes; a += BLOCK)
		if (!is_dead(user, a))
			return 0;
	return 1;
}

static void born(struct rig *r, uint32_t i)
{
	r->tensor[i].id.v = ++r->n_born;
	r->live += r->tensor[i].bytes;
	um_executor_claim(r->ex, r->tensor[i].addr, r->tensor[i].bytes);
	um_horizon_born(&r->horizon, r->tensor[i].addr, r->tensor[i].bytes);
}

static void died(struct rig *r, uint32_t i)
{
	um_predictor_free(&r->predictor, &r->tensor[i]);
	r->tensor[i].id.v = 0;
	r->live -= r->tensor[i].bytes;
	um_horizon_free(&r->horizon, r->tensor[i].addr, r->tensor[i].bytes);
}

/* `capacity`: tensors that the horizon keeps resident; `device`: those that fit into the device. */
static void rig_open(struct rig *r, uint64_t capacity, uint64_t device)
{
	const struct um_profile *p = um_profile_find("v100");
	struct um_sim_options so = {.profile = p, .capacity = device * size_of_tensor()};
	struct um_executor_host eh = {
		.may_discard = may_discard, .user = r, .streams = &r->streams, .budget_blocks = 2 * capacity};
	struct um_horizon_host hh = {.predictor = &r->predictor,
				     .capacity = 2 * capacity,
				     .dead = is_dead,
				     .next = next_use,
				     .plan_begins = plan_begins,
				     .user = r};
	uint64_t at;

	memset(r, 0, sizeof *r);
	r->streams.n = r->streams.live = 1;
	r->in_ns = (int64_t)((double)BLOCK * 1e9 / (p->h2d * p->eta));
	eh.out_workers = um_lanes_out_workers(p->c_pf + p->c_pf_cpu, (uint64_t)r->in_ns);
	hh.in_ns = hh.out_ns = r->in_ns;
	if (um_sim_open(&r->gpu, &so) || um_executor_open(&r->ex, r->gpu, &eh))
		tap_bail("no device");
	hh.executor = r->ex;
	if (um_predictor_init(&r->predictor) || um_horizon_init(&r->horizon, &hh) ||
	    r->gpu->api->cudaMallocManaged(r->gpu, &r->memory, (TENSORS + 1) * size_of_tensor(), 1))
		tap_bail("no memory");
	at = ((uint64_t)(uintptr_t)r->memory + BLOCK - 1) / BLOCK * BLOCK;
	for (uint32_t i = 0; i < TENSORS; i++, at += size_of_tensor()) {
		r->tensor[i].addr = at;
		r->tensor[i].bytes = size_of_tensor();
	}
}

static void rig_end(struct rig *r)
{
	if (r->err | um_sim_sync(r->gpu))
		tap_bail("an op or a request failed");
	um_executor_close(r->ex);
	um_horizon_fini(&r->horizon);
	um_predictor_fini(&r->predictor);
	r->gpu->api->cudaFree(r->gpu, r->memory);
	r->gpu->api->close(r->gpu);
}

static void rig_close(struct rig *r)
{
	is_int(r->err | um_sim_sync(r->gpu), 0, "all ops run, and all requests end");
	rig_end(r);
}

/* An op that uses these tensors is announced, and launched if `runs`. */
static void announce(struct rig *r, const char *name, uint64_t ns, const uint32_t *list, int runs)
{
	struct um_predictor_feed feed = {.ns = ns, .live = r->live};
	struct um_executor_wait wait;
	struct um_touch touch[TENSORS];
	struct um_use uses[TENSORS];
	uint32_t access = r->writes ? UM_WRITE : UM_UPDATE;

	for (; list[feed.n_uses] != NO_MORE; feed.n_uses++) {
		struct um_tensor *t = &r->tensor[list[feed.n_uses]];

		uses[feed.n_uses] = (struct um_use){t->id, t, 0, t->bytes, t->bytes, access};
		touch[feed.n_uses] = (struct um_touch){.ptr = (void *)(uintptr_t)t->addr, t->bytes, t->bytes, access};
	}
	feed.kind = um_predictor_kind(name, 0, feed.n_uses);
	feed.uses = uses;
	r->err |= um_predictor_op(&r->predictor, &feed);
	um_horizon_op(&r->horizon, 0, uses, feed.n_uses, ns, 0);
	um_executor_guard(r->ex, 0, uses, feed.n_uses);
	if (um_executor_take_wait(r->ex, NULL, &wait))
		r->err |= um_executor_wait(&wait);
	if (runs)
		r->err |= um_sim_run(
			r->gpu, NULL,
			&(struct um_sim_kernel){.ns = ns, .name = name, .access = touch, .n_access = feed.n_uses});
}

static void op(struct rig *r, const char *name, uint64_t ns, const uint32_t *list)
{
	announce(r, name, ns, list, 1);
}

static int is_resident(const struct rig *r, uint32_t i)
{
	const struct um_horizon_blocks *t = &r->horizon.blocks;

	return um_horizon_block_resident(um_horizon_blocks_find(t, r->tensor[i].addr)) &&
	       um_horizon_block_resident(um_horizon_blocks_find(t, r->tensor[i].addr + BLOCK));
}

static struct um_tally tally_of(struct rig *r)
{
	struct um_tally t;

	r->err |= um_sim_sync(r->gpu);
	um_sim_tally(r->gpu, &t);
	return t;
}

/* --- residency ---------------------------------------------------------------------------------------------------- */

/* Tensors in random order, in a device that has as much memory as the horizon may use, or more. */
struct invariants {
	uint64_t faults, peak; /* `peak`: bytes resident at once, at most */
	int unrequested; /* the driver evicted what was not requested */
	int known; /* more blocks were known as resident than fit */
};

static void play_random(uint64_t seed, uint64_t device, struct invariants *v)
{
	struct um_executor_counts n;
	struct um_tally t;
	struct rig r;

	rig_open(&r, 6, device);
	for (uint32_t i = 0; i < 16; i++)
		born(&r, i);
	for (int i = 0; i < 400; i++) {
		uint32_t a = test_random(&seed, 16), b = i % 2 ? (uint32_t)i / 2 % 16 : (a + 1) % 16;

		op(&r, "op", 100000, a == b ? USED(a) : USED(a, b));
		v->known |= um_horizon_blocks_resident(&r.horizon.blocks) > 12;
	}
	t = tally_of(&r);
	um_executor_counts(r.ex, &n);
	v->faults += t.faults;
	v->unrequested |= t.d2h_bytes != n.evict_bytes;
	if (t.peak_resident_bytes > v->peak)
		v->peak = t.peak_resident_bytes;
	rig_end(&r);
}

static void no_faults(uint64_t device)
{
	int seeds = tap_few() ? 10 : 100;
	struct invariants v = {0};

	for (int seed = 1; seed <= seeds; seed++)
		play_random((uint64_t)seed, device, &v);
	is_u64(v.faults, 0, "%d-tensor device: the blocks of an op are resident when it begins", (int)device);
	ok(!v.unrequested, "%d-tensor device: the driver evicts nothing but what was requested", (int)device);
	ok(v.peak <= 12 * BLOCK, "%d-tensor device: never more is resident than fits (%.1f blocks)", (int)device,
	   (double)v.peak / (double)BLOCK);
	ok(!v.known, "%d-tensor device: no more blocks are known as resident than fit", (int)device);
}

/* One tensor is used after every four others, of eight; least recently used, it would be evicted each time. */
static void hot(void)
{
	int stays = 1;
	struct rig r;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i < 9; i++)
		born(&r, i);
	for (uint32_t i = 0; i < 40; i++) {
		if (i > 8)
			stays &= is_resident(&r, 8);
		op(&r, "hot", 100000, USED(8));
		for (uint32_t k = 0; k < 4; k++)
			op(&r, "cold", 100000, USED((i * 4 + k) % 8));
	}
	ok(stays, "a tensor that is used soon stays resident while others rotate");
	rig_close(&r);
}

/* Opens a rig for five tensors, of which `n` are alive. The plan to come begins without those of `away`. */
static void open_for_five(struct rig *r, uint32_t n, uint64_t away)
{
	rig_open(r, 5, 5);
	r->away = away;
	for (uint32_t i = 0; i < n; i++)
		born(r, i);
}

/* Closes it. Returns those of these tensors that are resident, a bit each. */
static uint64_t close_with_resident(struct rig *r, uint32_t n)
{
	uint64_t resident = 0;

	for (uint32_t i = 0; i < n; i++)
		resident |= (uint64_t)is_resident(r, i) << i;
	rig_close(r);
	return resident;
}

/* The tensors, a bit each, that are resident after three iterations that use eight of them in turn, and the last of
 * them after each other one, in memory for five. The plan to come begins without those of `away`. */
static uint64_t left_by_iterations(uint64_t away)
{
	struct rig r;

	open_for_five(&r, 8, away);
	for (int n = 0; n < 3; n++) {
		um_predictor_begin(&r.predictor);
		for (uint32_t i = 0; i < 7; i++) {
			op(&r, "each", 400000, USED(i));
			op(&r, "last", 400000, USED(7));
		}
	}
	return close_with_resident(&r, 8);
}

/* The same after three iterations that use them in turn, and a further one, under no plan, in which other ops do. */
static uint64_t left_by_odd_iteration(uint64_t away)
{
	struct rig r;

	open_for_five(&r, 8, away);
	for (uint32_t i = 0; i < 4 * 8; i++) {
		if (i % 8 == 0)
			um_predictor_begin(&r.predictor);
		if (i == 3 * 8) {
			um_predictor_skip(&r.predictor);
			um_horizon_forget(&r.horizon);
			um_horizon_recall(&r.horizon);
		}
		op(&r, i < 3 * 8 ? "each" : "odd", 400000, USED(i % 8));
	}
	return close_with_resident(&r, 8);
}

/* Tensors, a bit each, that are resident when an op has used the sixth one in memory for five, whose first uses were
 * under a plan. */
static uint64_t left_after_plan(uint64_t away)
{
	struct rig r;

	open_for_five(&r, 6, away);
	for (uint32_t i = 0; i < 5; i++)
		op(&r, "planned", 400000, USED(i));
	um_horizon_forget(&r.horizon);
	um_horizon_recall(&r.horizon);
	op(&r, "odd", 400000, USED(5));
	return close_with_resident(&r, 6);
}

static void before_plan(void)
{
	const uint64_t away = 1u << 2 | 1u << 3;

	ok((left_by_iterations(0) & away) == away, "at the end of an iteration what is used next is resident");
	is_u64(left_by_iterations(away) & away, 0, "what a plan begins without leaves before it");
	is_u64(left_by_odd_iteration(7u << 2), 0xff & ~(7u << 2),
	       "in an odd iteration it leaves as soon as an op has used it");
	is_u64(left_after_plan(1u << 3), 0x3f & ~(1u << 3), "where a plan is left it leaves first");
	is_u64(left_after_plan(1u << 1), 0x3f & ~(1u << 1), "whenever ops have used it");
}

/* Tensors that live for one op. */
static void dead(void)
{
	struct um_executor_counts n;
	struct rig r;

	rig_open(&r, 4, 8);
	for (uint32_t i = 0; i < 200; i++) {
		born(&r, i % 32);
		op(&r, "op", 400000, USED(i % 32));
		died(&r, i % 32);
	}
	r.err |= um_sim_sync(r.gpu);
	um_executor_counts(r.ex, &n);
	is_u64(n.evict_bytes, 0, "memory without a live tensor is not copied to the host");
	ok(n.discard_bytes >= 300 * BLOCK, "it is discarded (%d blocks)", (int)(n.discard_bytes / BLOCK));
	rig_close(&r);
}

/* Of two tensors that died, the first one's memory has a new tensor when an op needs room. */
static void born_before_op(void)
{
	struct rig r;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i < 6; i++)
		born(&r, i);
	for (uint32_t i = 0; i < 4; i++)
		op(&r, "op", 1000, USED(i));
	died(&r, 3);
	died(&r, 2);
	born(&r, 3);
	op(&r, "op", 1000, USED(4));
	ok(is_resident(&r, 3),
	   "memory without a live tensor is evicted before that of a tensor whose first op is to come");
	op(&r, "op", 1000, USED(5));
	ok(is_resident(&r, 3), "likewise tensors whose next use is not known");
	rig_close(&r);
}

/* A tensor dies right after its use, when others have not been used for long. */
static void dead_first(void)
{
	struct rig r;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i < 5; i++)
		born(&r, i);
	for (uint32_t i = 0; i < 4; i++)
		op(&r, "op", 1000, USED(i));
	died(&r, 3);
	op(&r, "op", 1000, USED(4));
	ok(is_resident(&r, 0) && is_resident(&r, 1) && is_resident(&r, 2) && !is_resident(&r, 3),
	   "memory without a live tensor is evicted before the least recently used tensor");
	rig_close(&r);
}

/* Each iteration bears a tensor that its first op uses alone, and frees it after `ops` others, which use seven weights
 * in turn. Six tensors fit. Is that tensor resident when it dies? */
static int outlives(uint32_t ops)
{
	uint32_t weight = 0;
	char name[16];
	struct rig r;
	int stays = 0;

	rig_open(&r, 6, 6);
	for (uint32_t i = 0; i < 7; i++)
		born(&r, i);
	for (uint32_t n = 0; n < 8; n++) {
		born(&r, 7 + n % 2);
		op(&r, "first", 1000, USED(7 + n % 2));
		for (uint32_t i = 0; i < 21; i++) {
			if (i == ops) {
				stays = is_resident(&r, 7 + n % 2);
				died(&r, 7 + n % 2);
			}
			snprintf(name, sizeof name, "weight %u", i);
			op(&r, name, 1000, USED(weight++ % 7));
		}
	}
	rig_close(&r);
	return stays;
}

static void last_use(void)
{
	ok(!outlives(14), "a tensor that is expected to die later than others are used is evicted");
	ok(outlives(2), "one that is expected to die soon stays");
}

/* Four tensors fit. */
static void host_memory(void)
{
	struct rig r;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i < 9; i++)
		born(&r, i);
	for (uint32_t i = 0; i < 4; i++)
		op(&r, "op", 1000, USED(i));
	died(&r, 3);
	for (uint32_t i = 4; i < 6; i++)
		op(&r, "op", 1000, USED(i));
	ok(!is_resident(&r, 0) && um_horizon_has_host(&r.horizon, r.tensor[0].addr),
	   "a block that was evicted with its content has host memory");
	ok(!is_resident(&r, 3) && !um_horizon_has_host(&r.horizon, r.tensor[3].addr),
	   "one that was only discarded has none");
	op(&r, "op", 1000, USED(0));
	ok(um_horizon_blocks_find(&r.horizon.blocks, r.tensor[0].addr)->on_host,
	   "a block that comes back still has it");
	died(&r, 0);
	for (uint32_t i = 6; i < 9; i++)
		op(&r, "op", 1000, USED(i));
	ok(!is_resident(&r, 0) && um_horizon_has_host(&r.horizon, r.tensor[0].addr),
	   "likewise one that is discarded after that");
	rig_close(&r);
}

/* The CPU used a tensor. */
static void on_host(void)
{
	struct um_use use = {.access = UM_READ};
	struct rig r;

	rig_open(&r, 4, 4);
	born(&r, 0);
	op(&r, "op", 1000, USED(0));
	ok(is_resident(&r, 0), "the blocks of an op are known as resident");
	use.tensor = &r.tensor[0];
	use.bytes = use.touched = size_of_tensor();
	um_horizon_evicted(&r.horizon, &use, 1);
	ok(!is_resident(&r, 0), "blocks that the CPU used are not resident");
	r.err |= um_sim_sync(r.gpu) | um_sim_host_touch(r.gpu, (void *)(uintptr_t)r.tensor[0].addr, BLOCK, UM_READ);
	op(&r, "op", 1000, USED(0));
	is_u64(tally_of(&r).faults, 0, "they are prefetched for the next op");
	rig_close(&r);
}

/* The CPU used the end of a block, which keeps its memory on the device for the rest. */
static void partly_on_host(void)
{
	struct um_use use = {.access = UM_READ, .off = 2 * BLOCK - 65536, .bytes = 65536, .touched = 65536};
	struct rig r;

	rig_open(&r, 4, 4);
	born(&r, 0);
	op(&r, "op", 1000, USED(0));
	use.tensor = &r.tensor[0];
	um_horizon_evicted(&r.horizon, &use, 1);
	ok(is_resident(&r, 0), "a block of which the CPU used a part still takes room");
	r.err |= um_sim_sync(r.gpu) |
		 um_sim_host_touch(r.gpu, (void *)(uintptr_t)(r.tensor[0].addr + use.off), use.bytes, UM_READ);
	op(&r, "op", 1000, USED(0));
	is_u64(tally_of(&r).faults, 0, "the part is prefetched for the next op");
	rig_close(&r);
}

/* Of a tensor, one block is read mostly and the other stays on the host. */
static void advice_apart(void)
{
	struct um_use use = {.access = UM_UPDATE, .bytes = 2 * BLOCK, .touched = 2 * BLOCK};
	struct um_executor_room room;
	struct rig r;
	uint64_t at;

	rig_open(&r, 4, 4);
	born(&r, 0);
	at = r.tensor[0].addr;
	use.tensor = &r.tensor[0];
	op(&r, "op", 1000, USED(0));
	r.err |= um_executor_away(r.ex, at, BLOCK, um_executor_in_queued(r.ex), 0, UM_AWAY_ONLY_READ, &room) |
		 um_executor_keep_on_host(r.ex, at + BLOCK, BLOCK);
	ok(um_executor_is_read_mostly(r.ex, at) && um_executor_is_host_resident(r.ex, at + BLOCK),
	   "two blocks of a tensor have advice");
	um_executor_use(r.ex, &use, 1, 1);
	ok(!um_executor_is_read_mostly(r.ex, at), "what an op writes is not read mostly any more");
	ok(um_executor_is_host_resident(r.ex, at + BLOCK), "what it writes over the link stays on the host");
	rig_close(&r);
}

/* Eight tensors in turn, of which four fit, in ops that overwrite or update them. */
static struct um_tally play_in_turn(int writes, uint64_t ns)
{
	struct um_tally t;
	struct rig r;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i < 8; i++)
		born(&r, i);
	r.writes = writes;
	for (uint32_t i = 0; i < 80; i++)
		op(&r, i % 8 ? "op" : "first", ns, USED(i % 8));
	t = tally_of(&r);
	rig_close(&r);
	return t;
}

static void overwritten(void)
{
	const uint64_t ns = 2000000;
	double slower;

	ok(play_in_turn(0, 1000).h2d_bytes > 0, "evicted content that ops update is copied back");
	is_u64(play_in_turn(1, 1000).h2d_bytes, 0, "content that ops overwrite is not");
	slower = (double)play_in_turn(1, ns).ns / (80.0 * (double)ns);
	ok(slower < 1.1, "room for what the next op overwrites is made while an op runs: %.3f of the ops' time",
	   slower);
}

/* An evicted tensor dies, and another one is born in its memory. */
static void born_again(void)
{
	uint64_t before;
	struct rig r;

	rig_open(&r, 2, 2);
	for (uint32_t i = 0; i < 3; i++)
		born(&r, i);
	r.writes = 1;
	for (uint32_t i = 0; i < 3; i++)
		op(&r, "op", 1000, USED(i));
	ok(!is_resident(&r, 0), "the first of three tensors was evicted, as two fit");
	before = tally_of(&r).h2d_bytes;
	died(&r, 0);
	born(&r, 0);
	op(&r, "op", 1000, USED(0));
	is_u64(tally_of(&r).h2d_bytes, before, "the content of a tensor that died is not copied back for the next one");
	rig_close(&r);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

/* 16 tensors in turn, of which four fit, so that most must come each time. Without predictions (each op has a name of
 * its own) each op's blocks are prefetched when it is announced. */
static uint64_t turns_take(int predicted)
{
	uint64_t ns;
	struct rig r;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i < 16; i++)
		born(&r, i);
	for (uint32_t i = 0; i < 240; i++) {
		char name[16];

		snprintf(name, sizeof name, "op%u", predicted ? i % 16 : i);
		op(&r, name, 3 * (uint64_t)r.in_ns, USED(i % 16));
		r.err |= um_sim_sync(r.gpu); /* the program does not run ahead */
	}
	ns = tally_of(&r).ns;
	rig_close(&r);
	return ns;
}

static void overlap(void)
{
	uint64_t predicted = turns_take(1), on_use = turns_take(0);

	ok((double)predicted < 0.8 * (double)on_use,
	   "prefetches of predicted ops overlap with the ops before: %.2f of the time of prefetches on use",
	   (double)predicted / (double)on_use);
}

/* Each iteration bears five tensors, one after the other, frees them, and uses eight weights. Six tensors fit. */
static void births(void)
{
	uint64_t ahead = 0;
	struct rig r;

	rig_open(&r, 6, 6);
	for (uint32_t i = 0; i < 8; i++)
		born(&r, i);
	for (uint32_t n = 0; n < 8; n++) {
		for (uint32_t i = 0; i < 5; i++) {
			born(&r, 8 + i);
			op(&r, "forward", 1000, USED(8 + i));
			if (!i)
				ahead = r.horizon.scanned - r.predictor.n_ops;
		}
		for (uint32_t i = 0; i < 5; i++)
			died(&r, 8 + i);
		for (uint32_t i = 0; i < 8; i++)
			op(&r, "weight", 1000, USED(i));
	}
	ok(ahead >= 4 && ahead <= 6, "the horizon ends where tensors that are born before fill the memory (%d ops)",
	   (int)ahead);
	rig_close(&r);
}

/* Copies of four tensors to the host are pending, and two others were freed, when two are born elsewhere. */
static void births_beside_copies(void)
{
	struct rig r;

	rig_open(&r, 8, 8);
	for (uint32_t i = 0; i < 8; i++) {
		born(&r, i);
		op(&r, "weight", 1000, USED(i));
	}
	died(&r, 6);
	died(&r, 7);
	for (uint64_t off = 0; off < 4 * size_of_tensor(); off += BLOCK)
		r.err |= um_horizon_evict(&r.horizon, um_horizon_blocks_find(&r.horizon.blocks, r.tensor[0].addr + off),
					  1);
	born(&r, 8);
	born(&r, 9);
	announce(&r, "births", 1000, USED(8, 9), 0);
	ok(r.horizon.dropped.taken >= 2, "where copies are pending, births take memory without a live tensor (%d)",
	   (int)r.horizon.dropped.taken);
	ok((int32_t)(r.horizon.dropped.at[0].room.outs - um_executor_room_done(r.ex).outs) <= 0,
	   "for that they need not wait for any copy");
	ok(r.horizon.copied.taken <= 2, "the other prefetches wait for the first copies only (%d)",
	   (int)r.horizon.copied.taken);
	rig_close(&r);
}

/* Each iteration bears three tensors, frees them one after the other, and uses six weights and `last`, in turn. Four
 * fit: `last`, and the births. */
static void full_for_now(void)
{
	const uint32_t last = 6;
	int stays = 1;
	struct rig r;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i <= last; i++)
		born(&r, i);
	for (uint32_t n = 0; n < 12; n++) {
		char name[16];

		for (uint32_t i = 0; i < 3; i++) {
			born(&r, 8 + i);
			op(&r, "forward", 1000, USED(8 + i));
		}
		for (uint32_t i = 3; i-- > 0;) {
			op(&r, "backward", 1000, USED(8 + i));
			stays &= n < 4 || is_resident(&r, last);
			died(&r, 8 + i);
		}
		for (uint32_t i = 0; i < last; i++) {
			snprintf(name, sizeof name, "weight %u", i);
			op(&r, name, 1000, USED(i));
		}
		op(&r, "last", 1000, USED(last));
	}
	ok(stays, "no tensor is evicted for prefetches that the next ops have room for");
	rig_close(&r);
}

/* Each iteration bears five tensors for one op, which displace weights, and uses six weights. After each of them
 * another op uses a tensor that stays or, `bears`, a new one. Blocks that the link is still to carry when one of the
 * first ends, at most. */
static int backlog(int bears)
{
	int64_t most = 0;
	struct rig r;

	rig_open(&r, 8, 8);
	for (uint32_t i = 0; i < 7; i++)
		born(&r, i);
	for (uint32_t n = 0; n < 8; n++) {
		for (uint32_t i = 8; i < 13; i++)
			born(&r, i);
		op(&r, "large", 100, USED(8, 9, 10, 11, 12));
		for (uint32_t i = 8; i < 13; i++)
			died(&r, i);
		for (uint32_t i = 0; i < 6; i++) {
			op(&r, "weight", 100, USED(i));
			if (n > 3 && r.horizon.in_free - r.horizon.clock > most)
				most = r.horizon.in_free - r.horizon.clock;
			if (bears) {
				died(&r, 6);
				born(&r, 6);
			}
			op(&r, "other", 100, USED(6));
		}
	}
	rig_close(&r);
	return (int)((most + r.in_ns - 1) / r.in_ns);
}

static void births_first(void)
{
	int stays = backlog(0), bears = backlog(1);

	ok(stays >= 4, "prefetches of ops to come keep the link busy when an op ends (%d blocks)", stays);
	ok(bears < stays, "fewer of them delay the blocks of a tensor that the next op bears (%d blocks)", bears);
}

/* Each iteration uses six weights, of which the last five stay unused for long, runs a long op, and bears four tensors.
 * Six fit. `scanned`: when the last iteration begins, this many ops to come count as scanned, 0: those that the
 * horizon scans. `unknown`: at the last long op nothing is known of those five. Returns blocks that are resident after
 * the first long op and after the last one. */
static void blocks_before_peak(uint64_t scanned, int unknown, uint32_t blocks[2])
{
	const uint32_t iterations = 6;
	struct um_horizon_block *b;
	struct rig r;

	rig_open(&r, 6, 6);
	for (uint32_t i = 0; i < 6; i++)
		born(&r, i);
	for (uint32_t n = 0; n < iterations; n++) {
		if (n == iterations - 1 && scanned)
			r.horizon.scanned = r.horizon.scan_again = r.predictor.n_ops + scanned;
		for (uint32_t i = 0; i < 6; i++) {
			op(&r, "weight", 1000, USED(i));
			b = um_horizon_blocks_find(&r.horizon.blocks, r.tensor[i].addr);
			if (b && i > 0 && unknown && n == iterations - 1)
				um_horizon_blocks_set_next(&r.horizon.blocks, b, UM_HORIZON_UNKNOWN);
		}
		op(&r, "long", 100 * (uint64_t)r.in_ns, USED(0));
		blocks[n > 0] = um_horizon_blocks_live(&r.horizon.blocks);
		for (uint32_t i = 0; i < 4; i++) {
			born(&r, 8 + i);
			op(&r, "birth", 1000, USED(8 + i));
		}
		for (uint32_t i = 0; i < 4; i++)
			died(&r, 8 + i);
	}
	is_u64(tally_of(&r).faults, 0, "no op faults");
	rig_close(&r);
}

static void evict_early(void)
{
	uint32_t blocks[2];

	blocks_before_peak(0, 0, blocks);
	ok(blocks[0] > 4 && blocks[1] <= 4,
	   "what cannot stay at a peak that is predicted is evicted before it, while the link is idle (%u, %u)",
	   blocks[0], blocks[1]);
	blocks_before_peak(20, 0, blocks);
	ok(blocks[1] <= 4, "so is what fitted when the ops until its next use were scanned (%u)", blocks[1]);
	blocks_before_peak(0, 1, blocks);
	ok(blocks[1] <= 4, "blocks of unknown next use are evicted before the peak, too (%u)", blocks[1]);
}

/* Of iterations that use eight tensors in one op, wait, and bear tensors beside which the eight do not fit: the fewest
 * and the most blocks that leave when the first op of the wait has ended. */
struct backlog {
	int least, most;
};

enum births { BIRTHS_ALIKE, BIRTHS_BY_TWO_KINDS, BIRTHS_OF_TWO_SIZES }; /* of ops, of tensors; at random */

static struct backlog evict_backlog(enum births births)
{
	const uint32_t iterations = 60;
	struct backlog out = {.least = INT_MAX};
	uint64_t seed = 7;
	struct rig r;

	rig_open(&r, 16, 16);
	for (uint32_t i = 0; i < 9; i++)
		born(&r, i);
	for (uint32_t n = 0; n < iterations; n++) {
		int other = births != BIRTHS_ALIKE && test_random(&seed, 2);
		int blocks;

		op(&r, "eight", 1000, USED(0, 1, 2, 3, 4, 5, 6, 7));
		op(&r, "wait", 2 * (uint64_t)r.in_ns, USED(8));
		blocks = (int)((r.horizon.out_free - r.horizon.clock + r.in_ns - 1) / r.in_ns);
		if (n > iterations / 2) {
			out.least = blocks < out.least ? blocks : out.least;
			out.most = blocks > out.most ? blocks : out.most;
		}
		for (uint32_t i = 1; i < 16; i++)
			op(&r, "wait", 2 * (uint64_t)r.in_ns, USED(8));
		for (uint32_t i = 16; i < 30; i++) {
			r.tensor[i].bytes = size_of_tensor() / (other && births == BIRTHS_OF_TWO_SIZES ? 2 : 1);
			born(&r, i);
			op(&r, other && births == BIRTHS_BY_TWO_KINDS ? "other birth" : "birth", 1000, USED(i));
		}
		for (uint32_t i = 16; i < 30; i++)
			died(&r, i);
	}
	rig_close(&r);
	return out;
}

static void evict_less_where_unsure(void)
{
	struct backlog sure = evict_backlog(BIRTHS_ALIKE), forks = evict_backlog(BIRTHS_BY_TWO_KINDS),
		       sizes = evict_backlog(BIRTHS_OF_TWO_SIZES);

	ok(sure.least > 6, "evictions ahead of a peak keep the link busy beyond the op at hand (%d blocks)",
	   sure.least);
	ok(forks.least > 0 && forks.least < sure.least, "fewer do if the peak comes after a fork (%d blocks)",
	   forks.least);
	ok(sizes.most > 0 && sizes.most < sure.least, "fewer do if peaks were others than predicted (%d blocks)",
	   sizes.most);
}

static struct um_tensor table; /* 40 blocks beside the tensors */

static void open_table(struct rig *r)
{
	void *memory;

	if (r->gpu->api->cudaMallocManaged(r->gpu, &memory, 41 * BLOCK, 1))
		tap_bail("no memory");
	table = (struct um_tensor){.id = {1000}, .bytes = 40 * BLOCK};
	table.addr = ((uint64_t)(uintptr_t)memory + BLOCK - 1) / BLOCK * BLOCK;
	r->live += table.bytes;
}

/* An op that touches this many of its bytes, here and there unless that is all of them. */
static void use_table(struct rig *r, uint64_t touched)
{
	struct um_use use = {
		.tensor = &table, .id = table.id, .bytes = table.bytes, .access = UM_READ, .touched = touched};
	struct um_predictor_feed feed = {.kind = touched, .ns = 1000, .live = r->live, .uses = &use, .n_uses = 1};
	struct um_touch touch = {(void *)(uintptr_t)table.addr, table.bytes, touched, UM_READ};
	struct um_executor_wait wait;

	r->err |= um_predictor_op(&r->predictor, &feed);
	um_horizon_op(&r->horizon, 0, &use, 1, 1000, 0);
	if (um_executor_take_wait(r->ex, NULL, &wait))
		r->err |= um_executor_wait(&wait);
	r->err |= um_sim_run(r->gpu, NULL,
			     &(struct um_sim_kernel){.ns = 1000, .name = "table", .access = &touch, .n_access = 1});
}

/* An op touches some pages of a large tensor here and there, by page faults. */
static void sparse(void)
{
	uint64_t look_up = 0, all = 0;
	struct rig r;

	rig_open(&r, 32, 32);
	open_table(&r);
	for (uint32_t i = 0; i < 40; i++)
		born(&r, i);
	for (uint32_t n = 0; n < 4; n++) {
		use_table(&r, 12 * 4096);
		look_up += tally_of(&r).faults - all;
		for (uint32_t i = 0; i < 40; i++)
			op(&r, "op", 1000, USED(i));
		all = tally_of(&r).faults;
	}
	ok(look_up > 0, "a look-up faults (%d faults)", (int)look_up);
	is_u64(all, look_up, "the pages that it brings displace nothing that others use");
	rig_close(&r);
}

/* Of 64 blocks, a table that was loaded has 40, and tensors have 20. */
static void loaded_table(void)
{
	struct rig r;

	rig_open(&r, 32, 32);
	open_table(&r);
	for (uint32_t i = 0; i < 10; i++)
		born(&r, i);
	use_table(&r, table.bytes);
	for (uint32_t k = 0; k < 4; k++) {
		use_table(&r, 12 * 4096);
		for (uint32_t i = 0; i < 10; i++)
			op(&r, "op", 1000, USED(i));
	}
	is_u64(um_horizon_missing(&r.horizon, table.addr, table.bytes), 0,
	       "a table that is resident gives up no room for the page faults of its look-ups");
	is_u64(tally_of(&r).faults, 0, "they do not fault");
	rig_close(&r);
}

/* Page faults of an op above the budget, and of one after it that fits, if that is announced. */
static uint64_t faults_of_large(int then)
{
	uint64_t faults;
	struct rig r;

	rig_open(&r, 5, 5);
	for (uint32_t i = 0; i < 12; i++) {
		born(&r, i);
		op(&r, "init", 1000, USED(i));
	}
	op(&r, "large", 1000000, USED(0, 1, 2, 3, 4, 5, 6, 7));
	if (then)
		op(&r, "next", 1000000, USED(8, 9, 10, 11));
	faults = tally_of(&r).faults;
	rig_close(&r);
	return faults;
}

static void after_large(void)
{
	uint64_t faults = faults_of_large(0);

	ok(faults > 0, "an op above the budget faults (%d faults)", (int)faults);
	is_u64(faults_of_large(1), faults, "these faults displace no blocks of the next op");
}

/* --- requests that are not carried out ---------------------------------------------------------------------------- */

/* An op misses more blocks, each of them far from the others, than a queue holds requests. */
static void queue_full(void)
{
	uint32_t n = UM_LANES_QUEUE + 10, epoch;
	struct um_use *uses = calloc(n, sizeof *uses);
	struct um_predictor_feed feed = {.kind = 1, .ns = 1000, .uses = uses, .n_uses = n};
	struct um_tensor t = {.id = {1}};
	struct um_executor_counts counts;
	struct rig r;
	void *memory;

	rig_open(&r, n, n);
	if (!uses || r.gpu->api->cudaMallocManaged(r.gpu, &memory, (2 * n + 1) * BLOCK, 1))
		tap_bail("no memory");
	t.addr = ((uint64_t)(uintptr_t)memory + BLOCK - 1) / BLOCK * BLOCK;
	t.bytes = 2 * n * BLOCK;
	for (uint32_t i = 0; i < n; i++)
		uses[i] = (struct um_use){t.id, &t, 2 * i * BLOCK, BLOCK, BLOCK, UM_UPDATE};
	epoch = um_executor_epoch(r.ex);
	r.err |= um_predictor_op(&r.predictor, &feed);
	um_horizon_op(&r.horizon, 0, uses, n, 1000, 0);
	is_u64(um_executor_epoch(r.ex), epoch, "an op with more requests than a queue holds waits for space");
	r.err |= um_sim_sync(r.gpu);
	um_executor_counts(r.ex, &counts);
	is_u64(counts.prefetch_bytes, n * BLOCK, "all its blocks are prefetched");
	for (uint32_t i = 0; i < 16; i++)
		born(&r, i);
	for (uint32_t i = 0; i < 64; i++)
		op(&r, "op", 1000, USED(i % 16));
	ok(is_resident(&r, 15), "blocks of later ops are requested, too");
	is_u64(tally_of(&r).faults, 0, "no op faults");
	rig_close(&r);
	free(uses);
}

static void dropped(void)
{
	struct rig r;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i < 8; i++)
		born(&r, i);
	op(&r, "long", 100000000, USED(0, 1, 2, 3));
	announce(&r, "op", 1000, USED(4), 0); /* there is no room before the long op ends */
	um_executor_cancel(r.ex);
	op(&r, "op", 1000, USED(4));
	is_u64(tally_of(&r).faults, 0, "prefetches that were dropped are requested again");
	op(&r, "op", 1000, USED(0));
	op(&r, "op", 1000, USED(2));
	ok(is_resident(&r, 0) && is_resident(&r, 2), "after requests were dropped, what has arrived is known");
	um_horizon_forget(&r.horizon);
	ok(!um_horizon_knows(&r.horizon) && !r.horizon.blocks.n[UM_BLOCK_MISSED],
	   "a horizon that forgets knows no block");
	r.err |= um_sim_sync(r.gpu);
	um_horizon_recall(&r.horizon);
	ok(is_resident(&r, 0) && is_resident(&r, 2), "it recalls the blocks that were prefetched");
	for (uint32_t i = 0; i < 32; i++)
		op(&r, "op", 1000, USED(i % 8));
	is_u64(tally_of(&r).faults, 0, "then no op faults");
	rig_close(&r);
}

/* --- predicted or latest uses ------------------------------------------------------------------------------------- */

#define ORDER_FITS 12 /* tensors, of 32 */
#define ORDER_ITERATIONS 60

/* Misses of a memory of ORDER_FITS tensors from which the least recently used one leaves. */
struct lru {
	uint32_t tensor[ORDER_FITS], n; /* the latest first */
	uint64_t missed;
};

static void use_lru(struct lru *l, uint32_t tensor)
{
	uint32_t i = 0;

	while (i < l->n && l->tensor[i] != tensor)
		i++;
	l->missed += i == l->n;
	l->n += i == l->n && l->n < ORDER_FITS;
	for (i = i < ORDER_FITS ? i : ORDER_FITS - 1; i; i--)
		l->tensor[i] = l->tensor[i - 1];
	l->tensor[0] = tensor;
}

struct order {
	uint64_t percent; /* tensors that are prefetched in the second half of the iterations, of those an LRU misses */
	int latest; /* ops with which victims were chosen by latest uses */
};

/* `random`: mostly small numbers, otherwise each iteration uses 16 in order. `lead`: of predictions, at each op; 0: as
 * it comes. */
static struct order play_order(uint64_t seed, int random, int64_t lead)
{
	struct order out = {0};
	struct lru l = {0};
	struct rig r;

	rig_open(&r, ORDER_FITS, ORDER_FITS);
	for (uint32_t i = 0; i < 32; i++)
		born(&r, i);
	for (int n = 0; n < ORDER_ITERATIONS; n++) {
		um_predictor_begin(&r.predictor);
		if (n == ORDER_ITERATIONS / 2) {
			out.percent = r.horizon.n_in;
			l.missed = 0;
		}
		for (uint32_t i = 0; i < 40; i++) {
			uint32_t a = (uint32_t)test_random(&seed, 32), b = (uint32_t)test_random(&seed, 32);

			a = random ? a * b / 31 : i % 16;
			r.horizon.lead = lead ? lead : r.horizon.lead;
			op(&r, "look", 10000, USED(a));
			use_lru(&l, a);
			out.latest += r.horizon.lead <= 0;
		}
	}
	out.percent = (r.horizon.n_in - out.percent) * 100 / (2 * l.missed);
	rig_end(&r);
	return out;
}

static void order(void)
{
	struct order random = play_order(1, 1, 0), regular = play_order(1, 0, 0), latest = play_order(1, 0, -1000);

	ok(random.latest > 0, "where tensors are used at random, victims come to be chosen by latest uses (%d ops)",
	   random.latest);
	ok(random.percent < 110, "then about as many blocks are prefetched as that needs (%d %%)", (int)random.percent);
	is_int(regular.latest, 0, "where they are used in order, victims are chosen by predicted uses");
	ok(regular.percent < 60, "then far fewer blocks are prefetched (%d %%)", (int)regular.percent);
	ok(latest.percent >= 100, "and by latest uses all of them would be (%d %%)", (int)latest.percent);
}

/* How far the lead of predictions changes as an op needs a tensor whose eviction can be judged. `plan`: a plan was
 * followed since that eviction. */
static int64_t judged(int plan)
{
	uint32_t absent = 0;
	int64_t lead;
	struct rig r;

	open_for_five(&r, 8, 0);
	for (uint32_t i = 0; i < 12 * 8; i++) {
		if (i % 8 == 0)
			um_predictor_begin(&r.predictor);
		op(&r, "op", 400000, USED(i % 8));
	}
	if (plan) {
		um_horizon_forget(&r.horizon);
		um_horizon_recall(&r.horizon);
	}
	while (is_resident(&r, absent))
		absent++;
	lead = r.horizon.lead;
	op(&r, "op", 400000, USED(absent));
	lead = r.horizon.lead - lead;
	rig_close(&r);
	return lead;
}

static void judge(void)
{
	ok(judged(0) != 0, "an op that needs what was evicted shows which victim was right");
	is_int(judged(1), 0, "it shows nothing if a plan was followed since then");
}

/* One of four models of six tensors is used at random after 24 long ops on another tensor. Three fit. Blocks that
 * are prefetched before their model is chosen. `trust`: in prefetches after a fork. `*trusted`: others still are. */
static uint64_t prefetched_after_fork(int64_t trust, int *trusted)
{
	uint64_t seed = 3, before, n_in = 0;
	struct rig r;

	rig_open(&r, 18, 18);
	for (uint32_t i = 0; i < 25; i++)
		born(&r, i);
	for (int n = 0; n < 60; n++) {
		uint32_t model = (uint32_t)test_random(&seed, 4);

		r.horizon.trust[1] = trust;
		before = r.horizon.n_in;
		for (int i = 0; i < 24; i++)
			op(&r, "pause", 4 * (uint64_t)r.in_ns, USED(24));
		n_in += n < 30 ? 0 : r.horizon.n_in - before;
		for (uint32_t i = 0; i < 6; i++)
			op(&r, "layer", 10000, USED(model * 6 + i));
	}
	*trusted = r.horizon.trust[0] == UM_HORIZON_TRUST;
	rig_end(&r);
	return n_in;
}

static void after_fork(void)
{
	int trusted;

	ok(prefetched_after_fork(UM_HORIZON_TRUST_FORK, &trusted) > 0, "blocks are prefetched for ops after a fork");
	ok(trusted, "those that are wrong do not stop prefetches before a fork");
	is_u64(prefetched_after_fork(0, &trusted), 0, "where too many of them were wrong, none is");
}

/* An iteration of `n` passes over 24 tensors, which bears tensor 24 or 25 at its end. The other one, of the iteration
 * before, dies after `dies` passes. */
static void pass_and_bear(struct rig *r, int n, int dies, uint32_t bears)
{
	static const char *const name[] = {"first", "second", "third"};

	for (int i = 0; i < n; i++) {
		for (uint32_t k = 0; k < 24; k++)
			op(r, name[i], 1000, USED(k));
		if (i + 1 == dies && r->tensor[49 - bears].id.v)
			died(r, 49 - bears);
	}
	born(r, bears);
	op(r, "bear", 1000, USED(bears));
}

/* After iterations of one pass the program goes on with a second one, as it did before. */
static void dies_elsewhere(void)
{
	const struct um_horizon_block *b;
	uint64_t at_hand;
	struct rig r;

	rig_open(&r, 40, 40);
	for (uint32_t i = 0; i < 24; i++)
		born(&r, i);
	for (uint32_t i = 0; i < 4; i++)
		pass_and_bear(&r, 3, 2, 24 + i % 2);
	for (uint32_t i = 0; i < 4; i++)
		pass_and_bear(&r, 1, 1, 24 + i % 2);
	for (uint32_t k = 0; k < 24; k++)
		op(&r, "first", 1000, USED(k));
	for (uint32_t k = 0; k < 2; k++) {
		r.horizon.credit = 200; /* some 50 ops are scanned, none of which uses the tensor */
		op(&r, "second", 1000, USED(k));
	}
	at_hand = um_horizon_current(&r.horizon);
	b = um_horizon_blocks_find(&r.horizon.blocks, r.tensor[25].addr);
	ok(b && b->dies, "where the program goes on otherwise than expected, a tensor is expected to die");
	is_u64(b ? b->next - at_hand : 0, 22, "as it did there");
	rig_close(&r);
}

/* A block that should have been used before the latest op, of number 40, and was used by op number 30. */
static struct um_horizon_block *overdue_block(struct rig *r, int guess)
{
	struct um_horizon_block *b;

	for (uint32_t i = 0; i < 2; i++)
		born(r, i);
	for (int n = 1; n <= 40; n++)
		op(r, "op", 1000, USED(n != 30));
	b = um_horizon_blocks_find(&r->horizon.blocks, r->tensor[0].addr);
	um_horizon_blocks_set_next(&r->horizon.blocks, b, 38);
	b->guess = guess;
	um_horizon_doubt_overdue(&r->horizon, 0, 0);
	return b;
}

static void overdue(void)
{
	struct um_horizon_block *b;
	struct rig r;

	rig_open(&r, 4, 4);
	b = overdue_block(&r, 1);
	is_u64(b->next, 50, "a block of guessed use that was not used then is expected after as long as it is unused");
	rig_end(&r);
	rig_open(&r, 4, 4);
	b = overdue_block(&r, 0);
	is_u64(b->next, UM_HORIZON_UNKNOWN, "a block of predicted use that was not used then is not expected any more");
	rig_end(&r);
}

/* An op of a kind that was not met before. */
static void new_op(struct rig *r, uint32_t i)
{
	char name[16];

	snprintf(name, sizeof name, "op %llu", (unsigned long long)r->predictor.n_ops);
	op(r, name, 1000, USED(i));
}

/* Op number 30, ten ops before the end of an iteration, should have used a block, and no op does. Is the block still
 * expected in the n-th op of the next iteration? The predictor has seen tensors that were used after `reach` ops. */
static int still_expected(uint64_t n, uint64_t reach)
{
	struct um_horizon_block *b;
	struct rig r;
	int expected;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i < 2; i++)
		born(&r, i);
	new_op(&r, 0);
	while (r.predictor.n_ops < 40)
		new_op(&r, 1);
	um_predictor_begin(&r.predictor);
	while (r.predictor.n_ops < 40 + n - 1)
		new_op(&r, 1);
	r.predictor.reach = reach;
	b = um_horizon_blocks_find(&r.horizon.blocks, r.tensor[0].addr);
	um_horizon_blocks_set_next(&r.horizon.blocks, b, 30);
	new_op(&r, 1);
	expected = b->next != UM_HORIZON_UNKNOWN;
	rig_end(&r);
	return expected;
}

static void overdue_before(void)
{
	ok(!still_expected(9, 1000), "a block is not expected that was overdue before the iteration for the most part");
	ok(still_expected(12, 1000), "one that was overdue in the iteration for the most part is still expected");
	ok(!still_expected(12, 8), "it is not if repetitions are shorter");
}

/* Iterations of six ops; the first two use one of five inputs in turn, the others a tensor each that all but fill the
 * room. Returns the blocks copied to the device per iteration from the third one on. */
static double copied_beside_inputs(void)
{
	const uint64_t iterations = 20;
	struct um_tally before, after;
	struct rig r;

	rig_open(&r, 7, 7);
	for (uint32_t i = 0; i < 10; i++)
		born(&r, i);
	for (uint32_t i = 0; i < iterations + 2; i++) {
		if (i == 2)
			before = tally_of(&r);
		op(&r, "load", 1000000, USED(i % 5));
		op(&r, "first", 1000000, USED(i % 5, 5));
		for (uint32_t k = 6; k < 10; k++)
			op(&r, "next", 1000000, USED(k));
	}
	after = tally_of(&r);
	rig_end(&r);
	return (double)(after.h2d_bytes - before.h2d_bytes) / (double)BLOCK / (double)iterations;
}

static void late_by_iterations(void)
{
	double copied = copied_beside_inputs();

	ok(copied < 2.5, "inputs in turn that were expected too early do not displace the others (%.1f blocks)",
	   copied);
}

static void count_block(void *user, uint64_t addr, int live)
{
	(void)addr;
	*(int *)user += 1 + live;
}

/* Where a budget is smaller than the device, no horizon is opened. */
static void not_opened(void)
{
	struct um_horizon h = {0};
	int n = 0;

	um_horizon_visit(&h, count_block, &n);
	is_int(n, 0, "a horizon that was not opened knows no block");
}

/* --- estimates ---------------------------------------------------------------------------------------------------- */

/* Six tensors in memory for four. */
static void estimated_time(void)
{
	uint64_t ns, stall_ns;
	uint32_t away = 0;
	struct rig r;

	rig_open(&r, 4, 4);
	for (uint32_t i = 0; i < 6; i++) {
		born(&r, i);
		op(&r, "first", 1000, USED(i));
	}
	um_horizon_lap(&r.horizon, &ns, &stall_ns);
	op(&r, "again", 1000, USED(5));
	op(&r, "again", 2000, USED(5));
	is_int(um_horizon_lap(&r.horizon, &ns, &stall_ns), 0, "the time of ops is known whose blocks are requested");
	ok(ns == 3000 && !stall_ns, "ops whose blocks are resident take their time (%llu, %llu)",
	   (unsigned long long)ns, (unsigned long long)stall_ns);
	while (away < 5 && is_resident(&r, away))
		away++;
	op(&r, "other", 1000, USED(away));
	um_horizon_lap(&r.horizon, &ns, &stall_ns);
	ok(ns == 1000 + stall_ns && stall_ns >= (uint64_t)r.in_ns,
	   "an op waits as long as its blocks take to come (%llu, %llu)", (unsigned long long)ns,
	   (unsigned long long)stall_ns);
	um_horizon_lap(&r.horizon, &ns, &stall_ns);
	ok(!ns && !stall_ns, "time counts once");
	op(&r, "all", 1000, USED(0, 1, 2, 3, 4, 5));
	ok(um_horizon_lap(&r.horizon, &ns, &stall_ns), "the time of an op above the budget is not known");
	rig_close(&r);
}

int main(void)
{
	not_opened();
	no_faults(6);
	no_faults(16);
	hot();
	before_plan();
	dead();
	born_before_op();
	dead_first();
	last_use();
	host_memory();
	on_host();
	partly_on_host();
	advice_apart();
	overwritten();
	born_again();
	overlap();
	births();
	births_beside_copies();
	full_for_now();
	births_first();
	evict_early();
	evict_less_where_unsure();
	sparse();
	loaded_table();
	after_large();
	queue_full();
	dropped();
	order();
	judge();
	after_fork();
	dies_elsewhere();
	overdue();
	overdue_before();
	late_by_iterations();
	estimated_time();
	return tap_done();
}
