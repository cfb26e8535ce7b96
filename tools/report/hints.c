/* SPDX-License-Identifier: Apache-2.0 */
#include "report/hints.h"

#include "base/hash.h"

#include <stdio.h>

struct key {
	const struct um_hints *h;
	enum um_hint_kind kind;
	uint32_t tensor;
};

static int same(const void *user, uint32_t row)
{
	const struct key *k = user;

	return k->h->rows.at[row].kind == k->kind && k->h->rows.at[row].tensor == k->tensor;
}

void um_hints_fini(struct um_hints *h)
{
	um_vec_fini(&h->rows);
	um_vec_fini(&h->open);
	um_vec_fini(&h->refusals);
	um_index_fini(&h->index);
}

int um_hints_row(struct um_hints *h, enum um_hint_kind kind, uint32_t tensor, uint32_t *row)
{
	struct key k = {h, kind, tensor};
	uint64_t hash = um_hash_u64(kind, tensor);

	*row = um_index_find(&h->index, hash, same, &k);
	if (*row != UM_INDEX_NONE)
		return 0;
	if (um_vec_push(&h->rows, ((struct um_hint_row){.kind = kind, .tensor = tensor})))
		return -ENOMEM;
	*row = (uint32_t)(h->rows.n - 1);
	if (!um_index_add(&h->index, hash, *row))
		return 0;
	h->rows.n--;
	return -ENOMEM;
}

int um_hints_open(struct um_hints *h, uint32_t row, uint32_t blocks, uint32_t *open)
{
	struct um_hint_open fresh = {.row = row, .blocks = blocks};

	if (h->free) {
		*open = h->free - 1;
		h->free = h->open.at[*open].row;
		h->open.at[*open] = fresh;
		return 0;
	}
	*open = (uint32_t)h->open.n;
	return um_vec_push(&h->open, fresh);
}

void um_hints_release(struct um_hints *h, uint32_t open)
{
	struct um_hint_open *o = &h->open.at[open];
	struct um_hint_row *r = &h->rows.at[o->row];

	if (--o->blocks)
		return;
	if (o->late)
		r->late++;
	else if (o->early)
		r->early++;
	else if (o->used)
		r->useful++;
	o->row = h->free;
	h->free = open + 1;
}

static int launches(struct um_hints *h, uint32_t process, uint64_t thread)
{
	for (unsigned i = 0; i < h->n_launchers; i++)
		if (h->launcher[i].thread == thread && h->launcher[i].process == process)
			return 1;
	return 0;
}

static int begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

int um_hints_on_call(struct um_hints *h, uint32_t process, const struct um_activity *call)
{
	uint64_t ns = (uint64_t)(call->end - call->begin);

	if (begins(call->name, "cudaLaunch") || begins(call->name, "cuLaunch") || begins(call->name, "__cudaLaunch")) {
		if (h->n_launchers < UM_HINT_LAUNCHERS && !launches(h, process, call->thread)) {
			h->launcher[h->n_launchers].thread = call->thread;
			h->launcher[h->n_launchers++].process = process;
		}
		return 0;
	}
	if (!begins(call->name, "cudaMemPrefetch") && !begins(call->name, "cuMemPrefetch"))
		return 0;
	if (!h->call_ns || ns < h->call_ns)
		h->call_ns = ns;
	return launches(h, process, call->thread);
}

int um_hints_refused(struct um_hints *h, const char *name, uint32_t tensor, int error)
{
	struct um_hint_refusal r = {.tensor = tensor, .error = error, .n = 1};

	snprintf(r.name, sizeof r.name, "%s", name);
	for (size_t i = 0; i < h->refusals.n; i++)
		if (h->refusals.at[i].tensor == tensor && h->refusals.at[i].error == error &&
		    strcmp(h->refusals.at[i].name, r.name) == 0) {
			h->refusals.at[i].n++;
			return 0;
		}
	if (h->refusals.n >= UM_HINT_REFUSALS)
		return 0;
	return um_vec_push(&h->refusals, r);
}

const char *um_hint_word(enum um_hint_kind kind)
{
	static const char *const names[] = {"prefetch", "evict", "discard", "recompute", "advise"};

	return names[kind];
}
