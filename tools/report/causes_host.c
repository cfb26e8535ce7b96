/* SPDX-License-Identifier: Apache-2.0
 *
 * Activities of the program: allocations, CPU accesses, and hints.
 */
#include "report/causes_state.h"

#include <stdio.h>

/* --- hints -------------------------------------------------------------------------------------------------------- */

/* State of the pages of a hint. */
struct found {
	uint32_t blocks;
	uint64_t pages, there;
	int late; /* its op has faulted on some of its pages */
};

/* Prefetches resident pages again: their uses count from now on. */
static void prefetch_again(struct um_causes *c, struct um_page_block *b, uint32_t pages, int64_t now)
{
	if (now >= c->busy_until)
		um_causes_settle_block(b, 0);
	pages &= b->on;
	b->asked |= pages;
	b->used &= ~pages;
	b->use &= ~pages;
	b->written |= b->use_write & pages;
	b->extra &= ~pages;
	b->foreign &= ~pages;
}

static int look_at(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a, struct found *f)
{
	struct um_cause_part part;
	uint64_t last = UINT64_MAX;

	*f = (struct found){0};
	for (uint64_t done = 0; done < a->bytes; done += part.bytes) {
		struct um_page_block *b;
		int err = um_causes_part(c, site, a->address + done, a->bytes - done, &part);

		if (err)
			return err;
		b = part.block;
		if (!b)
			continue;
		f->blocks += b->number != last;
		last = b->number;
		if (a->hint == UM_HINT_PREFETCH)
			prefetch_again(c, b, part.pages, a->begin);
		if (a->hint == UM_HINT_EVICT && !((b->on | b->use | b->fault_pages) & ~part.pages))
			um_causes_not_resident(c, b); /* an eviction without a copy is not recorded */
		f->pages += (uint64_t)__builtin_popcount(part.pages);
		f->there += (uint64_t)__builtin_popcount(part.pages & (b->on | b->use | b->fault_pages));
		if (a->hint == UM_HINT_PREFETCH && b->fault_pages & part.pages && a->op != UM_ACT_NO_OP &&
		    b->fault_op == a->op) {
			f->late = 1;
			if (um_causes_reclassify(c, b, UM_REASON_LATE))
				return -ENOMEM;
		}
	}
	return 0;
}

/* Each of its blocks records the outcome of the prefetch from now on. */
static int await(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a, uint32_t row,
		 uint32_t blocks)
{
	struct um_cause_part part;
	uint32_t open, lane = um_causes_lane_of(c, site->process);
	int err = um_hints_open(&c->hints, row, blocks, &open);

	for (uint64_t done = 0; done < a->bytes && !err; done += part.bytes) {
		struct um_page_block *b;

		err = um_causes_part(c, site, a->address + done, a->bytes - done, &part);
		b = err ? NULL : part.block;
		if (!b)
			continue;
		if (b->hint != open)
			um_causes_hint_end(c, b);
		b->hint = open;
		b->hint_pages |= part.pages;
		um_causes_resident(c, b, lane);
		b->dropped &= ~part.pages;
	}
	return err;
}

static int drop(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a)
{
	struct um_cause_part part;

	for (uint64_t done = 0; done < a->bytes; done += part.bytes) {
		int err = um_causes_part(c, site, a->address + done, a->bytes - done, &part);

		if (err)
			return err;
		if (!part.block)
			continue;
		part.block->on &= ~part.pages;
		part.block->use &= ~part.pages;
		part.block->fault_pages &= ~part.pages;
		part.block->evicted &= ~part.pages;
		part.block->wasted &= ~part.pages;
		part.block->dropped |= part.pages;
		um_causes_left(c, part.block);
	}
	return 0;
}

static int on_hint(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a)
{
	struct um_cause_row row = {.op = UM_CAUSES_NONE, .n = 1, .ns = (uint64_t)(a->end - a->begin)};
	uint64_t until = a->address + 1;
	struct um_hint_row *h;
	struct found f;
	uint32_t at;

	row.tensor = c->tensor_at(c->user, site->process, 0, a->address, &until);
	if (um_hints_row(&c->hints, a->hint, row.tensor, &at))
		return -ENOMEM;
	h = &c->hints.rows.at[at];
	h->issued++;
	h->bytes += a->bytes;
	if (a->error) {
		h->refused++;
		row.reason = UM_REASON_REFUSED;
		if (um_hints_refused(&c->hints, um_hint_word(a->hint), row.tensor, a->error))
			return -ENOMEM;
		return um_causes_add(c, site, row, NULL);
	}
	if (a->hint == UM_HINT_DISCARD)
		return drop(c, site, a);
	if (a->hint != UM_HINT_PREFETCH && a->hint != UM_HINT_EVICT)
		return 0;
	if (look_at(c, site, a, &f))
		return -ENOMEM;
	h = &c->hints.rows.at[at];
	if (f.late) {
		h->late++;
		return 0;
	}
	if (f.pages && a->hint == UM_HINT_PREFETCH && f.there == f.pages) {
		h->redundant++;
		row.reason = UM_REASON_REDUNDANT;
		row.bytes = a->bytes;
		c->call.process = site->process;
		c->call.begin = a->begin;
		return um_causes_add(c, site, row, &c->call.row);
	}
	return a->hint == UM_HINT_PREFETCH && f.blocks ? await(c, site, a, at, f.blocks) : 0;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void forget(struct um_causes *c, struct um_page_block *b, uint32_t pages)
{
	b->gpu &= ~pages;
	b->on &= ~pages;
	b->wasted &= ~pages;
	b->for_cpu &= ~pages;
	b->dragged &= ~pages;
	b->evicted &= ~pages;
	b->dropped &= ~pages;
	b->use &= ~pages;
	b->fault_pages &= ~pages;
	b->fresh &= ~pages;
	um_causes_left(c, b);
}

/* Visits the blocks of a range, or all known blocks if these are fewer. */
static void on_memory(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a)
{
	uint64_t end = a->bytes < UINT64_MAX - a->address ? a->address + a->bytes : UINT64_MAX, bytes;

	for (size_t i = 0; a->bytes / UM_PAGES_BLOCK > c->pages.blocks.n && i < c->pages.blocks.n; i++) {
		struct um_page_block *b = &c->pages.blocks.at[i];
		uint64_t from = b->number * UM_PAGES_BLOCK;

		if (b->process != site->process || from >= end || from + (UM_PAGES_BLOCK - 1) < a->address)
			continue;
		from = from > a->address ? from : a->address;
		forget(c, b, um_pages_mask(from, um_pages_in_block(from, end - from)));
	}
	if (a->bytes / UM_PAGES_BLOCK > c->pages.blocks.n)
		return;
	for (uint64_t done = 0; done < a->bytes; done += bytes) {
		struct um_page_block *b = um_pages_find(&c->pages, site->process, a->address + done);

		bytes = um_pages_in_block(a->address + done, a->bytes - done);
		if (b)
			forget(c, b, um_pages_mask(a->address + done, bytes));
	}
}

static int on_alloc(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a)
{
	uint64_t bytes;

	if (!a->managed)
		return 0;
	on_memory(c, site, a);
	if (a->kind == UM_ACT_FREE || site->iteration == UM_CAUSES_NONE)
		return 0;
	for (uint64_t done = 0; done < a->bytes; done += bytes) {
		struct um_page_block *b;

		bytes = um_pages_in_block(a->address + done, a->bytes - done);
		if (um_pages_at(&c->pages, site->process, a->address + done, &b))
			return -ENOMEM;
		if (!b)
			break;
		b->fresh |= um_pages_mask(a->address + done, bytes);
	}
	return 0;
}

/* The function's row; UM_CAUSES_NONE: unknown, or too many. */
static int caller_of(struct um_causes *c, const struct um_activity *a, uint32_t *out)
{
	char name[256], *copy;

	*out = UM_CAUSES_NONE;
	if (!a->name && !a->domain)
		return 0;
	snprintf(name, sizeof name, "%s%s%s", a->name ? a->name : "", a->name && a->domain ? " of " : "",
		 a->domain ? a->domain : "");
	for (size_t i = 0; i < c->callers.n; i++)
		if (strcmp(c->callers.at[i], name) == 0) {
			*out = (uint32_t)i;
			return 0;
		}
	if (c->callers.n >= UM_CAUSES_CALLERS)
		return 0;
	copy = strdup(name);
	if (!copy || um_vec_push(&c->callers, copy)) {
		free(copy);
		return -ENOMEM;
	}
	*out = (uint32_t)(c->callers.n - 1);
	return 0;
}

/* Only pages that were on the GPU count: before that the CPU initialises them. */
static int on_cpu_fault(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a)
{
	struct um_page_block *b = um_pages_find(&c->pages, site->process, a->address);
	struct um_cause_row row = {.reason = UM_REASON_CPU, .by_cpu = 1, .n = 1, .faults = a->faults};
	uint32_t page = um_pages_mask(a->address, 1);
	uint64_t until = a->address + 1;

	if (!b)
		return 0;
	row.tensor = c->tensor_at(c->user, site->process, 0, a->address, &until);
	b->cpu_tensor = row.tensor;
	if (!(page & (b->gpu | b->use | b->fault_pages)))
		return 0;
	if (b->iteration == site->iteration && b->trips[__builtin_ctz(page)])
		row.reason = UM_REASON_PING_PONG;
	if (caller_of(c, a, &row.op))
		return -ENOMEM;
	return um_causes_add(c, site, row, NULL);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* A hint that the library reports is not counted again as a call. */
static int on_call(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a)
{
	static const char *const hints[] = {"cudaMemPrefetch", "cuMemPrefetch",	 "cudaMemAdvise",
					    "cuMemAdvise",     "cudaMemDiscard", "cuMemDiscard"};
	struct um_cause_row row = {.reason = UM_REASON_REFUSED, .tensor = UM_CAUSES_NONE, .op = UM_CAUSES_NONE, .n = 1};
	int delays = um_hints_on_call(&c->hints, site->process, a);
	size_t i = 0;

	if (c->call.row != UM_CAUSES_NONE && c->call.process == site->process && c->call.begin == a->begin && delays) {
		c->rows.at[c->call.row].ns += c->hints.call_ns;
		c->call.row = UM_CAUSES_NONE;
	}
	if (!a->error || c->hints.rows.n)
		return 0;
	while (i < sizeof hints / sizeof *hints && strncmp(a->name, hints[i], strlen(hints[i])) != 0)
		i++;
	if (i == sizeof hints / sizeof *hints)
		return 0;
	if (um_hints_refused(&c->hints, a->name, UM_CAUSES_NONE, a->error))
		return -ENOMEM;
	return um_causes_add(c, site, row, NULL);
}

int um_causes_on_host(struct um_causes *c, uint32_t process, uint32_t iteration, const struct um_activity *a)
{
	const struct um_cause_site site = {.process = process,
					   .op = UM_CAUSES_NONE,
					   .iteration = iteration,
					   .lane = UM_CAUSES_NONE,
					   .op_id = UM_ACT_NO_OP};

	switch (a->kind) {
	case UM_ACT_ALLOC:
	case UM_ACT_FREE:
		return on_alloc(c, &site, a);
	case UM_ACT_OP:
		return um_declared_uses_on_op(&c->declared_uses, process, a);
	case UM_ACT_USE:
		um_declared_uses_on_use(&c->declared_uses, process, a);
		return 0;
	case UM_ACT_HINT:
		return on_hint(c, &site, a);
	case UM_ACT_CALL:
		return on_call(c, &site, a);
	case UM_ACT_CPU_FAULT:
		return on_cpu_fault(c, &site, a);
	default:
		return 0;
	}
}
