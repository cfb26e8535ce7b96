/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: small schedules whose best plan is known, then schedules by chance, each plan proved. A byte is a
 * nanosecond on the link; slots are 2 MiB, one block each, unless said.
 */
#include "io/plan_file.h"
#include "fixture/plan_fixture.h"
#include "tap.h"

#include <inttypes.h>

#define B UM_BLOCK_BYTES

static struct um_plan plan_;
static struct um_plan_figures f;
static char why[300];
static uint64_t grow;

static int build(const struct um_schedule *s, uint64_t budget)
{
	struct um_plan_request r = fx_request(s, budget);
	int err;

	um_plan_fini(&plan_);
	um_plan_init(&plan_);
	why[0] = '\0';
	memset(&f, 0, sizeof f);
	err = um_plan_build(&r, &plan_, &grow, why, sizeof why);
	if (!err)
		err = um_plan_check(&plan_, &f, why, sizeof why) ? -1 : 0;
	if (*why)
		diag("%s", why);
	return err;
}

static int count(enum um_hint_kind kind)
{
	int n = 0;

	for (size_t i = 0; i < plan_.hints.n; i++)
		n += plan_.hints.at[i].kind == kind;
	return n;
}

static void all_fits(void)
{
	struct um_schedule s = {0};

	fx_cycle(&s, 5, B, 'u', 100);
	fx_slot(&s, B, 1, 3);
	fx_op(&s, "end", 50, "r0");
	s.slots.at[5].death = 3;
	is_int(build(&s, 6 * B), 0, "a schedule that fits gets a plan");
	is_int(count(UM_HINT_EVICT) + count(UM_HINT_DISCARD), 0, "nothing has to leave");
	is_u64(plan_.predicted_ns, 550, "the iteration takes the time of its ops");
	is_u64(plan_.in_core_ns, 550, "the predicted time is the time in core");
	is_u64(plan_.hints.n, 0, "a tensor that no op uses gets no hint");
	s.uses.at[2].slot = 5;
	is_int(build(&s, 6 * B), 0, "what is born");
	is_u64(plan_.hints.n, 1, "a tensor that is born in the iteration gets one hint");
	is_u64(f.h2d_bytes, 0, "the hint for a birth moves nothing");
	um_schedule_fini(&s);
}

/* 8 blocks in turn with room for c: one in use, one on its way while ops are long, the others stay. */
static void belady(void)
{
	for (int c = 2; c <= 8; c++) {
		struct um_schedule s = {0};

		fx_cycle(&s, 8, B, 'r', 10 * B);
		is_int(build(&s, (uint64_t)c * B), 0, "8 blocks in turn, room for %d", c);
		ok(f.h2d_bytes <= (uint64_t)(c == 8 ? 0 : 10 - c) * B, "%d come back", (int)(f.h2d_bytes / B));
		is_u64(f.d2h_bytes, 0, "a tensor that is only read is never copied out");
		ok(f.stall_ns == 0, "ops are long: all is hidden");
		um_schedule_fini(&s);
	}
}

/* Forward and back over 8 blocks with room for 5: the last ones written stay. */
static void palindrome(void)
{
	struct um_schedule s = {0};
	char use[32];

	for (int i = 0; i < 8; i++)
		fx_slot(&s, B, i, 16 - i);
	for (int i = 0; i < 16; i++) {
		snprintf(use, sizeof use, "%c%d", i < 8 ? 'w' : 'r', i < 8 ? i : 15 - i);
		fx_op(&s, "op", 10 * B, use);
	}
	is_int(build(&s, 5 * B), 0, "a pass forward and back gets a plan");
	is_u64(f.h2d_bytes, 3 * B, "an evicted tensor is prefetched again");
	is_u64(f.d2h_bytes, 3 * B, "no more than the missing bytes are evicted");
	for (size_t i = 0; i < plan_.hints.n; i++)
		if (plan_.hints.at[i].kind == UM_HINT_EVICT)
			ok(plan_.hints.at[i].slot < 4, "slot %d is one of the first", (int)plan_.hints.at[i].slot);
	ok(f.stall_ns == 0, "all is hidden");
	um_schedule_fini(&s);
}

static void dead(void)
{
	struct um_schedule s = {0};

	/* Two blocks in turn, each overwritten as a whole, room for one. */
	fx_cycle(&s, 2, B, 'w', 100);
	is_int(build(&s, B), 0, "a schedule that overwrites its tensors gets a plan");
	is_u64(f.h2d_bytes + f.d2h_bytes, 0, "dead memory causes no copies");
	is_int(count(UM_HINT_EVICT), 0, "nothing is evicted");
	is_int(count(UM_HINT_DISCARD), 2, "both dead tensors are discarded");
	s.uses.at[0].access = s.uses.at[1].access = UM_UPDATE;
	is_int(build(&s, B), 0, "a schedule with updates gets a plan");
	is_u64(f.h2d_bytes, 2 * B, "both updated tensors are copied in");
	s.uses.at[0].dead_after = 1;
	is_int(build(&s, B), 0, "a schedule with a dead tensor gets a plan");
	is_u64(f.h2d_bytes, B, "one tensor fewer is copied in");
	s.slots.at[1].flags |= UM_SLOT_TRANSIENT;
	is_int(build(&s, B), 0, "a schedule with a transient tensor gets a plan");
	is_u64(f.h2d_bytes + f.d2h_bytes, 0, "nothing moves again");
	um_schedule_fini(&s);
}

/* A block that holds the end of one slot and the beginning of another: it leaves only when both may. */
static void shared_block(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, B / 2, -1, -1);
	fx_slot(&s, B / 2, -1, -1);
	fx_slot(&s, B, -1, -1);
	for (uint32_t i = 0; i < 3; i++) {
		s.slots.at[i].flags = UM_SLOT_FIXED;
		s.slots.at[i].place = (1ull << 30) + i * (B / 2);
	}
	fx_op(&s, "a", B, "u0");
	fx_op(&s, "b", B, "u1");
	fx_op(&s, "c", B, "u2");
	fx_op(&s, "d", B, "u1");
	is_int(build(&s, B), 0, "a schedule with two halves of a block gets a plan");
	is_u64(f.h2d_bytes, 2 * B, "go and come together");
	is_int(count(UM_HINT_EVICT), 3, "each eviction has one hint");
	um_schedule_fini(&s);
}

static void too_large(void)
{
	struct um_plan_request r;
	struct um_schedule s = {0};

	fx_cycle(&s, 3, B, 'r', 1);
	fx_slot(&s, 4 * B + 1, 1, 3);
	fx_op(&s, "cat", 1, "");
	s.uses.at[1].slot = 3;
	s.uses.at[1].bytes = 4 * B + 1;
	r = fx_request(&s, 4 * B);
	r.strategy = "superneurons";
	um_plan_fini(&plan_);
	um_plan_init(&plan_);
	is_int(um_plan_build(&r, &plan_, &grow, why, sizeof why), -E2BIG,
	       "a published scheme refuses an op above the budget");
	is_str(why, "op 1 'cycle' uses 8.0 MiB, in 10.0 MiB of whole blocks; the budget is 8.0 MiB",
	       "the reason names the op, its bytes, their blocks and the budget");
	is_u64(plan_.hints.n + plan_.sched.ops.n, 0, "a refused schedule leaves the plan empty");
	s.slots.at[3].death = -1;
	is_int(build(&s, 4 * B), -EINVAL, "a schedule that makes no sense");
	um_schedule_fini(&s);
	is_int(build(&s, 4 * B), -EINVAL, "a schedule without ops is refused");
}

/* Ops on one block each, before and after one that updates eight, with room for five. Slots 0 to 2 are small. */
static void around_paged(struct um_schedule *s)
{
	for (int i = 0; i < 3; i++)
		fx_slot(s, B, -1, -1);
	fx_slot(s, 8 * B, -1, -1);
	fx_op(s, "a", B, "u0");
	fx_op(s, "b", B, "u1");
	fx_op(s, "large", B, "u3");
	fx_op(s, "c", B, "r2 u1");
	fx_op(s, "d", B, "r0");
}

/* Is a byte of a hint of this kind in the slot, at this op? */
static uint64_t hinted(enum um_hint_kind kind, uint32_t slot, int32_t at)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < plan_.hints.n; i++) {
		const struct um_hint *h = &plan_.hints.at[i];

		bytes += h->kind == kind && h->slot == slot && h->at == at ? h->bytes : 0;
	}
	return bytes;
}

static void paged(void)
{
	struct um_schedule s = {0};
	uint64_t ahead = 0;

	around_paged(&s);
	is_int(build(&s, 5 * B), 0, "a schedule with an op above the budget gets a plan");
	ok(plan_.sched.ops.at[2].paged, "the op above the budget is marked as paged");
	ok(!plan_.sched.ops.at[1].paged && !plan_.sched.ops.at[3].paged, "the ops around it are not");
	for (int32_t op = 0; op < 5; op++)
		ahead += hinted(UM_HINT_PREFETCH, 3, op);
	is_u64(ahead, 5 * B, "as much of it is prefetched as there is room for");
	ok(hinted(UM_HINT_EVICT, 0, 1) == B && hinted(UM_HINT_EVICT, 1, 2) == B,
	   "all other blocks are evicted before it");
	ok(hinted(UM_HINT_PREFETCH, 1, 3) == B && hinted(UM_HINT_PREFETCH, 2, 3) == B,
	   "they are prefetched again for the op after it");
	is_u64(hinted(UM_HINT_EVICT, 3, 3), 8 * B, "its own blocks are evicted after it");
	/* three blocks in and out by page faults during the op */
	ok(f.ns >= 5 * B + 3 * B + 3 * B, "the time of the plan contains the paged op's copies");
	s.uses.at[2].bytes = 5 * B;
	is_int(build(&s, 5 * B), 0, "a part of the tensor that fits");
	ok(!plan_.sched.ops.at[2].paged, "an op that uses a part below the budget is not paged");
	um_schedule_fini(&s);
}

/* The CPU reads slot 1, of this size, in a block with slot 0, which the next op uses. */
static void by_cpu_in_part(uint64_t bytes, int stays)
{
	const char *how = stays ? "little" : "much";
	struct um_schedule s = {0};

	fx_slot(&s, B / 2, -1, -1);
	fx_slot(&s, bytes, -1, -1);
	fx_op(&s, "a", 10 * B, "u0 u1");
	fx_op(&s, "look", 0, "r1");
	fx_op(&s, "b", 10 * B, "u0");
	s.ops.at[1].stream = UM_STREAM_CPU;
	is_int(build(&s, 4 * B), 0, "a schedule in which the CPU reads %s of a block gets a plan", how);
	is_u64(hinted(UM_HINT_EVICT, 0, 1), stays ? 0 : B / 2, "a block of which the CPU reads %s %s", how,
	       stays ? "stays" : "is evicted");
	is_u64(hinted(UM_HINT_EVICT, 1, 1), stays ? 0 : bytes, "so does what the CPU reads of it");
	if (stays)
		is_u64(hinted(UM_HINT_PREFETCH, 1, 2), bytes, "what the CPU has read is prefetched again");
	um_schedule_fini(&s);
}

/* The CPU reads slot 0 and updates slot 1 between ops, with room for all. */
static void by_cpu(void)
{
	struct um_schedule s = {0};

	for (int i = 0; i < 4; i++)
		fx_slot(&s, B, -1, -1);
	fx_op(&s, "a", 10 * B, "u0");
	fx_op(&s, "b", 10 * B, "r1 r2");
	fx_op(&s, "checkpoint", 0, "r0 u1");
	fx_op(&s, "c", 10 * B, "u3");
	s.ops.at[2].stream = UM_STREAM_CPU;
	is_int(build(&s, 4 * B), 0, "a schedule with a CPU access gets a plan");
	is_u64(hinted(UM_HINT_EVICT, 0, 1), B, "content that the CPU reads is evicted after its last op");
	is_u64(hinted(UM_HINT_EVICT, 1, 2), B, "so is content that is used just before the access");
	ok(hinted(UM_HINT_PREFETCH, 0, 3) == B || hinted(UM_HINT_PREFETCH, 0, 0) == B,
	   "it is prefetched again after the access");
	is_u64(f.ns, 30 * B, "the copies in both directions are hidden");
	is_u64(f.d2h_bytes, B, "only the content that an op wrote is copied to the host");
	is_u64(f.h2d_bytes, 2 * B, "what the CPU wrote is copied to the device again");
	is_u64(plan_.sched.ops.at[2].ns, 0, "the access takes no time of the device");
	um_schedule_fini(&s);
}

/* Never placed, never hinted, not counted. */
static void unmanaged(void)
{
	struct um_schedule s = {0};

	fx_cycle(&s, 2, B, 'u', 1);
	s.slots.at[1].flags = UM_SLOT_UNMANAGED;
	is_int(build(&s, B), 0, "memory that is not managed");
	is_u64(plan_.hints.n, 0, "takes no room");
	um_schedule_fini(&s);
}

/* By hint: which blocks its range lies in; the block's number counted from the lowest place. */
static void count_range(const struct um_plan *p, const struct um_hint *h, int *held, int change)
{
	uint64_t from = p->sched.slots.at[h->slot].place + h->off, lo = from / B, hi = (from + h->bytes - 1) / B;

	for (uint64_t b = lo; b <= hi; b++)
		held[b - (1ull << 40) / B] += change;
}

static int freed_before(const struct um_plan *p, uint32_t slot, int32_t op)
{
	const struct um_slot *t = &p->sched.slots.at[slot];

	return t->death == op || (!op && t->death == (int32_t)p->sched.ops.n);
}

/* The most blocks that hold something which came and has not left: what the driver counts. Departures as soon as
 * they may, arrivals when they are issued; over two iterations. Only for plans without wanderers, whose blocks are
 * named by slot. */
static int most_blocks(const struct um_plan *p)
{
	int *held = calloc(grow / B + 1, sizeof *held), most = 0;
	struct um_hint *here = calloc(p->hints.n + 1, sizeof *here);
	size_t n = 0;

	for (int32_t i = 0; i < 2 * (int32_t)p->sched.ops.n; i++) {
		int32_t op = i % (int32_t)p->sched.ops.n;

		/* nothing counts as resident after it */
		while (n && p->sched.ops.at[op ? op - 1 : (int32_t)p->sched.ops.n - 1].paged)
			count_range(p, &here[--n], held, -1);
		for (size_t k = 0; k < p->hints.n; k++) {
			const struct um_hint *h = &p->hints.at[k];

			for (size_t j = 0; j < n; j++) {
				int leaves = h->kind != UM_HINT_PREFETCH && h->after + 1 == op &&
					     here[j].slot == h->slot && here[j].off >= h->off &&
					     here[j].off < h->off + h->bytes;

				if (!leaves && !(k == 0 && freed_before(p, here[j].slot, op)))
					continue;
				count_range(p, &here[j], held, -1);
				here[j--] = here[--n];
			}
		}
		/* Piece by piece: what leaves need not be what came as one. */
		for (size_t k = 0; k < p->hints.n; k++) {
			struct um_hint h = p->hints.at[k];
			uint64_t end = h.off + h.bytes, place = p->sched.slots.at[h.slot].place;

			if (h.kind != UM_HINT_PREFETCH || h.at != op)
				continue;
			here = realloc(here, (n + h.bytes / B + 3) * sizeof *here);
			for (; h.off < end; h.off += h.bytes) {
				h.bytes = B - (place + h.off) % B;
				h.bytes = h.bytes < end - h.off ? h.bytes : end - h.off;
				count_range(p, &h, held, 1);
				here[n++] = h;
			}
		}
		int blocks = 0;

		for (uint64_t b = 0; b <= grow / B; b++)
			blocks += held[b] > 0;
		most = blocks > most ? blocks : most;
	}
	free(held);
	free(here);
	return most;
}

static int rotates(const struct um_schedule *s)
{
	for (uint32_t i = 0; i < s->slots.n; i++)
		if (s->slots.at[i].carry != UM_NO_SLOT && s->slots.at[i].carry != i)
			return 1;
	return 0;
}

/* With PLAN_DIR set: for tests/plan/plan_replay.sh. */
static void leave_file(uint64_t seed)
{
	const char *dir = getenv("PLAN_DIR");
	char path[4096];

	if (!dir || (seed % 4 && seed > 40))
		return;
	snprintf(path, sizeof path, "%s/%d.umplan", dir, (int)seed);
	if (um_plan_write(path, &plan_, NULL))
		tap_bail("a plan cannot be written");
}

/* One op in seven is an access of the CPU. */
static void some_by_cpu(struct um_schedule *s)
{
	for (size_t i = 3; i < s->ops.n; i += 7) {
		s->ops.at[i].stream = UM_STREAM_CPU;
		s->ops.at[i].ns = 0;
	}
}

/* Every plan is proved here too (build); and the same request gives the same plan. */
static void by_chance(void)
{
	int n = 0, large = 0, unsound = 0, differ = 0, blocks = 0, beaten = 0, far = 0, step = tap_step(13);

	for (uint64_t seed = 1; seed <= 400; seed += (uint64_t)step) {
		struct um_schedule s = {0};
		uint64_t r = seed, peak;
		struct um_plan again;
		struct um_plan_request q;
		int err;

		fx_random(&s, seed);
		if (seed % 2 == 0)
			fx_thin(&s, seed);
		if (seed % 10 == 0)
			some_by_cpu(&s);
		peak = fx_peak(&s);
		err = build(&s, peak / 4 * (1 + fx_draw(&r, 4)) + 2 * B * fx_draw(&r, 3));
		n++;
		large += err == -E2BIG;
		unsound += err && err != -E2BIG;
		if (err && err != -E2BIG)
			diag("seed %d: %s", (int)seed, why);
		far += !err && plan_.remote;
		beaten += !err && plan_.predicted_ns < plan_.bound_ns;
		if (!err) {
			leave_file(seed);
			um_plan_init(&again);
			q = fx_request(&s, plan_.budget);
			um_plan_build(&q, &again, &grow, NULL, 0);
			differ += again.hints.n != plan_.hints.n || again.predicted_ns != f.ns ||
				  (again.hints.n &&
				   memcmp(again.hints.at, plan_.hints.at, again.hints.n * sizeof *again.hints.at));
			if (!rotates(&s) && most_blocks(&plan_) > (int)(plan_.budget / B)) {
				diag("seed %d: %d blocks", (int)seed, most_blocks(&plan_));
				blocks++;
			}
			um_plan_fini(&again);
		}
		um_schedule_fini(&s);
	}
	is_int(unsound, 0, "schedules by chance: every plan is sound");
	is_int(differ, 0, "planning again gives the same plan");
	is_int(beaten, 0, "no plan is faster than the bound");
	is_int(blocks, 0, "no plan has more blocks than the budget");
	ok(n - large > 200 / step, "%d of %d could be planned", n - large, n);
	ok(far > 8 / step, "something stays on the host in %d of them", far);
}

/* A tensor that the next iteration frees is gone then, though nothing else comes to where it lay. */
static void freed_around(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, B, -1, -1);
	fx_slot(&s, 2 * B, 1, 2);
	fx_slot(&s, B, 2, 1);
	fx_op(&s, "a", 100, "u0");
	fx_op(&s, "b", 100, "r0 w1");
	fx_op(&s, "c", 100, "r0 w2");
	is_int(build(&s, 3 * B), 0, "what is freed around the end");
	is_u64(f.ns, 300, "it delays no op");
	is_int(count(UM_HINT_DISCARD) + count(UM_HINT_EVICT), 0,
	       "memory that is freed around the end needs no discard or eviction");
	um_schedule_fini(&s);
}

/* As it comes from a heap, older tensors where they lie. 24 bytes/ns, and ops as fast as ops on such a device are. */
static int read_trace(struct um_schedule *s, const char *name)
{
	const char *dir = getenv("top_srcdir");
	char path[4096];

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", dir ? dir : ".", name);
	if (fx_trace(s, path)) {
		ok(0, "%s is read", name);
		return -1;
	}
	for (size_t i = 0; i < s->ops.n; i++)
		s->ops.at[i].ns = um_profile_op_ns(um_profile_find("a100"), &s->ops.at[i].cost, 0) * 24;
	return 0;
}

static int rounds;

static int more_rounds(void *user)
{
	(void)user;
	return rounds++ < 600;
}

static void more_effort(void)
{
	static const struct um_plan_effort effort = {.more = more_rounds};
	struct um_schedule s = {0};
	struct um_plan_request q;
	uint64_t usual;

	if (read_trace(&s, "cg_laplace3d"))
		return;
	q = fx_request(&s, fx_peak(&s) / 5 * 4);
	is_int(build(&s, q.budget), 0, "planning with the usual effort succeeds");
	usual = f.ns;
	q.effort = &effort;
	um_plan_fini(&plan_);
	um_plan_init(&plan_);
	is_int(um_plan_build(&q, &plan_, &grow, why, sizeof why), 0, "planning with more effort succeeds");
	is_int(um_plan_check(&plan_, &f, why, sizeof why), 0, "the plan is sound");
	ok(f.ns < usual, "more effort gives a plan that is better by %.2f %%",
	   100 * (1 - (double)f.ns / (double)usual));
	um_schedule_fini(&s);
}

static int is_late(void *user)
{
	int *left = user;

	return !*left || !--*left;
}

static void less_effort(void)
{
	int asked = 3;
	const struct um_plan_effort effort = {.late = is_late, .user = &asked};
	struct um_schedule s = {0};
	struct um_plan_request q;

	if (read_trace(&s, "cg_laplace3d"))
		return;
	q = fx_request(&s, fx_peak(&s) / 5 * 4);
	q.effort = &effort;
	um_plan_fini(&plan_);
	um_plan_init(&plan_);
	is_int(um_plan_build(&q, &plan_, &grow, why, sizeof why), 0, "late planning ends with the best plan so far");
	is_int(um_plan_check(&plan_, &f, why, sizeof why), 0, "the plan is sound");
	um_plan_fini(&plan_);
	um_plan_init(&plan_);
	is_int(um_plan_build(&q, &plan_, &grow, why, sizeof why), -EINVAL, "planning without time finds no plan");
	um_schedule_fini(&s);
}

struct received {
	int n, fail;
	uint64_t first, least; /* of the first kinds of plans, of all */
};

static uint64_t bytes(const struct um_plan *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->hints.n; i++)
		sum += p->hints.at[i].bytes;
	return sum;
}

/* Where bytes are all that counts, and not when they move. */
static int by_bytes(void *user, const struct um_plan *p, uint64_t *ns)
{
	struct received *h = user;

	*ns = bytes(p);
	if (!h->n++ || *ns < h->least)
		h->least = *ns;
	if (h->n < 12)
		h->first = h->least;
	return h->fail ? -ENOMEM : 0;
}

/* What does better there is taken although it predicts a little more, and looked for. */
static void rehearsed(void)
{
	struct received h = {0};
	struct um_plan_rehearsal rehearsal = {.ns = by_bytes, .user = &h};
	struct um_schedule s = {0};
	struct um_plan_request q;
	uint64_t usual;

	if (read_trace(&s, "cg_laplace3d"))
		return;
	q = fx_request(&s, fx_peak(&s) / 3 * 2);
	is_int(build(&s, q.budget), 0, "the planner predicts a plan");
	usual = f.ns;
	q.rehearsal = &rehearsal;
	um_plan_fini(&plan_);
	um_plan_init(&plan_);
	is_int(um_plan_build(&q, &plan_, &grow, why, sizeof why), 0, "planning with a rehearsal succeeds");
	is_int(um_plan_check(&plan_, &f, why, sizeof why), 0, "the plan is sound");
	diag("%d rehearsals, %" PRIu64 " bytes, at first %" PRIu64 ", taken %" PRIu64 ", predicted %.4f", h.n, h.least,
	     h.first, bytes(&plan_), (double)f.ns / (double)usual);
	ok(f.ns <= usual + usual / 10, "it predicts a tenth more at most");
	ok(h.least < h.first && bytes(&plan_) < h.first, "a plan that does better is found and taken");
	h.fail = 1;
	um_plan_fini(&plan_);
	um_plan_init(&plan_);
	is_int(um_plan_build(&q, &plan_, &grow, why, sizeof why), -ENOMEM, "a rehearsal without memory fails");
	um_schedule_fini(&s);
}

/* What it costs to have advice, or not to have it, in per cent. */
static int by_advice(void *user, const struct um_plan *p, uint64_t *ns)
{
	const int *dear = user;
	int any = 0;

	for (size_t i = 0; i < p->hints.n; i++)
		any |= p->hints.at[i].kind == UM_HINT_ADVISE;
	*ns = any == *dear ? 103000000 : 100000000;
	return 0;
}

/* Read-mostly advice is part of a plan where the rehearsal says that it pays. */
static void advised(int dear)
{
	struct um_plan_rehearsal rehearsal = {.ns = by_advice, .user = &dear};
	struct um_schedule s = {0};
	struct um_plan_request q;

	if (read_trace(&s, "cg_laplace3d"))
		return;
	q = fx_request(&s, fx_peak(&s) / 3 * 2);
	q.rehearsal = &rehearsal;
	um_plan_fini(&plan_);
	um_plan_init(&plan_);
	is_int(um_plan_build(&q, &plan_, &grow, why, sizeof why), 0, "advice is %s", dear ? "dear" : "worth it");
	is_int(um_plan_check(&plan_, &f, why, sizeof why), 0, "the plan is sound");
	ok((count(UM_HINT_ADVISE) == 0) == dear, "the plan has %s advice", dear ? "none" : "some");
	um_schedule_fini(&s);
}

/* `most`: of the time in core, in hundredths. */
static void recorded(const char *name, double ratio, uint64_t most)
{
	struct um_schedule s = {0};

	if (read_trace(&s, name))
		return;
	is_int(build(&s, (uint64_t)((double)fx_peak(&s) / ratio)), 0, "%s at %.2f is planned", name, ratio);
	ok(f.ns <= plan_.in_core_ns / 100 * most, "the plan takes %.2f of its time in core, at least %.2f",
	   (double)f.ns / (double)plan_.in_core_ns, (double)plan_.bound_ns / (double)plan_.in_core_ns);
	ok(f.ns >= plan_.bound_ns, "the plan is no faster than its bound");
	um_schedule_fini(&s);
}

/* n tensors, in sweeps of different orders: a block that is far from its next use in one is near it in another. */
static void sweeps(struct um_schedule *s, int n)
{
	char use[16];

	for (int i = 0; i < n; i++)
		fx_slot(s, B, -1, -1);
	for (int i = 0; i < 3 * n; i++) {
		snprintf(use, sizeof use, "u%d", i < n ? i : i < 2 * n ? 2 * n - 1 - i : i * 7 % n);
		fx_op(s, "op", 3 * B, use);
	}
}

/* At most 16 of 24 blocks are resident, so that 8 are off the device at any time, and one more while two change. */
static void host_memory(void)
{
	struct um_schedule s = {0};
	struct um_plan_request r;
	uint64_t usual;
	int kept = 0, err = 0;

	sweeps(&s, 24);
	is_int(build(&s, 16 * B), 0, "a plan without a limit of host memory");
	usual = f.host_bytes;
	for (uint64_t most = 23; most >= 9; most--) {
		r = fx_request(&s, 16 * B);
		r.host_budget = most * B;
		um_plan_fini(&plan_);
		um_plan_init(&plan_);
		err |= um_plan_build(&r, &plan_, &grow, why, sizeof why);
		err |= um_plan_check(&plan_, &f, why, sizeof why);
		kept += plan_.host_budget == most * B && f.host_bytes <= most * B;
	}
	is_int(err, 0, "with any limit there is a sound plan");
	is_int(kept, 23 - 8, "a plan keeps each limit down to one block more than must be off the device");
	ok(usual > 16 * B && f.host_bytes == 9 * B, "less than half of the %d blocks of the usual plan",
	   (int)(usual / B));
	r.host_budget = B;
	um_plan_fini(&plan_);
	um_plan_init(&plan_);
	is_int(um_plan_build(&r, &plan_, &grow, why, sizeof why), 0, "with a limit that no plan keeps there is a plan");
	is_int(um_plan_check(&plan_, &f, why, sizeof why), 0, "the plan has what it needs as its limit");
	ok(f.host_bytes <= 9 * B && plan_.host_budget == f.host_bytes, "it needs as little as any (%d blocks)",
	   (int)(f.host_bytes / B));
	um_schedule_fini(&s);
}

int main(void)
{
	um_plan_init(&plan_);
	all_fits();
	belady();
	palindrome();
	dead();
	shared_block();
	too_large();
	paged();
	by_cpu();
	by_cpu_in_part(4096, 1);
	by_cpu_in_part(256 << 10, 0);
	unmanaged();
	freed_around();
	by_chance();
	more_effort();
	less_effort();
	rehearsed();
	advised(0);
	advised(1);
	if (!tap_few()) {
		recorded("resnet50", 1.25, 134);
		recorded("vgg16", 1.5, 206);
		recorded("gpt2_small", 2, 336);
		recorded("cg_laplace3d", 1.25, 645);
	}
	host_memory();
	um_plan_fini(&plan_);
	return tap_done();
}
