/* SPDX-License-Identifier: Apache-2.0 */
#include "truth_tensors.h"

#include "tap.h"

#include <stdio.h>

#define NONE (-1)
#define ITERATIONS 4 /* and none */
#define PAGE ((uint64_t)UM_SIM_PAGE)
#define SUBPAGE (PAGE / UM_SIM_SUBPAGES)

#define PUSH(v, x)                                                                                                     \
	do {                                                                                                           \
		if (um_vec_push((v), (x)))                                                                             \
			tap_bail("no memory");                                                                         \
	} while (0)

struct life { /* of a tensor, or of an allocation */
	char name[96];
	uint32_t id; /* the same for those of one name */
	uint64_t address, bytes;
	uint64_t born, died; /* launches before that */
	int tensor;
};

struct moment { /* a page, or a part of one, that moved, or a page that faulted */
	int64_t at; /* ns */
	uint64_t address, bytes;
	uint64_t reported; /* of a fault */
	enum um_activity_dir dir;
	enum um_activity_cause cause;
	unsigned faults;
};

struct kernel {
	int64_t begin, end;
	uint64_t launch; /* the how manieth */
};

struct use {
	uint64_t op, address, bytes;
};

struct sums {
	uint64_t faults, h2d[UM_CAUSES], d2h[UM_CAUSES];
};

struct page { /* who lay on it */
	UM_VEC(uint32_t) lives;
};

static struct {
	struct um_sim *sim;
	uint64_t allocs_before, ops_before; /* the first iteration */
	uint64_t allocs, launches;
	int ended; /* iterations */
	uint64_t unnamed[2][2]; /* allocations, tensors; outside of iterations, in this one */
	UM_VEC(struct life) lives;
	UM_VEC(struct moment) moments;
	UM_VEC(struct kernel) kernels;
	UM_VEC(struct use) uses; /* in the order of ops */
	UM_VEC(size_t) first_use; /* by op */
	UM_VEC(uint64_t) launch; /* by correlation */
	UM_VEC(int) iteration; /* by launch */
	UM_VEC(int64_t) run_until; /* by kernel: the latest end so far */
	struct page *pages;
	uint64_t first_page, n_pages;
	/* A block whose pages are about to move. */
	struct um_sim_block *moving, before;
	int to_device;
	uint32_t reported; /* pages */
	uint64_t reported_bytes;
	/* Those that fault. */
	struct um_sim_block *faulting[8];
	uint32_t faulted[8], each[8];
	unsigned n_faulting;
	unsigned wrong; /* what the device told is not what it did */
} truth;

void truth_tensors_fini(void)
{
	for (uint64_t i = 0; i < truth.n_pages; i++)
		um_vec_fini(&truth.pages[i].lives);
	free(truth.pages);
	um_vec_fini(&truth.lives);
	um_vec_fini(&truth.moments);
	um_vec_fini(&truth.kernels);
	um_vec_fini(&truth.uses);
	um_vec_fini(&truth.first_use);
	um_vec_fini(&truth.launch);
	um_vec_fini(&truth.iteration);
	um_vec_fini(&truth.run_until);
	memset(&truth, 0, sizeof truth);
}

void truth_tensors_begin(const struct um_trace *t)
{
	truth_tensors_fini();
	for (size_t i = 0; i < um_trace_length(t) && um_trace_event(t, i)->kind != UM_EV_ITER; i++) {
		truth.allocs_before += um_trace_event(t, i)->kind == UM_EV_ALLOC;
		truth.ops_before += um_trace_event(t, i)->kind == UM_EV_OP;
	}
}

/* --- what the device does ----------------------------------------------------------------------------------------- */

/* The block whose pages moved: do those lie elsewhere now that the device said? */
static void look(void)
{
	const struct um_sim_block *b = truth.moving, *old = &truth.before;
	uint32_t moved;

	if (!b)
		return;
	if (truth.to_device)
		moved = b->gpu & ~old->gpu & old->cpu & ~old->disc;
	else
		moved = b->cpu & ~old->cpu & old->gpu & ~old->disc;
	truth.wrong += moved != truth.reported || um_sim_count(moved) * PAGE != truth.reported_bytes;
	truth.moving = NULL;
	truth.reported = 0;
	truth.reported_bytes = 0;
}

static struct um_sim_block *block_of(const char *place)
{
	unsigned serial, block;

	if (sscanf(place, "m%u+%u", &serial, &block) != 2)
		return NULL;
	for (size_t i = 0; i < truth.sim->mem.n; i++)
		if (truth.sim->mem.at[i]->serial == serial)
			return &truth.sim->mem.at[i]->block[block];
	return NULL;
}

/* "12345 migrate h2d prefetch m3+17 2097152", "12345 fault m3+17 ff 0" */
static void log_line(void *user, const char *line)
{
	const char *what = strchr(line, ' ') + 1, *place = strrchr(line, 'm');

	(void)user;
	if (strncmp(what, "read-duplicate ", 15) == 0) /* half of a move */
		return;
	look();
	if (strncmp(what, "migrate ", 8) == 0) {
		truth.moving = block_of(place);
		truth.to_device = what[8] == 'h';
		if (!truth.moving || !truth.reported)
			tap_bail("a move that was not told");
		truth.before = *truth.moving;
	}
	if (strncmp(what, "fault ", 6) == 0) {
		unsigned i = truth.n_faulting++;

		if (i == 8)
			tap_bail("faults that were not told");
		truth.faulting[i] = block_of(what + 6);
		sscanf(strchr(what + 6, ' '), "%x %x", &truth.faulted[i], &truth.each[i]);
	}
}

void truth_tensors_opened(struct um_sim *sim)
{
	truth.sim = sim;
	sim->opt.log = log_line;
}

/* --- what is told ------------------------------------------------------------------------------------------------- */

static struct um_sim_block *reported_block(uint64_t address, uint64_t *start)
{
	for (size_t i = 0; i < truth.sim->mem.n; i++) {
		const struct um_sim_mem *m = truth.sim->mem.at[i];
		uint64_t off = address - m->watch_addr;

		if (m->kind != UM_SIM_MANAGED || address < m->watch_addr || off >= m->bytes)
			continue;
		*start = m->watch_addr + off / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
		return &m->block[off / UM_BLOCK_BYTES];
	}
	return NULL;
}

static void on_migration(const struct um_activity *a)
{
	uint64_t start = 0, end = a->address + a->bytes, next;
	struct um_sim_block *b = reported_block(a->address, &start);

	truth.wrong += !b || a->bytes % SUBPAGE || end > start + UM_BLOCK_BYTES;
	truth.reported_bytes += a->bytes;
	for (uint64_t at = a->address; at < end; at = next) {
		next = at - (at - start) % PAGE + PAGE;
		next = next < end ? next : end;
		truth.reported |= 1u << (at - start) / PAGE;
		PUSH(&truth.moments,
		     ((struct moment){
			     .at = a->begin, .address = at, .bytes = next - at, .dir = a->dir, .cause = a->cause}));
	}
}

/* The lowest of the pages that the device says have faulted, as many as there are faults. */
static void on_fault(const struct um_activity *a)
{
	uint64_t start = 0, left = a->faults;
	struct um_sim_block *b = reported_block(a->address, &start);

	for (unsigned i = 0; i < truth.n_faulting; i++) {
		while (truth.faulting[i] == b && truth.faulted[i] && left) {
			uint32_t page = truth.faulted[i] & -truth.faulted[i];
			unsigned n = page & truth.each[i] ? UM_SIM_SUBPAGES : 1;

			truth.faulted[i] &= ~page;
			left -= n <= left ? n : left;
			PUSH(&truth.moments, ((struct moment){.at = a->begin,
							      .address = start + (uint64_t)__builtin_ctz(page) * PAGE,
							      .reported = a->address,
							      .faults = n}));
		}
	}
	truth.wrong += left != 0;
	for (unsigned i = 0; i < truth.n_faulting; i++)
		if (truth.faulted[i])
			return;
	truth.n_faulting = 0;
}

static void on_birth(const struct um_activity *a)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
	struct life l = {.address = a->address,
			 .bytes = a->bytes,
			 .born = truth.launches,
			 .died = UINT64_MAX,
			 .tensor = a->kind == UM_ACT_TENSOR};
	int in = truth.allocs >= truth.allocs_before;
	double n = (double)a->bytes;
	unsigned unit = 0;

	truth.allocs += (uint64_t)l.tensor;
	if (a->name && *a->name) {
		snprintf(l.name, sizeof l.name, "%s", a->name);
	} else {
		for (; n >= 1024; unit++)
			n /= 1024;
		snprintf(l.name, sizeof l.name, "%s #%d%s (%.4g %s)", l.tensor ? "tensor" : "allocation",
			 (int)truth.unnamed[l.tensor][in]++, in ? " of an iteration" : "", n, units[unit]);
	}
	PUSH(&truth.lives, l);
}

static void on_death(const struct um_activity *a)
{
	for (size_t i = truth.lives.n; i > 0; i--) {
		struct life *l = &truth.lives.at[i - 1];

		if (l->address == a->address && l->tensor == (a->kind == UM_ACT_TENSOR_END) && l->died == UINT64_MAX) {
			l->died = truth.launches;
			return;
		}
	}
}

static void on_call(const struct um_activity *a)
{
	uint64_t which = UINT64_MAX;

	if (strncmp(a->name, "cudaLaunch", 10) == 0) {
		PUSH(&truth.iteration, truth.launches >= truth.ops_before ? truth.ended : NONE);
		which = truth.launches++;
	}
	while (truth.launch.n < a->correlation)
		PUSH(&truth.launch, UINT64_MAX);
	PUSH(&truth.launch, which);
}

void truth_tensors_listen(const struct um_activity *a)
{
	look();
	switch (a->kind) {
	case UM_ACT_ALLOC:
	case UM_ACT_TENSOR:
		on_birth(a);
		break;
	case UM_ACT_FREE:
	case UM_ACT_TENSOR_END:
		on_death(a);
		break;
	case UM_ACT_RANGE:
		truth.ended++;
		truth.unnamed[0][1] = truth.unnamed[1][1] = 0;
		break;
	case UM_ACT_OP:
		truth.wrong += a->op != truth.first_use.n;
		PUSH(&truth.first_use, truth.uses.n);
		break;
	case UM_ACT_USE:
		PUSH(&truth.uses, ((struct use){a->op, a->address, a->bytes}));
		break;
	case UM_ACT_CALL:
		on_call(a);
		break;
	case UM_ACT_KERNEL:
		PUSH(&truth.kernels, ((struct kernel){a->begin, a->end, truth.launch.at[a->correlation]}));
		break;
	case UM_ACT_GPU_FAULT:
		on_fault(a);
		break;
	case UM_ACT_MIGRATION:
		on_migration(a);
		break;
	default:
		break;
	}
}

/* --- whose it was ------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(truth.lives.at[*(const uint32_t *)a].name, truth.lives.at[*(const uint32_t *)b].name);
}

static int by_begin(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : x->launch < y->launch ? -1 : 1;
}

/* Names are numbered, kernels sorted, and each page knows who lay on it. Lives in the order of their names. */
static uint32_t *prepare(void)
{
	uint32_t *order = calloc(truth.lives.n + 1, sizeof *order), ids = 0;
	uint64_t last = 0;

	if (!order)
		tap_bail("no memory");
	truth.first_page = UINT64_MAX;
	for (uint32_t i = 0; i < truth.lives.n; i++) {
		const struct life *l = &truth.lives.at[i];

		order[i] = i;
		truth.first_page = l->address / PAGE < truth.first_page ? l->address / PAGE : truth.first_page;
		last = (l->address + l->bytes) / PAGE > last ? (l->address + l->bytes) / PAGE : last;
	}
	truth.n_pages = truth.lives.n ? last - truth.first_page + 1 : 0;
	truth.pages = calloc(truth.n_pages + 1, sizeof *truth.pages);
	if (!truth.pages)
		tap_bail("no memory");
	for (uint32_t i = 0; i < truth.lives.n; i++) {
		const struct life *l = &truth.lives.at[i];

		for (uint64_t p = l->address / PAGE; p <= (l->address + l->bytes - 1) / PAGE; p++)
			PUSH(&truth.pages[p - truth.first_page].lives, i);
	}
	qsort(order, truth.lives.n, sizeof *order, by_name);
	for (size_t i = 0; i < truth.lives.n; i++) {
		ids += i && by_name(&order[i], &order[i - 1]) != 0;
		truth.lives.at[order[i]].id = ids;
	}
	qsort(truth.kernels.at, truth.kernels.n, sizeof *truth.kernels.at, by_begin);
	for (size_t i = 0; i < truth.kernels.n; i++) {
		int64_t end = truth.kernels.at[i].end;

		PUSH(&truth.run_until, i && truth.run_until.at[i - 1] > end ? truth.run_until.at[i - 1] : end);
	}
	return order;
}

/* The launch whose kernel ran, the last to have begun of several; else the next. UINT64_MAX: none follows. */
static uint64_t launch_at(int64_t t)
{
	size_t from = 0, to = truth.kernels.n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (truth.kernels.at[middle].begin <= t)
			from = middle + 1;
		else
			to = middle;
	}
	for (size_t i = from; i > 0 && truth.run_until.at[i - 1] > t; i--)
		if (truth.kernels.at[i - 1].end > t)
			return truth.kernels.at[i - 1].launch;
	return from < truth.kernels.n ? truth.kernels.at[from].launch : UINT64_MAX;
}

static int alive(const struct life *l, uint64_t launch)
{
	return l->born <= launch && launch < l->died;
}

static struct sums *sums_of(struct sums *all, uint32_t id, uint64_t launch)
{
	return &all[id * ITERATIONS + (launch == UINT64_MAX ? 0 : (unsigned)(truth.iteration.at[launch] + 1))];
}

/* Each tensor has its bytes of what moved, the allocation the rest. After the last kernel, nothing has ended. */
static void divide(struct sums *all, const struct moment *m, uint64_t launch)
{
	const struct page *p = &truth.pages[m->address / PAGE - truth.first_page];
	uint64_t at = launch == UINT64_MAX ? truth.launches - 1 : launch, rest = m->bytes;

	for (int tensors = 1; tensors >= 0; tensors--)
		for (size_t i = 0; i < p->lives.n; i++) {
			const struct life *l = &truth.lives.at[p->lives.at[i]];
			uint64_t from = l->address > m->address ? l->address : m->address, to = l->address + l->bytes;
			uint64_t end = to < m->address + m->bytes ? to : m->address + m->bytes;
			uint64_t bytes = tensors ? end - from : rest;
			struct sums *s = sums_of(all, l->id, launch);

			if (l->tensor != tensors || !alive(l, at) || end <= from)
				continue;
			*(m->dir == UM_DIR_H2D ? &s->h2d[m->cause] : &s->d2h[m->cause]) += bytes;
			rest -= bytes;
		}
	truth.wrong += rest != 0;
}

static const struct life *life_at(uint64_t address, uint64_t launch)
{
	const struct page *p = &truth.pages[address / PAGE - truth.first_page];

	for (size_t i = 0; i < p->lives.n; i++) {
		const struct life *l = &truth.lives.at[p->lives.at[i]];

		if (l->tensor && alive(l, launch) && address >= l->address && address - l->address < l->bytes)
			return l;
	}
	return NULL;
}

/* The tensor that the op uses there. Where it uses several on the page, the one that was told is one of them. */
static void stall(struct sums *all, const struct moment *m, uint64_t launch)
{
	const struct life *only = NULL, *reported = life_at(m->reported, launch);
	size_t end = launch + 1 < truth.first_use.n ? truth.first_use.at[launch + 1] : truth.uses.n;
	int n = 0, meant = 0;

	for (size_t i = truth.first_use.at[launch]; i < end; i++) {
		const struct use *u = &truth.uses.at[i];
		const struct life *l = life_at(u->address, launch);

		if (u->address >= m->address + PAGE || u->address + u->bytes <= m->address)
			continue;
		n += !only || l->id != only->id;
		meant |= l == reported;
		only = l;
	}
	if (n > 1 && meant)
		only = reported;
	if (!n || (n > 1 && !meant))
		truth.wrong++;
	else
		sums_of(all, only->id, launch)->faults += m->faults;
}

/* --- compared ----------------------------------------------------------------------------------------------------- */

static void add(struct sums *to, const struct um_report_tensor_sums *s)
{
	to->faults += s->faults;
	for (int c = 0; c < UM_CAUSES; c++) {
		to->h2d[c] += s->h2d_bytes[c];
		to->d2h[c] += s->d2h_bytes[c];
	}
}

/* Are tensors, added up, what the iterations and kernels have? */
static unsigned added_up(const struct um_report *r)
{
	unsigned bad = 0;
	uint64_t fault_ns = 0;

	for (uint32_t i = 0; i <= r->iterations.n; i++) {
		const struct um_report_sums *want = i < r->iterations.n ? &r->iterations.at[i].sums : &r->outside;
		struct sums sum = {0};

		for (size_t k = 0; k < r->tensors.cells.n; k++)
			if (r->tensors.cells.at[k].iteration == (i < r->iterations.n ? i : UM_REPORT_NONE))
				add(&sum, &r->tensors.cells.at[k].sums);
		bad += sum.faults != want->work.faults;
		for (int c = 0; c < UM_CAUSES; c++)
			bad += sum.h2d[c] != want->moves[UM_DIR_H2D][c].bytes ||
			       sum.d2h[c] != want->moves[UM_DIR_D2H][c].bytes;
	}
	for (size_t k = 0; k < r->tensors.rows.n; k++)
		fault_ns += r->tensors.rows.at[k].sums.fault_ns;
	return bad + (fault_ns != r->all.work.fault_ns);
}

static uint32_t id_of(const char *name, const uint32_t *order)
{
	size_t from = 0, to = truth.lives.n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int c = strcmp(name, truth.lives.at[order[middle]].name);

		if (!c)
			return truth.lives.at[order[middle]].id;
		if (c < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return UINT32_MAX;
}

unsigned truth_tensors_compare(const struct um_report *r)
{
	uint32_t *order = prepare();
	size_t n = truth.lives.n * ITERATIONS;
	struct sums *want = calloc(n + 1, sizeof *want), *found = calloc(n + 1, sizeof *found);
	unsigned sums = added_up(r), bad = 0;

	if (!want || !found)
		tap_bail("no memory");
	for (size_t i = 0; i < truth.moments.n; i++) {
		const struct moment *m = &truth.moments.at[i];

		if (m->faults)
			stall(want, m, launch_at(m->at));
		else
			divide(want, m, launch_at(m->at));
	}
	for (size_t i = 0; i < r->tensors.cells.n; i++) {
		const struct um_report_tensor_cell *c = &r->tensors.cells.at[i];
		uint32_t id = id_of(r->tensors.rows.at[c->tensor].name, order);
		unsigned column = c->iteration == UM_REPORT_NONE ? 0 : r->iterations.at[c->iteration].n + 1;

		if (id == UINT32_MAX || column >= ITERATIONS) {
			if (bad++ < 3)
				diag("nothing was called %s", r->tensors.rows.at[c->tensor].name);
		} else
			add(&found[id * ITERATIONS + column], &c->sums);
	}
	for (size_t i = 0; i < truth.lives.n; i++) {
		const struct life *l = &truth.lives.at[order[i]];

		for (unsigned k = 0; k < ITERATIONS && (!i || l->id != truth.lives.at[order[i - 1]].id); k++) {
			const struct sums *f = &found[l->id * ITERATIONS + k], *w = &want[l->id * ITERATIONS + k];

			if (memcmp(f, w, sizeof *f) == 0)
				continue;
			if (bad++ < 5)
				diag("%s in %d, found and true: faults %d %d, demand %d %d, prefetch %d %d, evicted %d "
				     "%d",
				     l->name, (int)k - 1, (int)f->faults, (int)w->faults, (int)f->h2d[UM_CAUSE_DEMAND],
				     (int)w->h2d[UM_CAUSE_DEMAND], (int)f->h2d[UM_CAUSE_PREFETCH],
				     (int)w->h2d[UM_CAUSE_PREFETCH], (int)f->d2h[UM_CAUSE_EVICTION],
				     (int)w->d2h[UM_CAUSE_EVICTION]);
		}
	}
	if (truth.wrong || sums)
		diag("the device did not do what it told: %u; sums are not those of kernels: %u", truth.wrong, sums);
	free(order);
	free(want);
	free(found);
	return bad + sums + truth.wrong;
}
