/* SPDX-License-Identifier: Apache-2.0
 *
 * Activities of a device: kernels that use pages, their faults, and the migrations that follow.
 *
 * A faulting page without a migration was populated on the device: it counts as resident from the next kernel on.
 * Reasons are given in the order in which a later one would hide an earlier one.
 */
#include "report/causes_state.h"

static void new_iteration(struct um_page_block *b, uint32_t iteration)
{
	if (b->iteration == iteration || iteration == UM_CAUSES_NONE) /* between kernels: assigned to the last one */
		return;
	b->iteration = iteration;
	memset(b->trips, 0, sizeof b->trips);
}

static unsigned trips(const struct um_page_block *b, uint32_t pages)
{
	unsigned most = 0;

	for (; pages; pages &= pages - 1)
		if (b->trips[__builtin_ctz(pages)] > most)
			most = b->trips[__builtin_ctz(pages)];
	return most;
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* Written back and now overwritten, without a read. */
static int dead(struct um_causes *c, const struct um_cause_site *site, const struct um_cause_part *part)
{
	uint32_t pages = part->pages & part->block->evicted;

	if (!pages)
		return 0;
	return um_causes_add(c, site,
			     (struct um_cause_row){.reason = UM_REASON_DEAD,
						   .tensor = part->tensor,
						   .op = site->op,
						   .n = 1,
						   .bytes = um_causes_bytes_on(part, pages)},
			     NULL);
}

static int use(struct um_causes *c, const struct um_cause_site *site, const struct um_declared_use *u)
{
	struct um_cause_part part;
	int writes = u->access == UM_ACCESS_WRITE || u->access == UM_ACCESS_UPDATE || u->access == UM_ACCESS_ATOMIC;

	for (uint64_t done = 0; done < u->bytes; done += part.bytes) {
		struct um_page_block *b;
		int err = um_causes_part(c, site, u->address + done, u->bytes - done, &part);

		if (err)
			return err;
		b = part.block;
		if (!b)
			continue;
		um_causes_settle_block(b, site->kernel);
		if (u->access == UM_ACCESS_WRITE && b->evicted & part.pages && dead(c, site, &part))
			return -ENOMEM;
		b->evicted &= ~part.pages;
		b->use_kernel = site->kernel;
		b->use |= part.pages;
		b->use_write |= writes ? part.pages : 0;
		b->gpu |= part.pages;
		um_causes_resident(c, b, site->lane);
		b->used |= part.pages & b->on;
		b->written |= writes ? part.pages & b->on : 0;
		if (b->hint != UM_PAGES_NONE && b->hint_pages & part.pages) {
			struct um_hint_open *o = &c->hints.open.at[b->hint];

			o->kernel = o->used ? o->kernel : site->kernel;
			o->used = 1;
		}
	}
	return 0;
}

int um_causes_on_kernel(struct um_causes *c, struct um_cause_site *site, const struct um_kernel_span *span,
			uint64_t *waited_ns)
{
	uint64_t first = 0;
	uint32_t n = um_declared_uses_of(&c->declared_uses, site->process, site->op_id, &first);

	c->busy_until = span->end > c->busy_until ? span->end : c->busy_until;
	site->kernel = ++c->kernels;
	site->known = n > 0;
	if (!n)
		c->undeclared = site->kernel;
	if (um_causes_waits(c, site, span, waited_ns))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (use(c, site, um_declared_uses_at(&c->declared_uses, first + i)))
			return -ENOMEM;
	return 0;
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

/* Why a kernel faults on this page. */
static enum um_reason reason_of(const struct um_page_block *b, uint32_t page, const struct um_cause_site *site,
				const struct um_activity *fault)
{
	int writes = fault && (fault->access == UM_ACCESS_WRITE || fault->access == UM_ACCESS_ATOMIC);

	if (fault && page & b->on && b->came_ns > fault->begin)
		return b->asked & page ? UM_REASON_LATE : UM_REASON_DEMAND;
	if (b->dropped & page)
		return UM_REASON_DISCARDED;
	if (fault && page & b->on && writes && b->came_kernel < site->kernel)
		return UM_REASON_COLLAPSE;
	if (b->wasted & page)
		return UM_REASON_EARLY;
	if (b->dragged & page)
		return UM_REASON_SHARED;
	if (b->for_cpu & page)
		return trips(b, page) > 1 ? UM_REASON_PING_PONG : UM_REASON_CPU;
	if (b->fresh & page)
		return UM_REASON_FRESH;
	if (b->hint != UM_PAGES_NONE && b->hint_pages & page)
		return UM_REASON_LATE;
	return UM_REASON_DEMAND;
}

/* Records the cost of a kernel's faults, so that it can be moved to another reason. */
static int count_fault(struct um_causes *c, const struct um_cause_site *site, struct um_page_block *b,
		       struct um_cause_row row)
{
	uint32_t at;
	int err = um_causes_add(c, site, row, &at);

	if (err || at == UM_CAUSES_NONE)
		return err;
	if (at != b->fault_row) {
		b->fault_row = at;
		b->fault_n = b->fault_faults = b->fault_ns = b->fault_bytes = 0;
	}
	b->fault_n += row.n;
	b->fault_faults += row.faults;
	b->fault_ns += row.ns;
	b->fault_bytes += row.bytes;
	return 0;
}

int um_causes_on_fault(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a, uint64_t ns)
{
	struct um_cause_part part;
	struct um_cause_row row = {.op = site->op, .n = 1, .faults = a->faults, .ns = ns};
	int err = um_causes_part(c, site, a->address, 1, &part);
	struct um_page_block *b = part.block;

	if (err)
		return err;
	c->saw_faults = 1;
	row.tensor = part.tensor;
	row.reason = UM_REASON_DEMAND;
	if (!b)
		return um_causes_add(c, site, row, NULL);
	um_causes_settle_block(b, site->kernel);
	new_iteration(b, site->iteration);
	row.reason = reason_of(b, part.pages, site, a);
	if (row.reason == UM_REASON_LATE)
		um_causes_hint_late(c, b, part.pages, site->kernel);
	if (row.reason == UM_REASON_SHARED && part.tensor < c->neighbour.n && b->cpu_tensor != UM_PAGES_NONE)
		c->neighbour.at[part.tensor] = b->cpu_tensor;
	um_causes_resident(c, b, site->lane);
	b->fault_kernel = site->kernel;
	b->fault_op = site->op_id;
	b->fault_pages |= part.pages;
	b->fault_tensor = part.tensor;
	if (a->access != UM_ACCESS_READ) /* also the others of its group */
		b->written |= site->known ? part.pages & b->use_write : UINT32_MAX;
	return count_fault(c, site, b, row);
}

/* --- migrations --------------------------------------------------------------------------------------------------- */

static int count(struct um_causes *c, const struct um_cause_site *site, const struct um_cause_part *part,
		 uint32_t pages, enum um_reason reason, uint64_t ns)
{
	struct um_cause_row row = {.reason = reason,
				   .tensor = part->tensor,
				   .op = site->op,
				   .n = 1,
				   .bytes = um_causes_bytes_on(part, pages),
				   .ns = ns};

	if (!row.bytes)
		return 0;
	if (part->block && site->kernel && part->block->fault_kernel == site->kernel && reason >= UM_REASON_DEMAND &&
	    reason <= UM_REASON_SHARED)
		return count_fault(c, site, part->block, row);
	return um_causes_add(c, site, row, NULL);
}

/* Why this page of a fault's copy is copied. The first one may be the rest of a page. */
static enum um_reason demand_of(const struct um_cause_part *part, uint32_t page, const struct um_cause_site *site)
{
	const struct um_page_block *b = part->block;

	if (page & b->on && page == um_pages_mask(part->address, 1) && part->address == b->came_until)
		return (enum um_reason)b->came_reason;
	return reason_of(b, page, site, NULL);
}

/* Counts pages by the reason of their faults. */
static int count_demand(struct um_causes *c, const struct um_cause_site *site, const struct um_cause_part *part,
			const struct um_activity *a)
{
	double copy = site->kernel && !c->saw_faults && a->bytes ? (double)(a->end - a->begin) / (double)a->bytes : 0;
	uint32_t rest = part->pages, last = um_pages_mask(part->address + part->bytes - 1, 1);
	enum um_reason of_last = demand_of(part, last, site);

	while (rest) {
		enum um_reason reason = demand_of(part, rest & -rest, site);
		uint32_t alike = 0;

		for (uint32_t p = rest; p; p &= p - 1)
			if (demand_of(part, p & -p, site) == reason)
				alike |= p & -p;
		if (count(c, site, part, alike, reason, (uint64_t)(copy * (double)um_causes_bytes_on(part, alike))))
			return -ENOMEM;
		rest &= ~alike;
	}
	part->block->came_reason = of_last;
	return 0;
}

static void arrived(struct um_causes *c, struct um_page_block *b, uint32_t pages, const struct um_cause_site *site,
		    const struct um_activity *a)
{
	int on_demand = a->cause != UM_CAUSE_PREFETCH, uses = site->known && b->use_kernel == site->kernel;
	uint32_t came = pages & ~b->on, mine = uses ? b->use : 0;

	b->wasted &= ~came;
	b->for_cpu &= ~came;
	b->dragged &= ~came;
	b->fresh &= ~came;
	b->dropped &= ~came;
	b->asked = on_demand ? b->asked & ~came : b->asked | came;
	b->extra = (b->extra & ~came) | (on_demand && site->known ? came & ~mine : 0);
	b->foreign = (b->foreign & ~came) | (on_demand && site->known && !mine ? came : 0);
	b->used = (b->used & ~came) | (came & mine);
	b->written = (b->written & ~came) | (uses ? came & b->use_write : 0);
	b->on |= pages;
	b->gpu |= pages;
	um_causes_resident(c, b, site->lane);
	b->came_begin_ns = a->begin;
	b->came_ns = a->end;
	b->came_until = a->address + a->bytes;
	b->came_kernel = c->kernels;
	b->came_idle = !site->kernel;
}

static int come(struct um_causes *c, const struct um_cause_site *site, struct um_cause_part *part,
		const struct um_activity *a)
{
	struct um_page_block *b = part->block;
	uint32_t early;
	int err = 0;

	um_causes_settle_block(b, site->kernel);
	new_iteration(b, site->iteration);
	if (b->fault_kernel == site->kernel && b->fault_row != UM_PAGES_NONE &&
	    c->rows.at[b->fault_row].reason == UM_REASON_COLLAPSE && part->pages & b->fault_pages) {
		b->on &= ~part->pages; /* it was evicted without a copy */
		err = um_causes_reclassify(c, b, UM_REASON_DEMAND);
	}
	if (err) {
		return err;
	} else if (a->cause != UM_CAUSE_PREFETCH) {
		err = count_demand(c, site, part, a);
	} else if (site->kernel && b->fault_kernel == site->kernel) {
		err = um_causes_reclassify(c, b, UM_REASON_LATE);
		um_causes_hint_late(c, b, b->hint_pages, site->kernel);
		err = err ? err : count(c, site, part, part->pages, UM_REASON_LATE, 0);
	} else {
		early = part->pages & b->wasted;
		err = count(c, site, part, early, UM_REASON_EARLY, 0);
		err = err ? err : count(c, site, part, part->pages & ~early, UM_REASON_PREFETCH, 0);
	}
	arrived(c, b, part->pages, site, a);
	return err;
}

static int neighbour_set(struct um_causes *c, uint32_t tensor, uint32_t of)
{
	if (tensor == UM_CAUSES_NONE || of == UM_CAUSES_NONE)
		return 0;
	while (c->neighbour.n <= tensor)
		if (um_vec_push(&c->neighbour, UM_CAUSES_NONE))
			return -ENOMEM;
	c->neighbour.at[tensor] = of;
	return 0;
}

/* Reason of a write-back by the driver. */
static int evict(struct um_causes *c, const struct um_cause_site *site, struct um_cause_part *part, uint64_t ns)
{
	struct um_page_block *b = part->block;
	int exact = !c->undeclared || (b->came_idle && b->came_kernel == c->kernels);
	uint32_t idle = exact ? part->pages & b->on & ~b->used : 0;
	uint32_t foreign = idle & b->foreign, over = idle & b->extra & ~foreign;
	uint32_t clean = part->pages & b->on & ~b->written & ~foreign & ~over;
	uint32_t rest;
	int err;

	if (!exact) {
		clean &= ~b->asked;
		c->doubtful |= clean != 0;
	}
	b->wasted |= idle & b->asked;
	if (idle & b->asked)
		um_causes_hint_early(c, b, idle & b->asked);
	rest = part->pages & ~foreign & ~over & ~clean;
	if (site->serving)
		b->evicted |= rest;
	err = neighbour_set(c, foreign ? part->tensor : UM_CAUSES_NONE, b->fault_tensor);
	err = err ? err : count(c, site, part, foreign, UM_REASON_SHARED, site->serving ? ns : 0);
	err = err ? err : count(c, site, part, over, UM_REASON_OVERSHOOT, site->serving ? ns : 0);
	err = err ? err : count(c, site, part, clean, UM_REASON_CLEAN, site->serving ? ns : 0);
	return err ? err : count(c, site, part, rest, UM_REASON_EVICTION, site->serving ? ns : 0);
}

/* Migrated by the CPU, which accessed this tensor or another one in its block. */
static int taken(struct um_causes *c, const struct um_cause_site *site, struct um_cause_part *part, uint64_t ns)
{
	struct um_page_block *b = part->block;

	if (b->cpu_tensor != UM_PAGES_NONE && b->cpu_tensor != part->tensor) {
		b->dragged |= part->pages;
		if (neighbour_set(c, part->tensor, b->cpu_tensor))
			return -ENOMEM;
		return count(c, site, part, part->pages, UM_REASON_SHARED, ns);
	}
	for (uint32_t p = part->pages & ~b->for_cpu; p; p &= p - 1) /* a page may leave in parts */
		b->trips[__builtin_ctz(p)] += b->trips[__builtin_ctz(p)] < UINT8_MAX;
	b->for_cpu |= part->pages;
	return count(c, site, part, part->pages, trips(b, part->pages) > 1 ? UM_REASON_PING_PONG : UM_REASON_CPU, ns);
}

static int go(struct um_causes *c, const struct um_cause_site *site, struct um_cause_part *part,
	      const struct um_activity *a)
{
	struct um_page_block *b = part->block;
	uint64_t ns = (uint64_t)(a->end - a->begin);
	int err;

	um_causes_settle_block(b, site->kernel);
	new_iteration(b, site->iteration);
	/* A row may have more pages than this part: its time is divided by bytes. */
	ns = a->bytes ? (uint64_t)((double)ns * ((double)part->bytes / (double)a->bytes)) : 0;
	if (a->cause == UM_CAUSE_PREFETCH) {
		b->wasted |= !c->undeclared ? part->pages & b->on & b->asked & ~b->used : 0;
		err = count(c, site, part, part->pages, UM_REASON_SENT, 0);
	} else if (a->cause == UM_CAUSE_EVICTION) {
		err = evict(c, site, part, ns);
	} else {
		err = taken(c, site, part, ns);
	}
	b->hint_pages &= ~(part->pages & b->on); /* it had migrated them */
	if (!b->hint_pages)
		um_causes_hint_end(c, b);
	b->on &= ~part->pages;
	b->use &= ~part->pages;
	b->fault_pages &= ~part->pages;
	um_causes_left(c, b);
	b->left_idle = um_causes_link_idle(c, site->lane);
	return err;
}

int um_causes_on_migration(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a)
{
	struct um_cause_part part;

	if (um_causes_wait_moved(c, site, a))
		return -ENOMEM;
	for (uint64_t done = 0; done < a->bytes; done += part.bytes) {
		int err = um_causes_part(c, site, a->address + done, a->bytes - done, &part);

		if (!err && !part.block)
			err = count(c, site, &part, part.pages,
				    a->dir == UM_DIR_D2H ? UM_REASON_EVICTION : UM_REASON_DEMAND, 0);
		else if (!err && a->dir == UM_DIR_D2H)
			err = go(c, site, &part, a);
		else if (!err)
			err = come(c, site, &part, a);
		if (err)
			return err;
	}
	return 0;
}
