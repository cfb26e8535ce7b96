/* SPDX-License-Identifier: Apache-2.0
 *
 * Activities of the GPU: kernels, and the faults and migrations charged to them.
 */
#include "report/report_state.h"

#include "base/hash.h"

static void moves_add(struct um_report_moves *to, const struct um_report_moves *m)
{
	to->bytes += m->bytes;
	to->n += m->n;
	to->ns += m->ns;
}

static void add_sums(struct um_report_sums *to, const struct um_report_sums *from)
{
	um_report_work_add(&to->work, &from->work);
	to->fault_groups += from->fault_groups;
	to->cpu_faults += from->cpu_faults;
	for (int w = 0; w <= UM_DIR_D2D; w++)
		for (int c = 0; c < UM_CAUSES; c++)
			moves_add(&to->moves[w][c], &from->moves[w][c]);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

struct key {
	const struct um_report *r;
	const char *name;
	uint32_t op, iteration;
};

static int same_op(const void *user, uint32_t row)
{
	const struct key *k = user;

	return strcmp(k->r->ops.at[row].name, k->name) == 0;
}

/* The op's row; beyond the limit, the last one. UM_REPORT_NONE: no memory. */
static uint32_t op_of(struct um_report *r, const char *name)
{
	struct key k = {r, r->ops.n == UM_REPORT_OPS_MAX ? "(others)" : name, 0, 0};
	uint64_t hash = um_hash_str(name);
	uint32_t row = um_index_find(&r->op_index, hash, same_op, &(struct key){r, name, 0, 0});
	struct um_report_op op = {0};

	if (row != UM_INDEX_NONE)
		return row;
	if (r->ops.n > UM_REPORT_OPS_MAX)
		return UM_REPORT_OPS_MAX;
	op.name = strdup(k.name);
	if (!op.name || um_vec_push(&r->ops, op)) {
		free(op.name);
		return UM_REPORT_NONE;
	}
	row = (uint32_t)(r->ops.n - 1);
	if (um_index_add(&r->op_index, um_hash_str(k.name), row)) {
		free(r->ops.at[--r->ops.n].name);
		return UM_REPORT_NONE;
	}
	return row;
}

static uint64_t cell_hash(uint32_t op, uint32_t iteration)
{
	return um_hash_u64(op, iteration);
}

static int same_cell(const void *user, uint32_t row)
{
	const struct key *k = user;

	return k->r->cells.at[row].op == k->op && k->r->cells.at[row].iteration == k->iteration;
}

/* The cell's row, or UM_REPORT_NONE: too many. 0 or -ENOMEM. */
static int cell_of(struct um_report *r, uint32_t op, uint32_t iteration, uint32_t *out)
{
	struct key k = {r, NULL, op, iteration};
	uint64_t hash = cell_hash(op, iteration);
	struct um_report_cell cell = {.op = op, .iteration = iteration};

	*out = um_index_find(&r->cell_index, hash, same_cell, &k);
	if (*out != UM_INDEX_NONE)
		return 0;
	*out = UM_REPORT_NONE;
	if (r->cells.n >= UM_REPORT_CELLS_MAX) {
		r->cells_skipped++;
		return 0;
	}
	if (um_vec_push(&r->cells, cell) || um_index_add(&r->cell_index, hash, (uint32_t)(r->cells.n - 1)))
		return -ENOMEM;
	*out = (uint32_t)(r->cells.n - 1);
	return 0;
}

static struct um_report_lane *lane_of(struct um_report *r, uint32_t process, int32_t device)
{
	struct um_report_lane fresh = {.process = process, .device = device, .serving_until = INT64_MIN};

	for (uint32_t i = 0; i <= r->lanes.n; i++) {
		uint32_t k = i ? i - 1 : r->last_lane;

		if (k < r->lanes.n && r->lanes.at[k].process == process && r->lanes.at[k].device == device) {
			r->last_lane = k;
			return &r->lanes.at[k];
		}
	}
	if (um_vec_push(&r->lanes, fresh))
		return NULL;
	r->last_lane = (uint32_t)(r->lanes.n - 1);
	return &r->lanes.at[r->last_lane];
}

/* --- what runs ---------------------------------------------------------------------------------------------------- */

/* The last begun of the kernels that run at `t`, or NULL. */
static const struct um_report_running *running_at(const struct um_report_lane *l, int64_t t)
{
	for (size_t i = l->running.n; i > 0; i--)
		if (l->running.at[i - 1].end > t)
			return &l->running.at[i - 1];
	return NULL;
}

static int run(struct um_report_lane *l, int64_t begin, const struct um_report_running *k)
{
	size_t left = 0;

	for (size_t i = 0; i < l->running.n; i++)
		if (l->running.at[i].end > begin)
			l->running.at[left++] = l->running.at[i];
	l->running.n = left;
	return um_vec_push(&l->running, *k);
}

/* Charges process, iteration, op and tensor. */
static void charge(struct um_report *r, const struct um_report_running *k, const struct um_report_work *w)
{
	um_report_work_add(&r->ops.at[k->op].work, w);
	if (k->cell != UM_REPORT_NONE)
		um_report_work_add(&r->cells.at[k->cell].work, w);
	um_report_work_add(&um_report_sums_of(r, k->iteration)->work, w);
	um_report_work_add(&r->all.work, w);
}

static int settle(struct um_report *r, struct um_report_lane *l, uint32_t iteration)
{
	uint64_t process = r->processes.at[l->process].process;

	if (!l->pends)
		return 0;
	add_sums(um_report_sums_of(r, iteration), &l->pending);
	memset(&l->pending, 0, sizeof l->pending);
	l->pends = 0;
	for (size_t i = 0; i < l->waiting.n; i++)
		if (um_report_tensors_charge(r, process, iteration, &l->waiting.at[i], NULL))
			return -ENOMEM;
	um_vec_clear(&l->waiting);
	return um_report_site_settle(r, l, iteration);
}

/* Charges the tensors together with the running kernel, or with the next one. */
static int charge_tensors(struct um_report *r, struct um_report_lane *l, const struct um_report_running *k,
			  const struct um_report_event *e, uint32_t *row)
{
	uint64_t process = r->processes.at[l->process].process;

	if (!k && l->waiting.n < UM_REPORT_WAITING_MAX)
		return um_vec_push(&l->waiting, *e);
	return um_report_tensors_charge(r, process, k ? k->iteration : UM_REPORT_NONE, e, row);
}

static int share(struct um_report *r, struct um_report_lane *l)
{
	int err = um_report_tensors_waited(r, l->served.at, l->served.n, l->served_ns);

	um_vec_clear(&l->served);
	l->served_ns = 0;
	return err;
}

/* Groups served together follow each other; charging the first with all their time would be wrong. */
static int charge_fault(struct um_report *r, struct um_report_lane *l, const struct um_report_running *k,
			const struct um_activity *a, uint64_t ns)
{
	struct um_report_event e = {.address = a->address, .faults = a->faults};
	struct um_report_served one = {.iteration = k ? k->iteration : UM_REPORT_NONE, .faults = a->faults};

	if ((l->served_at != a->begin || l->served.n >= UM_REPORT_SERVED_MAX) && share(r, l))
		return -ENOMEM;
	if (charge_tensors(r, l, k, &e, &one.tensor))
		return -ENOMEM;
	l->served_at = a->begin;
	l->served_ns += ns;
	return k ? um_vec_push(&l->served, one) : 0;
}

int um_report_on_work(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	struct um_report_running k = {.end = a->end, .iteration = um_report_iteration_of(r, process, a)};
	struct um_report_lane *l = lane_of(r, process, a->device);

	if (!l)
		return -ENOMEM;
	/* A copy runs on its own stream and may be far ahead of the kernels. */
	if ((a->kind == UM_ACT_KERNEL && um_report_tensors_begin(r, a->process, a->correlation)) ||
	    settle(r, l, k.iteration) || um_views_work(r, (uint32_t)(l - r->lanes.at), k.iteration, a))
		return -ENOMEM;
	if (k.iteration != UM_REPORT_NONE) {
		struct um_report_iteration *it = &r->iterations.at[k.iteration];

		if (!it->has_gpu || a->begin < it->gpu_begin)
			it->gpu_begin = a->begin;
		if (!it->has_gpu || a->end > it->gpu_end)
			it->gpu_end = a->end;
		it->has_gpu = 1;
	}
	um_report_on_collective(r, process, k.iteration, a);
	if (a->kind == UM_ACT_COPY)
		r->copies[a->dir] += a->bytes;
	if (a->kind != UM_ACT_KERNEL)
		return um_causes_on_copy(&r->causes, process, (uint32_t)(l - r->lanes.at), a);
	k.op = op_of(r, a->name);
	if (k.op == UM_REPORT_NONE || cell_of(r, k.op, k.iteration, &k.cell) || um_report_site_begin(r, l, &k, a) ||
	    run(l, a->begin, &k))
		return -ENOMEM;
	r->processes.at[process].kernels++;
	charge(r, &k,
	       &(struct um_report_work){
		       .launches = 1, .ns = (uint64_t)a->end - (uint64_t)a->begin, .wait_ns = k.waited_ns});
	return 0;
}

/* Groups overlap: each moment counts once, for the first group's kernel. */
int um_report_on_fault(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	struct um_report_lane *l = lane_of(r, process, a->device);
	const struct um_report_running *k = l ? running_at(l, a->begin) : NULL;
	struct um_report_work w = {.faults = a->faults};
	int64_t from;

	if (!l)
		return -ENOMEM;
	r->all.fault_groups++;
	if (!k) {
		l->pends = 1;
		l->pending.fault_groups++;
		l->pending.work.faults += a->faults;
		r->all.work.faults += a->faults;
	} else {
		um_report_sums_of(r, k->iteration)->fault_groups++;
		from = a->begin > l->serving_until ? a->begin : l->serving_until;
		if (from < a->end && from < k->end)
			w.fault_ns = (uint64_t)(a->end < k->end ? a->end : k->end) - (uint64_t)from;
		charge(r, k, &w);
	}
	if (a->end > l->serving_until)
		l->serving_until = a->end;
	if (um_views_memory(r, (uint32_t)(l - r->lanes.at), k ? k->iteration : UM_REPORT_NONE, k != NULL, a) ||
	    um_report_site_event(r, l, k, a, w.fault_ns))
		return -ENOMEM;
	return charge_fault(r, l, k, a, w.fault_ns);
}

int um_report_on_migration(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	struct um_report_lane *l = lane_of(r, process, a->device);
	const struct um_report_running *k = l ? running_at(l, a->begin) : NULL;
	struct um_report_moves moved = {a->bytes, 1, (uint64_t)a->end - (uint64_t)a->begin};

	if (!l)
		return -ENOMEM;
	moves_add(&r->all.moves[a->dir][a->cause], &moved);
	moves_add(&(k ? um_report_sums_of(r, k->iteration) : &l->pending)->moves[a->dir][a->cause], &moved);
	l->pends |= !k;
	if (k && a->dir == UM_DIR_H2D && (a->cause == UM_CAUSE_DEMAND || a->cause == UM_CAUSE_SPECULATIVE))
		charge(r, k, &(struct um_report_work){.h2d_bytes = a->bytes});
	if (k && a->dir == UM_DIR_D2H && a->cause == UM_CAUSE_EVICTION && a->begin < l->serving_until)
		charge(r, k, &(struct um_report_work){.d2h_bytes = a->bytes});
	if (um_views_memory(r, (uint32_t)(l - r->lanes.at), k ? k->iteration : UM_REPORT_NONE, k != NULL, a) ||
	    um_report_site_event(r, l, k, a, 0))
		return -ENOMEM;
	return charge_tensors(
		r, l, k,
		&(struct um_report_event){.address = a->address, .bytes = a->bytes, .dir = a->dir, .cause = a->cause},
		NULL);
}

int um_report_settle(struct um_report *r)
{
	int err = 0;

	um_report_collectives_end(r);
	for (size_t i = 0; i < r->lanes.n && !err; i++) {
		err = settle(r, &r->lanes.at[i], UM_REPORT_NONE);
		if (!err)
			err = share(r, &r->lanes.at[i]);
	}
	return err;
}
