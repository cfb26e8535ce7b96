/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_fixture.h"

#include "io/umtrace.h"
#include "record/heap.h"
#include "tap.h"
#include "world.h"

static void must(int err)
{
	if (err)
		tap_bail("no memory");
}

uint32_t fx_slot(struct um_schedule *s, uint64_t bytes, int32_t birth, int32_t death)
{
	struct um_slot t = {.bytes = bytes, .birth = birth, .death = death, .carry = UM_NO_SLOT, .place = UINT64_MAX};

	if (birth < 0 ? death < 0 : death <= birth)
		t.carry = (uint32_t)s->slots.n;
	must(um_vec_push(&s->slots, t));
	return (uint32_t)s->slots.n - 1;
}

int32_t fx_op(struct um_schedule *s, const char *name, uint64_t ns, const char *uses)
{
	struct um_sched_op op = {.name = strdup(name), .ns = ns, .first_use = (uint32_t)s->uses.n};
	char *end;

	while (*uses) {
		struct um_sched_use u = {.access = *uses == 'r' ? UM_READ : *uses == 'w' ? UM_WRITE : UM_UPDATE};

		u.slot = (uint32_t)strtoul(uses + 1, &end, 10);
		u.bytes = s->slots.at[u.slot].bytes;
		if (*end == '@') {
			u.off = strtoull(end + 1, &end, 10);
			u.bytes = strtoull(end + 1, &end, 10);
		}
		u.touched = u.bytes;
		must(um_vec_push(&s->uses, u));
		op.n_uses++;
		for (uses = end; *uses == ' '; uses++)
			;
	}
	must(um_vec_push(&s->ops, op));
	return (int32_t)s->ops.n - 1;
}

void fx_hint_part(struct um_plan *p, enum um_hint_kind kind, int32_t at, int32_t after, uint32_t slot, uint64_t off,
		  uint64_t bytes)
{
	struct um_hint h = {
		.kind = kind, .at = at, .after = after, .slot = slot, .off = off, .bytes = bytes, .copy = 1};

	must(um_vec_push(&p->hints, h));
}

void fx_hint(struct um_plan *p, enum um_hint_kind kind, int32_t at, int32_t after, uint32_t slot)
{
	fx_hint_part(p, kind, at, after, slot, 0, p->sched.slots.at[slot].bytes);
}

const struct um_profile *fx_profile(void)
{
	static struct um_profile p;

	p.h2d = p.d2h = 1e9;
	p.eta = p.duplex = 1;
	p.b_remote = 0.5;
	p.flops = p.mem_bandwidth = 1e9;
	memcpy(p.name, "slow", 5);
	return &p;
}

struct um_plan_request fx_request(const struct um_schedule *s, uint64_t budget)
{
	return (struct um_plan_request){
		.sched = s, .profile = fx_profile(), .budget = budget, .grow_at = 1ull << 40, .strategy = "lookahead"};
}

uint64_t fx_peak(const struct um_schedule *s)
{
	uint64_t most = 0;

	for (int32_t op = 0; op < (int32_t)s->ops.n; op++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < s->slots.n; i++) {
			const struct um_slot *t = &s->slots.at[i];
			int born = t->birth < 0 || op >= t->birth, freed = t->death >= 0 && op >= t->death;
			int wraps = t->birth >= 0 && t->death <= t->birth;

			sum += (wraps ? born || !freed : born && !freed) ? t->bytes : 0;
		}
		most = sum > most ? sum : most;
	}
	return most;
}

/* --- from a file -------------------------------------------------------------------------------------------------- */

#define HEAP_AT (1ull << 44)
#define KEPT_AT (1ull << 43)

struct player {
	struct um_sink sink;
	struct world world;
	struct um_heap heap, kept;
	int begun; /* an iteration has */
	struct um_tensor **cast; /* by trace id */
	size_t n;
	UM_VEC(struct um_use) uses;
};

static void play_alloc(struct player *p, const struct um_event *e)
{
	uint64_t addr, id = e->alloc.id.v;

	if (id >= p->n) {
		p->cast = realloc(p->cast, 2 * (id + 1) * sizeof *p->cast);
		must(!p->cast);
		p->n = 2 * (id + 1);
	}
	int kept = !p->begun || e->alloc.role == UM_ROLE_PARAM || e->alloc.role == UM_ROLE_OPTIM;

	must(um_heap_take_aligned(kept ? &p->kept : &p->heap, e->alloc.bytes, &addr));
	p->cast[id] = world_add(&p->world, addr, e->alloc.bytes, e->alloc.name, 0);
}

static int play_event(struct um_sink *sink, const struct um_event *e)
{
	struct player *p = um_tree_entry(sink, struct player, sink);
	struct um_event mine = *e;
	struct um_tensor *t;

	switch (e->kind) {
	case UM_EV_ALLOC:
		play_alloc(p, e);
		break;
	case UM_EV_FREE:
		t = p->cast[e->free.id.v];
		um_heap_give(t->addr < HEAP_AT ? &p->kept : &p->heap, t->addr, t->bytes);
		world_free(&p->world, t);
		break;
	case UM_EV_OP:
		um_vec_clear(&p->uses);
		for (uint32_t i = 0; i < e->op.n_uses; i++) {
			struct um_use u = e->op.uses[i];

			u.tensor = p->cast[u.id.v];
			u.id = u.tensor->id;
			must(um_vec_push(&p->uses, u));
		}
		mine.op.uses = p->uses.at;
		mine.op.relaunch = NULL;
		mine.op.n_relaunch = 0;
		mine.op.relaunchable = 0;
		world_feed(&p->world, &mine);
		break;
	case UM_EV_ITER:
		p->begun = 1;
		world_iter(&p->world);
		break;
	default:
		break;
	}
	return 0;
}

/* As the front desk does it: what is born in every iteration is placed anew. */
static void settle(struct um_schedule *s, const struct um_schedule *from)
{
	must(um_schedule_copy(s, from));
	for (size_t i = 0; i < s->slots.n; i++) {
		struct um_slot *t = &s->slots.at[i];

		if (t->birth < 0 || t->death > t->birth)
			continue;
		t->flags &= ~(unsigned)UM_SLOT_FIXED;
		t->place = UINT64_MAX;
	}
}

int fx_trace(struct um_schedule *s, const char *path)
{
	struct player p = {.sink = {play_event}};
	struct um_diag diag;
	int err;

	um_diag_init(&diag, path);
	world_init(&p.world);
	um_heap_init(&p.heap);
	must(um_heap_add_region(&p.heap, HEAP_AT, 1ull << 42));
	um_heap_init(&p.kept);
	must(um_heap_add_region(&p.kept, KEPT_AT, 1ull << 42));
	err = um_umtrace_read(path, &p.sink, NULL, &diag);
	if (!err)
		world_iter(&p.world);
	if (!err && !p.world.rc)
		settle(s, &p.world.sched);
	else
		tap_diag_("%s: %s", path, diag.text);
	err = err || p.world.rc ? -1 : 0;
	world_fini(&p.world);
	um_heap_fini(&p.heap);
	um_heap_fini(&p.kept);
	free(p.cast);
	um_vec_fini(&p.uses);
	return err;
}

/* --- by chance ---------------------------------------------------------------------------------------------------- */

uint64_t fx_draw(uint64_t *state, uint64_t below)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (x ^ (x >> 31)) % below;
}

static int alive(const struct um_slot *t, int32_t op)
{
	if (t->birth < 0)
		return t->death < 0 || op < t->death;
	return t->birth < t->death ? op >= t->birth && op < t->death : op >= t->birth || op < t->death;
}

static uint64_t draw_bytes(uint64_t *r)
{
	switch (fx_draw(r, 4)) {
	case 0:
		return 1 + fx_draw(r, 4096);
	case 1:
		return 1 + fx_draw(r, 2 * FX_MIB);
	case 2:
		return 2 * FX_MIB * (1 + fx_draw(r, 4));
	default:
		return 1 + fx_draw(r, 16 * FX_MIB);
	}
}

/* Two slots of one size that are each other in the next iteration, or one that becomes another that is freed there. */
static void draw_pair(struct um_schedule *s, uint64_t *r, int32_t n)
{
	uint64_t bytes = draw_bytes(r);
	int swap = fx_draw(r, 2) != 0;
	uint32_t a = swap ? fx_slot(s, bytes, -1, -1) : fx_slot(s, bytes, (int32_t)fx_draw(r, (uint64_t)n), n);
	uint32_t b = swap ? fx_slot(s, bytes, -1, -1) : fx_slot(s, bytes, -1, (int32_t)fx_draw(r, (uint64_t)n + 1));

	s->slots.at[b].carry = a;
	if (swap)
		s->slots.at[a].carry = b;
}

static void draw_slot(struct um_schedule *s, uint64_t *r, int32_t n)
{
	uint64_t bytes = draw_bytes(r);
	int32_t birth = (int32_t)fx_draw(r, (uint64_t)n), death = (int32_t)fx_draw(r, (uint64_t)n + 1);

	switch (fx_draw(r, 8)) {
	case 0:
	case 1:
		fx_slot(s, bytes, -1, -1);
		break;
	case 2:
		draw_pair(s, r, n);
		break;
	case 3:
		fx_slot(s, bytes, birth, death);
		break;
	default:
		fx_slot(s, bytes, birth, birth + 1 + (int32_t)fx_draw(r, (uint64_t)(n - birth)));
	}
	if (fx_draw(r, 16) == 0)
		s->slots.at[s->slots.n - 1].flags |= UM_SLOT_TRANSIENT;
}

static void draw_use(struct um_schedule *s, uint64_t *r, int32_t op)
{
	static const uint32_t access[] = {UM_READ, UM_READ, UM_WRITE, UM_UPDATE};
	uint32_t slot = (uint32_t)fx_draw(r, s->slots.n);
	struct um_sched_op *o = &s->ops.at[op];
	struct um_sched_use u = {.slot = slot, .access = access[fx_draw(r, 4)], .bytes = s->slots.at[slot].bytes};

	if (!alive(&s->slots.at[slot], op))
		return;
	for (uint32_t k = o->first_use; k < s->uses.n; k++)
		if (s->uses.at[k].slot == slot)
			return;
	if (fx_draw(r, 8) == 0) {
		u.off = fx_draw(r, u.bytes);
		u.bytes = 1 + fx_draw(r, u.bytes - u.off);
	}
	u.touched = u.bytes;
	u.dead_after = fx_draw(r, 32) == 0;
	must(um_vec_push(&s->uses, u));
	o->n_uses++;
}

void fx_random(struct um_schedule *s, uint64_t seed)
{
	uint64_t r = seed;
	int32_t n = 1 + (int32_t)fx_draw(&r, 60);
	size_t slots = 1 + fx_draw(&r, 40);

	while (s->slots.n < slots)
		draw_slot(s, &r, n);
	for (int32_t op = 0; op < n; op++) {
		fx_op(s, "op", fx_draw(&r, 4) ? fx_draw(&r, 10000000) : 1, "");
		for (uint64_t k = fx_draw(&r, 5); k > 0; k--)
			draw_use(s, &r, op);
	}
}

void fx_thin(struct um_schedule *s, uint64_t seed)
{
	uint64_t r = seed;

	for (size_t slot = 0; slot < s->slots.n; slot++) {
		uint64_t part = fx_draw(&r, 2) ? 1 : 4 + fx_draw(&r, 100);

		for (size_t u = 0; u < s->uses.n; u++)
			if (s->uses.at[u].slot == slot && s->uses.at[u].bytes >= 2 * part)
				s->uses.at[u].touched = s->uses.at[u].bytes / part;
	}
}
