/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.c - execution of a kernel on the simulated GPU
 *
 * A kernel walks its operands in ascending order, all of them at the same fraction of their length at a time. Mapped
 * pages cost nothing. Others are gathered into groups of p blocks; a batch of faults visits each block of the group
 * once, until all of them are usable; then the walk continues. At its end the kernel computes. Each batch is one event,
 * so that concurrent activity is seen. A page is needed once, at its turn: a later eviction does not affect the kernel.
 * Where all threads run at once (wide), the turn of a mapped page is the begin of the kernel.
 */
#include "sim/check.h"
#include "sim/state.h"

#include "base/hash.h"

#define GROUP_MAX 8

/* Fitted to published times: bench/published.c. */
static const struct pattern {
	unsigned pages; /* faulting 64 KiB pages per visit, ascending: 8 make 3 visits by the density rule, 2 make 5 */
	unsigned blocks; /* per batch */
	int at_once; /* its threads use all operands from its begin on: those that find their page go on */
} pattern[] = {
	[UM_PATTERN_LIBRARY] = {8, 3, 0},
	[UM_PATTERN_NARROW] = {1, 1, 0},
	[UM_PATTERN_WIDE] = {2, 3, 1},
	[UM_PATTERN_ONE_BATCH] = {17, 8, 0},
};

/* One operand of the walk. */
struct operand {
	const struct um_sim_mem *mem; /* NULL: not managed */
	uint64_t off, bytes;
	uint64_t pages, touched; /* in the range; of them, actually touched */
	uint64_t rows; /* bytes that are touched on all of its pages; 0: all */
	uint32_t first, n; /* blocks */
	uint32_t at; /* blocks passed, of n */
	uint32_t access;
};

/* A block that is being made usable. */
struct member {
	struct um_sim_block *block;
	uint32_t want, write; /* pages still needed; of them, to be written */
	uint32_t faulted, written; /* faulted in this batch; of them, by a write */
	uint32_t throttled; /* faulted, too, and not served */
	uint32_t each; /* of them, pages whose 4 KiB pages fault one by one */
	unsigned entries; /* of it */
	uint32_t operand[UM_SIM_PAGES]; /* the operand that needs the page; not filled without a watcher */
};

struct um_sim_walk {
	char *name;
	uint64_t ns;
	void (*fn)(void *arg);
	void *arg;
	void (*stray)(void *arg, const struct um_sim_stray *s);
	struct um_sim_xfer *xfer; /* a copy or a fill instead of a kernel; owned */
	uint64_t correlation; /* of the call that enqueued it; 0: no watcher */
	uint64_t begun; /* ns */
	const struct pattern *pattern;
	uint64_t remote; /* bytes read over the link so far */
	unsigned n_group;
	struct member group[GROUP_MAX];
	uint32_t n;
	struct operand operand[];
};

/* One allocation, so that launching can fail in one place only. */
struct um_sim_walk *um_sim_walk_new(const struct um_sim_kernel *k)
{
	struct um_sim_walk *w = calloc(1, sizeof *w + k->n_access * sizeof w->operand[0]);

	if (!w)
		return NULL;
	if (k->name) {
		w->name = strdup(k->name);
		if (!w->name) {
			free(w);
			return NULL;
		}
	}
	w->ns = k->ns;
	w->fn = k->fn;
	w->arg = k->arg;
	w->stray = k->stray;
	w->pattern = &pattern[(unsigned)k->pattern <= UM_PATTERN_ONE_BATCH ? k->pattern : UM_PATTERN_LIBRARY];
	w->n = k->n_access;
	for (uint32_t i = 0; i < k->n_access; i++) {
		w->operand[i].off = (uint64_t)(uintptr_t)k->access[i].ptr; /* an address until the kernel begins */
		w->operand[i].bytes = k->access[i].bytes;
		w->operand[i].touched = k->access[i].touched;
		w->operand[i].access = k->access[i].access;
	}
	return w;
}

void um_sim_walk_free(struct um_sim_walk *w)
{
	if (w) {
		free(w->name);
		free(w->xfer);
	}
	free(w);
}

void um_sim_walk_xfer(struct um_sim_walk *w, struct um_sim_xfer *x)
{
	w->xfer = x;
}

void um_sim_walk_called(struct um_sim_walk *w, uint64_t correlation)
{
	w->correlation = correlation;
}

void um_sim_walk_forget(struct um_sim_walk *w, const struct um_sim_mem *m)
{
	unsigned left = 0;

	for (uint32_t i = 0; i < w->n; i++)
		if (w->operand[i].mem == m)
			w->operand[i].mem = NULL;
	for (unsigned i = 0; i < w->n_group; i++)
		if (w->group[i].block->mem != m)
			w->group[left++] = w->group[i];
	w->n_group = left;
}

/* Resolves addresses to allocations. */
static void resolve(struct um_sim *sim, struct um_sim_walk *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct operand *l = &w->operand[i];
		const struct um_sim_mem *m = um_sim_mem_find(sim, l->off);
		uint64_t last;

		if (!m || m->kind != UM_SIM_MANAGED || !l->bytes)
			continue;
		l->mem = m;
		l->off -= m->addr;
		if (l->bytes > m->bytes - l->off)
			l->bytes = m->bytes - l->off;
		last = l->off + l->bytes - 1;
		l->first = (uint32_t)(l->off / UM_BLOCK_BYTES);
		l->n = (uint32_t)(last / UM_BLOCK_BYTES) - l->first + 1;
		l->pages = last / UM_SIM_PAGE - l->off / UM_SIM_PAGE + 1;
		l->rows = l->touched < l->bytes ? l->touched : 0;
		/* Scattered rows are assumed to be on 4 KiB pages of their own, evenly spread. */
		if (!l->touched || l->touched >= l->bytes || (l->touched + 4095) / 4096 >= l->pages)
			l->touched = l->pages;
		else
			l->touched = (l->touched + 4095) / 4096;
	}
}

/* Pages of the k-th block that the operand touches. */
static uint32_t operand_pages(const struct operand *l, uint32_t k)
{
	uint32_t in = um_sim_pages_out(l->mem, l->first + k, l->off, l->bytes), out = 0;
	uint64_t base = l->off / UM_SIM_PAGE, start = (uint64_t)(l->first + k) * UM_SIM_PAGES;

	if (l->touched == l->pages)
		return in;
	for (uint32_t rest = in; rest; rest &= rest - 1) {
		uint64_t page = start + (unsigned)__builtin_ctz(rest) - base;

		/* the j-th touched page is j * pages / touched: is this page one of them? */
		uint64_t j = (page * l->touched + l->pages - 1) / l->pages;

		if (j * l->pages / l->touched == page)
			out |= rest & -rest;
	}
	return out;
}

/* The next block of the operand that is not completely mapped; l->n if none. */
static uint32_t operand_next(const struct operand *l)
{
	uint32_t i = l->first + l->at, end = l->first + l->n;

	while (i < end) {
		uint64_t word = l->mem->odd[i / 64] >> (i % 64);

		if (word) {
			i += (uint32_t)__builtin_ctzll(word);
			return i < end ? i - l->first : l->n;
		}
		i = (i / 64 + 1) * 64;
	}
	return l->n;
}

/* The next block in the order of the walk that may need service; advances all operands up to it. NULL at the end.
 * Blocks that are mapped now may be evicted before their turn, so no operand advances further. */
static struct operand *next_block(struct um_sim_walk *w, uint32_t *k)
{
	struct operand *best = NULL;

	for (uint32_t i = 0; i < w->n; i++) {
		struct operand *l = &w->operand[i];
		uint32_t odd = l->mem ? operand_next(l) : l->n;

		if (odd < l->n && (!best || (uint64_t)odd * best->n < (uint64_t)*k * l->n)) {
			best = l;
			*k = odd;
		}
	}
	if (!best)
		return NULL;
	for (uint32_t i = 0; i < w->n; i++) {
		struct operand *l = &w->operand[i];
		uint64_t turn = (uint64_t)*k * l->n;

		/* The first block that is not before this fraction; at equal ones, earlier operands go first. */
		turn = turn / best->n + (turn % best->n != 0 || l <= best);
		if (l->at < turn)
			l->at = (uint32_t)(turn < l->n ? turn : l->n);
	}
	return best;
}

/* Bytes of the operand on `pages` of its k-th block. */
static uint64_t operand_bytes(const struct operand *l, uint32_t k, uint32_t pages)
{
	uint64_t start = (uint64_t)(l->first + k) * UM_BLOCK_BYTES, sum = 0;

	if (l->touched < l->pages)
		return (uint64_t)um_sim_count(pages) * 4096;
	for (; pages; pages &= pages - 1) {
		uint64_t from = start + (unsigned)__builtin_ctz(pages) * (uint64_t)UM_SIM_PAGE, to = from + UM_SIM_PAGE;

		from = um_sim_later(from, l->off);
		to = to < l->off + l->bytes ? to : l->off + l->bytes;
		sum += to - from;
	}
	/* over the link only the rows themselves are read and written */
	return l->rows ? (uint64_t)((double)sum * (double)l->rows / (double)l->bytes) : sum;
}

/* Records the operand of each faulting page for the watcher. */
static void set_operand(struct member *m, uint32_t pages, uint32_t operand)
{
	for (; pages; pages &= pages - 1)
		m->operand[__builtin_ctz(pages)] = operand;
}

/* Fills the group with the next blocks that need service. A block that is in the group already ends it. */
static void gather(struct um_sim_walk *w, uint64_t t, int watched)
{
	struct operand *l;
	uint32_t k;

	while (w->n_group < w->pattern->blocks && (l = next_block(w, &k))) {
		struct um_sim_block *b = &l->mem->block[l->first + k];
		uint32_t want = operand_pages(l, k), write, i;

		if (w->pattern->at_once && b->evicted_at >= w->begun)
			want &= ~b->evicted;
		write = l->access & UM_WRITE ? want : 0;
		/* pages that become remote by a fault are counted then */
		w->remote += operand_bytes(l, k, want & (t >= b->remote_at ? b->remote : 0));
		for (i = 0; i < w->n_group && w->group[i].block != b; i++)
			;
		if (i < w->n_group) { /* two tensors in one block */
			if (watched)
				set_operand(&w->group[i], want & ~w->group[i].want, (uint32_t)(l - w->operand));
			w->group[i].want |= want;
			w->group[i].write |= write;
			continue;
		}
		um_sim_arrive(b, t);
		if (!um_sim_need(b, want, write, t) && !(want & b->late))
			continue;
		w->group[w->n_group].block = b;
		w->group[w->n_group].want = want;
		w->group[w->n_group].write = write;
		if (watched)
			set_operand(&w->group[w->n_group], want, (uint32_t)(l - w->operand));
		w->n_group++;
	}
}

/* Pages in flight: the GPU faults repeatedly, with nothing to serve, until they arrive. 0: they have. */
static uint64_t late_until(const struct member *m, uint64_t t)
{
	return m->want & m->block->late && m->block->late_until > t ? m->block->late_until : 0;
}

/* Attributes the wait to allocations by their shares of the faults, or evenly without faults. */
static void attribute_wait(struct um_sim *sim, const struct um_sim_walk *w, unsigned entries, uint64_t ns)
{
	for (unsigned i = 0; i < w->n_group; i++) {
		const struct member *m = &w->group[i];
		uint64_t share = entries ? ns / entries * m->entries : ns / w->n_group;

		um_sim_ledger_faulted(sim, m->block->mem, m->entries, share);
	}
}

/* Reports the faults to the watcher for the driver's time, throttled ones, too: the driver notifies its tools before it
 * throttles. A wait for pages in flight is not a fault. Each operand has groups of its own, at its own addresses, also
 * on a page shared with another tensor. */
static void watch(struct um_sim *sim, const struct um_sim_walk *w, uint64_t begin, uint64_t end)
{
	for (unsigned i = 0; i < w->n_group && um_sim_is_watched(sim); i++) {
		const struct member *m = &w->group[i];
		uint64_t start = (uint64_t)(m->block - m->block->mem->block) * UM_BLOCK_BYTES;

		for (uint32_t rest = m->faulted | m->throttled; rest;) {
			unsigned first = (unsigned)__builtin_ctz(rest), entries = 0;
			const struct operand *l = &w->operand[m->operand[first]];
			uint32_t written = 0;

			for (; rest && m->operand[__builtin_ctz(rest)] == m->operand[first]; rest &= rest - 1) {
				entries += m->each & rest & -rest ? UM_SIM_SUBPAGES : 1;
				written |= m->written & rest & -rest;
			}
			um_sim_watch_faults(sim, m->block->mem,
					    um_sim_later(start + first * (uint64_t)UM_SIM_PAGE, l->off), written != 0,
					    entries, begin, end);
		}
	}
}

static uint64_t block_addr(const struct um_sim_block *b)
{
	return b->mem->addr + (uint64_t)(b - b->mem->block) * UM_BLOCK_BYTES;
}

/* A hash in place of a kernel's name and arguments. */
static uint64_t identity(const struct um_sim_walk *w)
{
	uint64_t h = um_hash_str(w->name);

	for (uint32_t i = 0; i < w->n; i++)
		h = um_hash_fold(um_hash_fold(um_hash_fold(h, w->operand[i].off), w->operand[i].bytes),
				 w->operand[i].access);
	return um_hash_u64(h, w->n);
}

/* Fault entries that the next of `members` blocks may take of a batch: they share it evenly, and the next ones get what
 * one leaves. */
static unsigned batch_share(unsigned taken, unsigned members)
{
	unsigned room = UM_SIM_BATCH - taken, share = room / members;

	if (share < UM_SIM_SUBPAGES) /* at least one page, whatever its kind */
		share = UM_SIM_SUBPAGES;
	return share < room ? share : room;
}

/* Chooses the faults of a batch at time `t`. Members with nothing left to do drop out. `*delay`: when pages in flight
 * arrive, and throttled ones may be served. Returns the number of entries. */
static unsigned fetch(struct um_sim *sim, struct um_sim_walk *w, uint64_t t, uint64_t *delay)
{
	unsigned entries = 0, left = 0;

	*delay = 0;
	for (unsigned i = 0; i < w->n_group; i++) {
		struct member *m = &w->group[i];
		unsigned n = 0, share = batch_share(entries, w->n_group - i);
		uint32_t need = um_sim_need(m->block, m->want, m->write, t);
		uint64_t until = 0, late = late_until(m, t);

		m->faulted = um_sim_visit_pages(m->block, need, m->write, w->pattern->pages, share, &n, &m->each);
		m->written = m->faulted & m->write;
		m->throttled = um_sim_thrash_throttled(sim, m->block, m->faulted, 1, t, &until);
		m->faulted &= ~m->throttled;
		*delay = um_sim_later(*delay, um_sim_later(late, until));
		m->entries = n;
		entries += n;
		if (!need && !late)
			continue;
		if (m != &w->group[left])
			w->group[left] = *m;
		left++;
	}
	w->n_group = left;
	return entries;
}

/* Serves one batch of faults for the group; returns its end, 0 if no fault is left. */
static uint64_t batch(struct um_sim *sim, struct um_sim_walk *w, uint64_t t)
{
	uint64_t start = um_sim_later(um_sim_later(t, sim->fault_free), sim->writer_until), cpu = start, end, delay;
	unsigned entries = fetch(sim, w, start, &delay), left = w->n_group;

	if (!left)
		return 0;
	cpu += sim->profile.c_batch + sim->profile.c_fault * entries;
	end = cpu;
	sim->tally.batches++;
	sim->tally.faults += entries;
	um_sim_log(sim, start, "faults %u blocks %u", entries, left);
	for (unsigned i = 0; i < left; i++) {
		struct member *m = &w->group[i];
		struct um_sim_faulted f = {m->faulted, m->each};
		uint32_t before = m->block->remote;

		if (!m->faulted)
			continue;
		um_sim_log(sim, start, "fault m%u+%u %x %x", m->block->mem->serial,
			   (unsigned)(m->block - m->block->mem->block), m->faulted, m->faulted & m->each);
		if (sim->listener)
			sim->listener->fault(sim->listener->user, block_addr(m->block));
		if (um_sim_visit(sim, m->block, &f, m->written & m->faulted, &cpu)) {
			um_sim_log(sim, cpu, "fatal-fault m%u", m->block->mem->serial);
			sim->error = UM_CUDA_LAUNCH_FAILURE;
			watch(sim, w, start, cpu);
			w->n_group = 0;
			return cpu;
		}
		w->remote += (uint64_t)um_sim_count(m->block->remote & ~before & m->want) * UM_SIM_PAGE;
		/* ascending: pages below the highest fault have had their turn */
		m->want &= ~(UINT32_MAX >> __builtin_clz(m->faulted)) | m->throttled;
		m->write &= m->want;
		end = um_sim_later(end, m->block->tracker);
	}
	sim->readers_until = um_sim_later(sim->readers_until, cpu);
	end = um_sim_later(end, cpu);
	watch(sim, w, start, end);
	sim->fault_free = um_sim_later(sim->fault_free, end);
	end = um_sim_later(end, delay);
	attribute_wait(sim, w, entries, end - t);
	return end;
}

/* Runs the kernel's host code. Its ranges are addresses until it begins, and allocations from then on. */
static void run_host(struct um_sim *sim, const struct um_sim_walk *w)
{
	struct um_sim_check check = {.n = w->n, .stray = w->stray, .arg = w->arg};
	struct um_touch *touch = sim->check && w->stray ? calloc(w->n + 1, sizeof *touch) : NULL;

	sim->node->follow_ran = 1;
	for (uint32_t i = 0; i < w->n && touch; i++) {
		const struct operand *l = &w->operand[i];

		touch[i].ptr = (void *)(uintptr_t)(l->off + (l->mem ? l->mem->addr : 0));
		touch[i].bytes = l->bytes;
		touch[i].access = l->access;
	}
	check.touch = touch;
	if (touch)
		um_sim_check_run(sim, &check, w->fn);
	else
		w->fn(w->arg);
	free(touch);
	if (w->stray)
		w->stray(w->arg, NULL);
}

/* After the walk: computing, or remote accesses, whichever takes longer. */
static uint64_t compute(struct um_sim *sim, const struct um_sim_stream *s, struct um_sim_walk *w, uint64_t t)
{
	uint64_t remote_ns = 0, end;

	if (w->remote) {
		remote_ns = (uint64_t)((double)w->remote * 1e9 / (sim->profile.b_remote * sim->profile.h2d) + 0.5);
		sim->tally.remote_bytes += w->remote;
	}
	if (w->xfer) {
		end = um_sim_xfer_run(sim, w->xfer, t, remote_ns);
		um_sim_xfer_watch(sim, s, w->xfer, w->correlation, t, end);
		return end;
	}
	um_sim_log(sim, t, "kernel %s %llu", w->name ? w->name : "-", (unsigned long long)w->ns);
	if (w->fn)
		run_host(sim, w);
	end = t + um_sim_later(w->ns, remote_ns);
	um_sim_watch_kernel(sim, s, w->name ? w->name : "(unnamed)", w->correlation, w->begun, end);
	return end;
}

static uint64_t step(struct um_sim *sim, struct um_sim_stream *s, struct um_sim_cmd *c, uint64_t t, int *done)
{
	struct um_sim_walk *w = c->kernel;
	uint64_t end = 0;

	*done = 0;
	if (!c->running) {
		c->running = 1;
		w->begun = t;
		sim->tally.stall_ns += s->gate_ns;
		s->gate_ns = 0;
		if (sim->listener && !sim->opt.in_core)
			sim->listener->kernel(sim->listener->user, identity(w));
		if (!sim->opt.in_core && !sim->error)
			resolve(sim, w);
	}
	um_sim_thrash_expire(sim, t);
	do {
		if (!w->n_group && !sim->error)
			gather(w, t, um_sim_is_watched(sim));
		if (!w->n_group || sim->error) {
			*done = 1;
			return compute(sim, s, w, t);
		}
		end = batch(sim, w, t);
	} while (!end);
	sim->tally.stall_ns += end - t;
	return end;
}

uint64_t um_sim_walk_step(struct um_sim *sim, struct um_sim_stream *s, struct um_sim_cmd *c, uint64_t t, int *done)
{
	const struct um_sim_walk *w = c->kernel;
	struct um_sim_ledger_entry entry;
	uint64_t end, gate = s->gate_ns; /* time waited for a prefetch: stall, and part of the kernel's time */
	struct um_tally before;

	if (!sim->ledger)
		return step(sim, s, c, t, done);
	entry = (struct um_sim_ledger_entry){w->name ? w->name : "(unnamed)", !!w->xfer, !c->running, !!w->fn};
	before = sim->tally;
	end = step(sim, s, c, t, done);
	um_sim_ledger_step(sim, &entry, &before, end - t + gate);
	return end;
}
