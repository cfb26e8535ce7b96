/* SPDX-License-Identifier: Apache-2.0
 *
 * Stalls without a fault: the device is idle between two kernels while a prefetch copies data for the second.
 *
 * A stall begins when the device is idle and the kernel is launched, and ends when the last of its pages is copied.
 * Each piece of it belongs to the arrival that ended it, so that pieces add up to the whole. For a kernel with
 * undeclared uses, a prefetch that ended right before it counts as its own.
 */
#include "report/causes_state.h"

#define ARRIVALS_MAX 16384u /* since the last kernel; beyond this number the first ones are dropped */
#define SOON_NS 25000 /* largest gap between a prefetch and the kernel that waited for it */
#define LANES_MAX 4096u
#define IDLES 256u

struct arrival {
	int64_t begin, end;
	uint64_t address, bytes;
	uint64_t idle_ns; /* idle time of the link so far */
};

/* A device of one process. */
struct um_cause_lane {
	uint32_t process;
	int64_t busy_until; /* kernels, and copies of the program */
	int64_t link_until; /* end of copies under way, in either direction */
	uint64_t idle_ns; /* idle time since the first copy */
	uint64_t capacity; /* blocks; 0: unknown */
	uint64_t blocks, most; /* resident blocks: now, and at most */
	struct idle {
		uint64_t ns, end_ns; /* idle_ns at its end */
		uint64_t blocks; /* most resident blocks until the end of the next one */
	} idle[IDLES]; /* the last ones, by number */
	uint64_t idles;
	int evicted; /* evictions by the driver since the last kernel began */
	uint64_t spent_ns; /* part of it that is already assigned to earlier stalls */
	UM_VEC(struct arrival) arrivals; /* of prefetches that end after the last kernel's begin */
	int64_t begun[UM_WAIT_KERNELS]; /* begins of the last kernels, by number */
	uint64_t kernels;
};

void um_causes_waits_fini(struct um_causes *c)
{
	for (size_t i = 0; i < c->lanes.n; i++)
		um_vec_fini(&c->lanes.at[i].arrivals);
	um_vec_fini(&c->lanes);
}

/* NULL: too many, or (with -ENOMEM) no memory. */
static int lane_of(struct um_causes *c, uint32_t process, uint32_t lane, struct um_cause_lane **out)
{
	const struct um_cause_lane fresh = {
		.process = UM_CAUSES_NONE, .busy_until = INT64_MIN, .link_until = INT64_MIN};

	*out = NULL;
	while (c->lanes.n <= lane && lane < LANES_MAX)
		if (um_vec_push(&c->lanes, fresh))
			return -ENOMEM;
	if (lane < LANES_MAX) {
		*out = &c->lanes.at[lane];
		c->lanes.at[lane].process = process;
	}
	return 0;
}

uint32_t um_causes_lane_of(const struct um_causes *c, uint32_t process)
{
	uint32_t lane = UM_CAUSES_NONE;

	for (uint32_t i = 0; i < c->lanes.n; i++) {
		if (c->lanes.at[i].process != process)
			continue;
		if (lane != UM_CAUSES_NONE)
			return UM_CAUSES_NONE;
		lane = i;
	}
	return lane;
}

uint64_t um_causes_link_idle(const struct um_causes *c, uint32_t lane)
{
	return lane < c->lanes.n ? c->lanes.at[lane].idle_ns : 0;
}

void um_causes_resident(struct um_causes *c, struct um_page_block *b, uint32_t lane)
{
	struct um_cause_lane *l;
	struct idle *last;

	if (b->lane == lane + 1 || lane >= c->lanes.n)
		return;
	um_causes_not_resident(c, b);
	l = &c->lanes.at[lane];
	last = &l->idle[(l->idles + IDLES - 1) % IDLES];
	b->lane = lane + 1;
	l->blocks++;
	l->most = l->blocks > l->most ? l->blocks : l->most;
	last->blocks = l->blocks > last->blocks ? l->blocks : last->blocks;
}

void um_causes_not_resident(struct um_causes *c, struct um_page_block *b)
{
	if (b->lane)
		c->lanes.at[b->lane - 1].blocks--;
	b->lane = 0;
}

static void on_link(struct um_cause_lane *l, const struct um_activity *a)
{
	if (l->link_until != INT64_MIN && a->begin > l->link_until) {
		uint64_t ns = (uint64_t)(a->begin - l->link_until);

		l->idle_ns += ns;
		l->idle[l->idles++ % IDLES] = (struct idle){ns, l->idle_ns, l->blocks};
	}
	l->link_until = a->end > l->link_until ? a->end : l->link_until;
}

int um_causes_on_copy(struct um_causes *c, uint32_t process, uint32_t lane, const struct um_activity *a)
{
	struct um_cause_lane *l;
	int err = lane_of(c, process, lane, &l);

	if (!l)
		return err;
	if (a->kind == UM_ACT_COPY && a->dir != UM_DIR_D2D)
		on_link(l, a);
	l->busy_until = a->end > l->busy_until ? a->end : l->busy_until;
	return 0;
}

int um_causes_wait_moved(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a)
{
	struct um_cause_lane *l;
	int err = lane_of(c, site->process, site->lane, &l);

	if (!l)
		return err;
	for (size_t i = 0; c->capture && !l->capacity && i < c->capture->devices.n; i++)
		if (c->capture->devices.at[i].device == a->device)
			l->capacity = c->capture->devices.at[i].memory_bytes / UM_PAGES_BLOCK;
	on_link(l, a);
	l->evicted |= a->dir == UM_DIR_D2H && a->cause == UM_CAUSE_EVICTION;
	if (a->dir != UM_DIR_H2D || a->cause != UM_CAUSE_PREFETCH || !a->bytes)
		return 0;
	if (l->arrivals.n >= ARRIVALS_MAX) {
		l->arrivals.n /= 2;
		memmove(l->arrivals.at, l->arrivals.at + l->arrivals.n, l->arrivals.n * sizeof *l->arrivals.at);
	}
	return um_vec_push(&l->arrivals, ((struct arrival){a->begin, a->end, a->address, a->bytes, l->idle_ns}));
}

/* --- a kernel begins ---------------------------------------------------------------------------------------------- */

static int uses(const struct um_causes *c, const struct um_cause_site *site, const struct arrival *a)
{
	uint64_t first = 0;
	uint32_t n = um_declared_uses_of(&c->declared_uses, site->process, site->op_id, &first);

	for (uint32_t i = 0; i < n; i++) {
		const struct um_declared_use *u = um_declared_uses_at(&c->declared_uses, first + i);

		if (u->address < a->address + a->bytes && a->address < u->address + u->bytes)
			return 1;
	}
	return !n;
}

static int earlier(const void *x, const void *y)
{
	const struct arrival *a = x, *b = y;

	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* Number of kernels before this one that begin after `t`. */
static uint32_t kernels_after(const struct um_cause_lane *l, int64_t t)
{
	uint32_t n = 0;

	while (n < UM_WAIT_KERNELS && n < l->kernels && l->begun[(l->kernels - 1 - n) % UM_WAIT_KERNELS] > t)
		n++;
	return n;
}

/* The part of `ns` that fits into the link's idle time between `since` and `to`, with memory for so many more blocks
 * from then on. Blocks that the driver evicts meanwhile could have been evicted before. */
static uint64_t spare(const struct um_cause_lane *l, uint64_t blocks, uint64_t since, uint64_t to, uint64_t ns)
{
	uint64_t capacity = l->capacity ? l->capacity : l->most, most = 0, got = 0;

	for (uint64_t i = 0; i < l->idles && i < IDLES && got < ns; i++) {
		const struct idle *k = &l->idle[(l->idles - 1 - i) % IDLES];
		uint64_t begin = k->end_ns - k->ns;
		/* Time when the last of them is complete. */
		uint64_t level = i ? k->blocks : k->blocks - (k->blocks < blocks ? k->blocks : blocks);

		most = level > most ? level : most;
		if ((most + blocks > capacity && !l->evicted) || k->end_ns <= since)
			break;
		begin = begin > since ? begin : since;
		got += k->end_ns <= to ? k->end_ns - begin : 0;
	}
	return got < ns ? got : ns;
}

/* Counts a stall for this arrival, and the part that an earlier prefetch would avoid. */
static int waited(struct um_causes *c, const struct um_cause_site *site, const struct um_cause_lane *l,
		  const struct arrival *a, uint64_t ns, uint64_t spare_ns, int full)
{
	struct um_cause_row row = {.reason = UM_REASON_WAITED,
				   .op = site->op,
				   .n = 1,
				   .bytes = a->bytes,
				   .ns = ns,
				   .spare_ns = spare_ns,
				   .full = full,
				   .earlier = kernels_after(l, a->begin - (int64_t)ns) + 1};
	uint64_t until = a->address + a->bytes;

	row.tensor = c->tensor_at(c->user, site->process, 1, a->address, &until);
	return um_causes_add(c, site, row, NULL);
}

/* Counts the first arrivals between `from` and the kernel's begin. */
static int count_waits(struct um_causes *c, const struct um_cause_site *site, struct um_cause_lane *l, size_t over,
		       int64_t from, int64_t begin, uint64_t *ns)
{
	struct arrival *at = l->arrivals.at;
	uint64_t blocks = 0, given = 0;
	size_t n = 0;

	for (size_t i = 0; i < over; i++)
		if (at[i].end > from && uses(c, site, &at[i]))
			at[n++] = at[i];
	qsort(at, n, sizeof *at, earlier);
	if (!n || (!site->known && begin - at[n - 1].end > SOON_NS))
		return 0;
	c->guessed |= !site->known;
	for (size_t i = 0; i < n; i++) {
		const struct um_page_block *b = um_pages_find(&c->pages, site->process, at[i].address);
		uint64_t since = b && b->left_idle > l->spent_ns ? b->left_idle : l->spent_ns, could;

		*ns += (uint64_t)(at[i].end - from);
		blocks += (at[i].bytes + UM_PAGES_BLOCK - 1) / UM_PAGES_BLOCK;
		could = spare(l, blocks, since, at[i].idle_ns, *ns);
		could = could > given ? could - given : 0;
		given += could;
		if (waited(c, site, l, &at[i], (uint64_t)(at[i].end - from), could, l->evicted))
			return -ENOMEM;
		from = at[i].end;
	}
	l->spent_ns = at[n - 1].idle_ns;
	return 0;
}

int um_causes_waits(struct um_causes *c, const struct um_cause_site *site, const struct um_kernel_span *span,
		    uint64_t *ns)
{
	struct um_cause_lane *l;
	int64_t from;
	size_t over = 0;
	int err = lane_of(c, site->process, site->lane, &l);

	*ns = 0;
	if (!l)
		return err;
	from = l->busy_until > span->launched ? l->busy_until : span->launched;
	for (size_t i = 0; i < l->arrivals.n; i++) {
		struct arrival a = l->arrivals.at[i];

		if (a.end > span->begin)
			continue;
		l->arrivals.at[i] = l->arrivals.at[over];
		l->arrivals.at[over++] = a;
	}
	if (from != INT64_MIN && from < span->begin && over)
		err = count_waits(c, site, l, over, from, span->begin, ns);
	l->arrivals.n -= over;
	if (l->arrivals.n)
		memmove(l->arrivals.at, l->arrivals.at + over, l->arrivals.n * sizeof *l->arrivals.at);
	l->evicted = 0;
	l->begun[l->kernels++ % UM_WAIT_KERNELS] = span->begin;
	l->busy_until = span->end > l->busy_until ? span->end : l->busy_until;
	return err;
}
