/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tensors.h"

#include "base/hash.h"
#include "report/launches.h"
#include "report/report_state.h"

#include <stdio.h>

#define CHANGES_MAX 262144u /* limit of changes that the GPU has not reached */

enum change { TENSOR_BEGINS, TENSOR_ENDS, ALLOCATION_BEGINS, ALLOCATION_ENDS };

struct changed {
	uint64_t after; /* the call of a correlation */
	uint64_t address, bytes;
	uint32_t row;
	enum change change;
};

struct um_report_space {
	uint64_t process;
	struct um_address_map now, gpu;
	UM_VEC(struct changed) changes;
	size_t first; /* first change that the GPU has not reached */
	uint64_t correlation; /* of the latest call */
	uint32_t iteration; /* iteration of `births` */
	uint64_t births[UM_PLACE_KINDS], births_outside[UM_PLACE_KINDS]; /* without a name */
	struct um_launches launches;
	char op[96]; /* announced last */
};

/* --- rows and cells ----------------------------------------------------------------------------------------------- */

struct key {
	const struct um_report_tensors *t;
	const char *name;
	uint32_t tensor, iteration;
};

static int same_row(const void *user, uint32_t row)
{
	const struct key *k = user;

	return strcmp(k->t->rows.at[row].name, k->name) == 0;
}

/* The row of a name; beyond the limit, the last one. UM_REPORT_NONE: no memory. */
static uint32_t row_of(struct um_report_tensors *t, const char *name)
{
	struct key k = {.t = t, .name = name};
	uint32_t row = um_index_find(&t->row_index, um_hash_str(name), same_row, &k);
	struct um_report_tensor fresh = {.iteration = UM_REPORT_NONE, .cell = UM_REPORT_NONE};

	if (row != UM_INDEX_NONE)
		return row;
	if (t->rows.n > UM_REPORT_TENSORS_MAX)
		return UM_REPORT_TENSORS_MAX;
	if (t->rows.n == UM_REPORT_TENSORS_MAX)
		name = "(others)";
	fresh.name = strdup(name);
	row = (uint32_t)t->rows.n;
	if (!fresh.name || um_vec_reserve(&t->rows, 1) || um_index_add(&t->row_index, um_hash_str(name), row)) {
		free(fresh.name);
		return UM_REPORT_NONE;
	}
	t->rows.at[t->rows.n++] = fresh;
	return row;
}

static int same_cell(const void *user, uint32_t row)
{
	const struct key *k = user;

	return k->t->cells.at[row].tensor == k->tensor && k->t->cells.at[row].iteration == k->iteration;
}

/* The sums of a tensor in an iteration; NULL: too many. 0 or -ENOMEM. */
static int cell_of(struct um_report_tensors *t, uint32_t tensor, uint32_t iteration, struct um_report_tensor_sums **out)
{
	struct um_report_tensor *row = &t->rows.at[tensor];
	struct key k = {.t = t, .tensor = tensor, .iteration = iteration};
	uint64_t hash = um_hash_u64(tensor, iteration);
	uint32_t cell = row->cell;

	*out = NULL;
	if (cell == UM_REPORT_NONE || row->iteration != iteration)
		cell = um_index_find(&t->cell_index, hash, same_cell, &k);
	if (cell == UM_INDEX_NONE) {
		struct um_report_tensor_cell fresh = {.tensor = tensor, .iteration = iteration};

		if (t->cells.n >= UM_REPORT_TENSOR_CELLS_MAX) {
			t->cells_skipped++;
			return 0;
		}
		cell = (uint32_t)t->cells.n;
		if (um_vec_reserve(&t->cells, 1) || um_index_add(&t->cell_index, hash, cell))
			return -ENOMEM;
		t->cells.at[t->cells.n++] = fresh;
	}
	row->iteration = iteration;
	row->cell = cell;
	*out = &t->cells.at[cell].sums;
	return 0;
}

/* --- what lies where ---------------------------------------------------------------------------------------------- */

static struct um_report_space *space_of(struct um_report_tensors *t, uint64_t process)
{
	struct um_report_space *s;

	if (t->last_space < t->spaces.n && t->spaces.at[t->last_space]->process == process)
		return t->spaces.at[t->last_space];
	for (uint32_t i = 0; i < t->spaces.n; i++)
		if (t->spaces.at[i]->process == process) {
			t->last_space = i;
			return t->spaces.at[i];
		}
	s = calloc(1, sizeof *s);
	if (!s || um_vec_push(&t->spaces, s)) {
		free(s);
		return NULL;
	}
	s->process = process;
	s->iteration = UM_REPORT_NONE;
	t->last_space = (uint32_t)(t->spaces.n - 1);
	return s;
}

static int apply(struct um_address_map *p, const struct changed *c)
{
	switch (c->change) {
	case TENSOR_BEGINS:
		return um_address_map_add(p, UM_PLACE_TENSOR, c->address, c->bytes, c->row);
	case ALLOCATION_BEGINS:
		return um_address_map_add(p, UM_PLACE_ALLOCATION, c->address, c->bytes, c->row);
	case TENSOR_ENDS:
		um_address_map_remove(p, UM_PLACE_TENSOR, c->address, c->bytes);
		return 0;
	case ALLOCATION_ENDS:
		um_address_map_remove(p, UM_PLACE_ALLOCATION, c->address, c->bytes);
		return 0;
	}
	return 0;
}

static int change(struct um_report_space *s, struct changed c)
{
	int err = 0;

	c.after = s->correlation;
	if (s->changes.n - s->first >= CHANGES_MAX)
		err = apply(&s->gpu, &s->changes.at[s->first++]);
	if (s->first && s->first >= s->changes.n / 2) {
		s->changes.n -= s->first;
		memmove(s->changes.at, s->changes.at + s->first, s->changes.n * sizeof c);
		s->first = 0;
	}
	if (!err)
		err = um_vec_push(&s->changes, c);
	return err ? err : apply(&s->now, &c);
}

int um_report_tensors_begin(struct um_report *r, uint64_t process, uint64_t correlation)
{
	struct um_report_space *s = space_of(&r->tensors, process);
	int err = s ? 0 : -ENOMEM;

	while (!err && s->first < s->changes.n && (!correlation || s->changes.at[s->first].after < correlation))
		err = apply(&s->gpu, &s->changes.at[s->first++]);
	if (!err && correlation)
		um_launches_begun(&s->launches, correlation);
	return err;
}

/* Searches the changes that the GPU has not reached for the last range at an address. */
int um_report_tensors_last(struct um_report *r)
{
	int err = 0;

	for (size_t i = 0; i < r->tensors.spaces.n; i++) {
		struct um_report_space *s = r->tensors.spaces.at[i];

		for (; !err && s->first < s->changes.n; s->first++) {
			const struct changed *c = &s->changes.at[s->first];

			if (c->change == TENSOR_BEGINS || c->change == ALLOCATION_BEGINS)
				err = apply(&s->gpu, c);
		}
	}
	return err;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static void made_up(struct um_report_space *s, enum um_place_kind kind, uint64_t bytes, uint32_t iteration, char *to,
		    size_t size)
{
	static const char *const words[UM_PLACE_KINDS] = {"tensor", "allocation"};
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	double n = (double)bytes;
	unsigned unit = 0;
	uint64_t number;

	if (iteration != UM_REPORT_NONE && s->iteration != iteration)
		memset(s->births, 0, sizeof s->births);
	if (iteration != UM_REPORT_NONE)
		s->iteration = iteration;
	number = iteration == UM_REPORT_NONE ? s->births_outside[kind]++ : s->births[kind]++;
	for (; n >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
		n /= 1024;
	snprintf(to, size, "%s #%llu%s (%.4g %s)", words[kind], (unsigned long long)number,
		 iteration == UM_REPORT_NONE ? "" : " of an iteration", n, units[unit]);
}

static int begins(struct um_report *r, struct um_report_space *s, uint32_t process, const struct um_activity *a)
{
	struct um_report_tensors *t = &r->tensors;
	enum um_place_kind kind = a->kind == UM_ACT_TENSOR ? UM_PLACE_TENSOR : UM_PLACE_ALLOCATION;
	uint32_t iteration = process == UM_REPORT_NONE ? process : um_report_iteration_at(r, process, a->begin);
	int named = a->name && *a->name;
	struct changed c = {.address = a->address,
			    .bytes = a->bytes,
			    .change = kind == UM_PLACE_TENSOR ? TENSOR_BEGINS : ALLOCATION_BEGINS};
	struct um_report_tensor *row;
	char name[96];

	if (!named)
		made_up(s, kind, a->bytes, iteration, name, sizeof name);
	c.row = row_of(t, named ? a->name : name);
	if (c.row == UM_REPORT_NONE)
		return -ENOMEM;
	row = &t->rows.at[c.row];
	row->lives++;
	row->named |= named || kind == UM_PLACE_TENSOR;
	row->bytes = a->bytes > row->bytes ? a->bytes : row->bytes;
	return change(s, c);
}

static int announced(struct um_report_space *s, const struct um_activity *a)
{
	snprintf(s->op, sizeof s->op, "%s", a->name);
	return um_launches_announce(&s->launches, a);
}

/* Unnamed tensors are identified by their first user. */
static int used(struct um_report_tensors *t, struct um_report_space *s, const struct um_activity *a)
{
	uint64_t until;
	uint32_t row = um_address_map_find(&s->now, a->address, &until);

	if (row == UM_PLACE_NONE || t->rows.at[row].first_op || !*s->op)
		return 0;
	t->rows.at[row].first_op = strdup(s->op);
	return t->rows.at[row].first_op ? 0 : -ENOMEM;
}

static int heard(const struct um_activity *a)
{
	switch (a->kind) {
	case UM_ACT_ALLOC:
	case UM_ACT_FREE:
		return a->managed;
	case UM_ACT_TENSOR_END:
	case UM_ACT_TENSOR:
	case UM_ACT_OP:
	case UM_ACT_USE:
	case UM_ACT_CALL:
		return 1;
	default:
		return 0;
	}
}

int um_report_tensors_feed(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	struct um_report_space *s;

	if (!heard(a))
		return 0;
	s = space_of(&r->tensors, a->process);
	if (!s)
		return -ENOMEM;
	switch (a->kind) {
	case UM_ACT_ALLOC:
	case UM_ACT_TENSOR:
		return begins(r, s, process, a);
	case UM_ACT_FREE:
		return change(s, (struct changed){.address = a->address, .bytes = a->bytes, .change = ALLOCATION_ENDS});
	case UM_ACT_TENSOR_END:
		return change(s, (struct changed){.address = a->address, .bytes = a->bytes, .change = TENSOR_ENDS});
	case UM_ACT_OP:
		return announced(s, a);
	case UM_ACT_USE:
		return used(&r->tensors, s, a);
	default:
		if (a->correlation > s->correlation)
			s->correlation = a->correlation;
		return um_launches_call(&s->launches, a);
	}
}

const struct um_launch *um_report_launch_of(const struct um_report *r, uint64_t process, uint64_t correlation)
{
	const struct um_report_tensors *t = &r->tensors;

	for (size_t i = 0; i < t->spaces.n && correlation; i++)
		if (t->spaces.at[i]->process == process)
			return um_launches_find(&t->spaces.at[i]->launches, correlation);
	return NULL;
}

uint64_t um_report_op_of(const struct um_report *r, uint64_t process, uint64_t correlation)
{
	const struct um_launch *l = um_report_launch_of(r, process, correlation);

	return l ? l->op : UM_ACT_NO_OP;
}

uint32_t um_report_tensor_row_at(const void *report, uint32_t process, int gpu, uint64_t address, uint64_t *until)
{
	const struct um_report *r = report;
	const struct um_report_tensors *t = &r->tensors;
	uint64_t id = r->processes.at[process].process, now_until;
	struct um_report_space *s = t->last_space < t->spaces.n ? t->spaces.at[t->last_space] : NULL;
	uint32_t row = UM_PLACE_NONE;

	for (size_t i = 0; i < t->spaces.n && (!s || s->process != id); i++)
		s = t->spaces.at[i];
	*until = UINT64_MAX;
	if (!s || s->process != id)
		return UM_REPORT_NONE;
	if (gpu)
		row = um_address_map_find(&s->gpu, address, until);
	if (row != UM_PLACE_NONE)
		return row;
	row = um_address_map_find(&s->now, address, &now_until);
	*until = now_until < *until ? now_until : *until;
	return row == UM_PLACE_NONE ? UM_REPORT_NONE : row;
}

const char *um_report_tensor_name(const struct um_report *r, uint32_t row)
{
	return row < r->tensors.rows.n ? r->tensors.rows.at[row].name : "(unknown)";
}

/* --- charging ----------------------------------------------------------------------------------------------------- */

static void add(struct um_report_tensor_sums *to, const struct um_report_event *e, uint64_t bytes)
{
	to->faults += e->faults;
	if (!bytes)
		return;
	if (e->dir == UM_DIR_H2D)
		to->h2d_bytes[e->cause] += bytes;
	else if (e->dir == UM_DIR_D2H)
		to->d2h_bytes[e->cause] += bytes;
	else
		to->d2d_bytes += bytes;
	to->evictions += e->dir == UM_DIR_D2H && e->cause == UM_CAUSE_EVICTION;
}

/* The row at an address on the GPU's map, else on the CPU's. UM_REPORT_NONE: no memory. */
static uint32_t find(struct um_report *r, struct um_report_space *s, uint64_t address, uint64_t *until)
{
	uint32_t row = um_address_map_find(&s->gpu, address, until);
	uint64_t now_until;

	if (row != UM_PLACE_NONE)
		return row;
	row = um_address_map_find(&s->now, address, &now_until);
	*until = now_until < *until ? now_until : *until;
	return row == UM_PLACE_NONE ? row_of(&r->tensors, "(unknown)") : row;
}

const char *um_report_tensor_at(struct um_report *r, uint64_t process, uint64_t address, int on_gpu)
{
	struct um_report_space *s = space_of(&r->tensors, process);
	uint64_t until;
	uint32_t row = s && on_gpu ? um_address_map_find(&s->gpu, address, &until) : UM_PLACE_NONE;

	if (s && row == UM_PLACE_NONE)
		row = um_address_map_find(&s->now, address, &until);
	return row == UM_PLACE_NONE ? NULL : r->tensors.rows.at[row].name;
}

int um_report_tensors_charge(struct um_report *r, uint64_t process, uint32_t iteration, const struct um_report_event *e,
			     uint32_t *row)
{
	struct um_report_space *s = space_of(&r->tensors, process);
	uint64_t at = e->address, end = e->bytes < UINT64_MAX - at ? at + e->bytes : UINT64_MAX, until;

	if (!s)
		return -ENOMEM;
	do {
		uint32_t one = find(r, s, at, &until);
		struct um_report_tensor_sums *cell;

		if (one == UM_REPORT_NONE || cell_of(&r->tensors, one, iteration, &cell))
			return -ENOMEM;
		if (row && at == e->address)
			*row = one;
		until = until < end ? until : end;
		add(&r->tensors.rows.at[one].sums, e, until - at);
		if (cell)
			add(cell, e, until - at);
		at = until;
	} while (at < end);
	return 0;
}

int um_report_tensors_charge_sum(struct um_report *r, uint64_t process, uint32_t iteration,
				 const struct um_report_event *e, uint64_t records)
{
	struct um_report_space *s = space_of(&r->tensors, process);
	struct um_report_tensor_sums *to[2] = {NULL, NULL};
	uint64_t until;
	uint32_t row;

	if (!s)
		return -ENOMEM;
	row = e->address ? find(r, s, e->address, &until) : row_of(&r->tensors, "(unknown)");
	if (row == UM_REPORT_NONE || cell_of(&r->tensors, row, iteration, &to[1]))
		return -ENOMEM;
	to[0] = &r->tensors.rows.at[row].sums;
	for (unsigned i = 0; i < 2 && to[i]; i++) {
		add(to[i], e, e->bytes);
		if (e->bytes && e->dir == UM_DIR_D2H && e->cause == UM_CAUSE_EVICTION)
			to[i]->evictions += records - 1;
	}
	return 0;
}

int um_report_tensors_waited(struct um_report *r, const struct um_report_served *served, size_t n, uint64_t ns)
{
	uint64_t all = 0, so_far = 0, given = 0;

	for (size_t i = 0; i < n; i++)
		all += served[i].faults;
	for (size_t i = 0; i < n && ns; i++) {
		struct um_report_tensor_sums *cell;
		uint64_t to = ns;

		so_far += served[i].faults;
		if (i + 1 < n)
			to = all ? (uint64_t)((double)ns * ((double)so_far / (double)all)) : ns / n * (i + 1);
		to = to > ns ? ns : to < given ? given : to;
		if (cell_of(&r->tensors, served[i].tensor, served[i].iteration, &cell))
			return -ENOMEM;
		r->tensors.rows.at[served[i].tensor].sums.fault_ns += to - given;
		if (cell)
			cell->fault_ns += to - given;
		given = to;
	}
	return 0;
}

int um_report_tensors_cpu_fault(struct um_report *r, uint64_t process, uint32_t iteration, const struct um_activity *a)
{
	struct um_report_space *s = space_of(&r->tensors, process);
	struct um_report_tensor_sums *cell;
	uint64_t until;
	uint32_t row;

	if (!s)
		return -ENOMEM;
	row = um_address_map_find(&s->now, a->address, &until);
	if (row == UM_PLACE_NONE)
		row = row_of(&r->tensors, "(unknown)");
	if (row == UM_REPORT_NONE || cell_of(&r->tensors, row, iteration, &cell))
		return -ENOMEM;
	r->tensors.rows.at[row].sums.cpu_faults += a->faults;
	if (cell)
		cell->cpu_faults += a->faults;
	return 0;
}

/* --- after the last one ------------------------------------------------------------------------------------------- */

uint64_t um_report_tensor_moved(const uint64_t *bytes)
{
	uint64_t sum = 0;

	for (int c = 0; c < UM_CAUSES; c++)
		sum += bytes[c];
	return sum;
}

static int any(const struct um_report_tensor_sums *s)
{
	return s->faults || s->cpu_faults || s->d2d_bytes || um_report_tensor_moved(s->h2d_bytes) ||
	       um_report_tensor_moved(s->d2h_bytes);
}

/* Longest fault time first, then most migrated bytes, then by name. */
static int dearer(const void *a, const void *b, void *user)
{
	const struct um_report_tensors *t = user;
	const struct um_report_tensor *x = &t->rows.at[*(const uint32_t *)a], *y = &t->rows.at[*(const uint32_t *)b];
	uint64_t mx = um_report_tensor_moved(x->sums.h2d_bytes) + um_report_tensor_moved(x->sums.d2h_bytes);
	uint64_t my = um_report_tensor_moved(y->sums.h2d_bytes) + um_report_tensor_moved(y->sums.d2h_bytes);

	if (x->sums.fault_ns != y->sums.fault_ns)
		return x->sums.fault_ns < y->sums.fault_ns ? 1 : -1;
	if (mx != my)
		return mx < my ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int by_row(const void *a, const void *b, void *user)
{
	const struct um_report_tensors *t = user;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct um_report_tensor_cell *x = &t->cells.at[i], *y = &t->cells.at[k];

	if (x->tensor != y->tensor)
		return t->rows.at[x->tensor].rank < t->rows.at[y->tensor].rank ? -1 : 1;
	/* Cells outside of iterations come first. */
	return x->iteration + 1 < y->iteration + 1 ? -1 : x->iteration != y->iteration;
}

int um_report_tensors_sort(struct um_report *r)
{
	struct um_report_tensors *t = &r->tensors;

	if (um_vec_reserve(&t->by_cost, t->rows.n + 1) || um_vec_reserve(&t->cell_order, t->cells.n + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < t->rows.n; i++)
		if (t->rows.at[i].named || any(&t->rows.at[i].sums))
			t->by_cost.at[t->by_cost.n++] = i;
	qsort_r(t->by_cost.at, t->by_cost.n, sizeof *t->by_cost.at, dearer, t);
	for (uint32_t i = 0; i < t->by_cost.n; i++)
		t->rows.at[t->by_cost.at[i]].rank = i;
	for (uint32_t i = 0; i < t->cells.n; i++)
		t->cell_order.at[t->cell_order.n++] = i;
	qsort_r(t->cell_order.at, t->cell_order.n, sizeof *t->cell_order.at, by_row, t);
	return 0;
}

void um_report_tensors_next_file(struct um_report_tensors *t)
{
	for (size_t i = 0; i < t->spaces.n; i++) {
		um_address_map_fini(&t->spaces.at[i]->now);
		um_address_map_fini(&t->spaces.at[i]->gpu);
		um_vec_fini(&t->spaces.at[i]->changes);
		um_launches_fini(&t->spaces.at[i]->launches);
		free(t->spaces.at[i]);
	}
	um_vec_clear(&t->spaces);
}

void um_report_tensors_fini(struct um_report_tensors *t)
{
	for (size_t i = 0; i < t->rows.n; i++) {
		free(t->rows.at[i].name);
		free(t->rows.at[i].first_op);
	}
	um_report_tensors_next_file(t);
	um_vec_fini(&t->rows);
	um_vec_fini(&t->cells);
	um_vec_fini(&t->by_cost);
	um_vec_fini(&t->cell_order);
	um_vec_fini(&t->spaces);
	um_index_fini(&t->row_index);
	um_index_fini(&t->cell_index);
}
