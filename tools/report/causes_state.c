/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums and the state of blocks, on which the other causes*.c files build.
 */
#include "report/causes_state.h"

#include "base/hash.h"

#define PENDING_MAX 65536u

/* --- sums --------------------------------------------------------------------------------------------------------- */

struct key {
	const struct um_causes *c;
	const struct um_cause_row *row;
};

static int alike(const struct um_cause_row *a, const struct um_cause_row *b)
{
	return a->reason == b->reason && a->tensor == b->tensor && a->op == b->op && a->by_cpu == b->by_cpu &&
	       a->iteration == b->iteration;
}

static uint64_t hash_row(const struct um_cause_row *r)
{
	return um_hash_u64(um_hash_fold(um_hash_fold(r->reason, r->tensor), r->op), r->iteration);
}

static int same(const void *user, uint32_t row)
{
	const struct key *k = user;

	return alike(&k->c->rows.at[row], k->row);
}

static void sum(struct um_cause_row *to, const struct um_cause_row *row)
{
	to->n += row->n;
	to->bytes += row->bytes;
	to->faults += row->faults;
	to->ns += row->ns;
	to->spare_ns += row->spare_ns;
	to->earlier = row->earlier > to->earlier ? row->earlier : to->earlier;
	to->full |= row->full;
}

static int add(struct um_causes *c, struct um_cause_row row, uint32_t *at)
{
	struct um_cause_row fresh;
	struct key k = {c, &row};
	uint32_t found = c->last_row;

	if (found >= c->rows.n || !alike(&c->rows.at[found], &row))
		found = um_index_find(&c->row_index, hash_row(&row), same, &k);
	if (found == UM_INDEX_NONE && c->rows.n >= UM_CAUSES_ROWS) {
		row.op = row.iteration = UM_CAUSES_NONE;
		found = um_index_find(&c->row_index, hash_row(&row), same, &k);
	}
	if (found == UM_INDEX_NONE) {
		fresh = row;
		fresh.n = fresh.bytes = fresh.faults = fresh.ns = fresh.spare_ns = 0;
		found = (uint32_t)c->rows.n;
		if (um_vec_push(&c->rows, fresh))
			return -ENOMEM;
		if (um_index_add(&c->row_index, hash_row(&row), found)) {
			c->rows.n--;
			return -ENOMEM;
		}
	}
	sum(&c->rows.at[found], &row);
	c->last_row = found;
	if (at)
		*at = found;
	return 0;
}

int um_causes_add(struct um_causes *c, const struct um_cause_site *site, struct um_cause_row row, uint32_t *at)
{
	struct um_cause_pending p = {site->lane, row};

	row.iteration = site->iteration;
	if (at)
		*at = UM_CAUSES_NONE;
	if (site->kernel || site->lane == UM_CAUSES_NONE)
		return add(c, row, at);
	p.row.iteration = UM_CAUSES_NONE;
	for (size_t i = c->pending.n; i > 0 && i + 16 > c->pending.n; i--)
		if (c->pending.at[i - 1].lane == p.lane && alike(&c->pending.at[i - 1].row, &p.row)) {
			sum(&c->pending.at[i - 1].row, &row);
			return 0;
		}
	if (c->pending.n >= PENDING_MAX)
		return add(c, p.row, NULL);
	return um_vec_push(&c->pending, p);
}

int um_causes_settle(struct um_causes *c, uint32_t lane, uint32_t iteration)
{
	size_t left = 0;
	int err = 0;

	for (size_t i = 0; i < c->pending.n; i++) {
		struct um_cause_pending *p = &c->pending.at[i];

		if (p->lane != lane || err) {
			c->pending.at[left++] = *p;
			continue;
		}
		p->row.iteration = iteration;
		err = add(c, p->row, NULL);
	}
	c->pending.n = left;
	return err;
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

int um_causes_part(struct um_causes *c, const struct um_cause_site *site, uint64_t address, uint64_t bytes,
		   struct um_cause_part *out)
{
	int gpu = site->lane != UM_CAUSES_NONE;

	uint64_t until = address + bytes, in_block = um_pages_in_block(address, bytes);

	out->address = address;
	out->tensor = c->tensor_at(c->user, site->process, gpu, address, &until);
	out->bytes = until > address && until - address < in_block ? until - address : in_block;
	out->pages = um_pages_mask(address, out->bytes);
	return um_pages_at(&c->pages, site->process, address, &out->block);
}

uint64_t um_causes_bytes_on(const struct um_cause_part *part, uint32_t pages)
{
	uint64_t first = part->address % UM_PAGES_BLOCK, last = first + part->bytes, bytes = 0;

	pages &= part->pages;
	if (pages == part->pages)
		return part->bytes;
	for (; pages; pages &= pages - 1) {
		uint64_t from = (uint64_t)__builtin_ctz(pages) * UM_PAGES_PAGE, to = from + UM_PAGES_PAGE;

		bytes += (to < last ? to : last) - (from > first ? from : first);
	}
	return bytes;
}

int um_causes_reclassify(struct um_causes *c, struct um_page_block *b, enum um_reason reason)
{
	struct um_cause_row row, *was;
	int err;

	if (b->fault_row == UM_PAGES_NONE || c->rows.at[b->fault_row].reason == reason)
		return 0;
	was = &c->rows.at[b->fault_row];
	row = (struct um_cause_row){.reason = reason,
				    .tensor = was->tensor,
				    .op = was->op,
				    .iteration = was->iteration,
				    .n = b->fault_n,
				    .bytes = b->fault_bytes,
				    .faults = b->fault_faults,
				    .ns = b->fault_ns};
	was->n -= row.n;
	was->bytes -= row.bytes;
	was->faults -= row.faults;
	was->ns -= row.ns;
	err = add(c, row, &b->fault_row);
	return err;
}

int um_causes_settle_all(struct um_causes *c)
{
	int err = 0;

	for (size_t i = 0; i < c->pending.n && !err; i++)
		err = add(c, c->pending.at[i].row, NULL);
	c->pending.n = 0;
	return err;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

void um_causes_settle_block(struct um_page_block *b, uint64_t kernel)
{
	uint32_t mine = 0;

	if (b->fault_kernel != kernel) {
		mine |= b->fault_pages;
		b->fault_pages = 0;
		b->fault_row = UM_PAGES_NONE;
	}
	if (b->use_kernel != kernel) {
		mine |= b->use;
		b->used |= b->use;
		b->written |= b->use_write;
		b->use = b->use_write = 0;
	}
	b->on |= mine;
	b->gpu |= mine;
	b->dropped &= ~mine;
	b->fresh &= ~mine;
}

void um_causes_hint_end(struct um_causes *c, struct um_page_block *b)
{
	if (b->hint == UM_PAGES_NONE)
		return;
	um_hints_release(&c->hints, b->hint);
	b->hint = UM_PAGES_NONE;
	b->hint_pages = 0;
}

void um_causes_hint_late(struct um_causes *c, struct um_page_block *b, uint32_t pages, uint64_t kernel)
{
	struct um_hint_open *o = b->hint == UM_PAGES_NONE ? NULL : &c->hints.open.at[b->hint];

	if (o && b->hint_pages & pages && (!o->used || o->kernel == kernel)) {
		o->late = 1;
		um_causes_hint_end(c, b);
	}
}

void um_causes_hint_early(struct um_causes *c, struct um_page_block *b, uint32_t pages)
{
	struct um_hint_open *o = b->hint == UM_PAGES_NONE ? NULL : &c->hints.open.at[b->hint];

	if (o && b->hint_pages & pages && !o->used) {
		o->early = 1;
		um_causes_hint_end(c, b);
	}
}
