/* SPDX-License-Identifier: Apache-2.0
 *
 * log_driver_counters.c - collects and sums the driver's counter records of a part
 */
#include "io/log_driver_counters.h"

const char *const um_log_driver_counter_names[UM_LOG_DRIVER_COUNTERS] = {"h2d", "d2h", "gpu_fault", "cpu_fault"};

const char *um_log_driver_counter_why(enum um_log_driver_counter_kind kind, unsigned why)
{
	static const char *const causes[UM_LOG_WHYS] = {NULL,	       "prefetch", "demand",
							"speculative", "eviction", "counters"};
	static const char *const access[UM_LOG_WHYS] = {NULL, "read", "write", "atomic", "prefetch", NULL};

	return kind == UM_LOG_CPU_FAULT ? NULL : kind == UM_LOG_GPU_FAULT ? access[why] : causes[why];
}

const char *um_log_driver_counter_unit(enum um_log_driver_counter_kind kind)
{
	return kind <= UM_LOG_D2H ? "bytes" : "faults";
}

void um_log_counts_clear(struct um_log_counts *c)
{
	um_vec_clear(&c->at);
	c->one_by_one = 0;
	um_id_map_fini(&c->sum_of);
	memset(c->sums, 0, sizeof c->sums);
}

void um_log_counts_fini(struct um_log_counts *c)
{
	um_vec_fini(&c->at);
	um_id_map_fini(&c->sum_of);
}

int um_log_driver_counter_read(struct um_log_driver_counter *c, const struct um_activity *a)
{
	*c = (struct um_log_driver_counter){
		.begin = a->begin, .end = a->end, .address = a->address, .records = a->records};
	if (a->kind == UM_ACT_MIGRATION && (a->dir == UM_DIR_H2D || a->dir == UM_DIR_D2H)) {
		c->kind = a->dir == UM_DIR_H2D ? UM_LOG_H2D : UM_LOG_D2H;
		c->why = a->cause;
		c->n = a->bytes;
	} else if (a->kind == UM_ACT_GPU_FAULT || a->kind == UM_ACT_CPU_FAULT) {
		c->kind = a->kind == UM_ACT_GPU_FAULT ? UM_LOG_GPU_FAULT : UM_LOG_CPU_FAULT;
		c->why = a->kind == UM_ACT_GPU_FAULT ? a->access : 0;
		c->n = a->faults;
	} else {
		return 0;
	}
	return 1;
}

int um_log_counts_add(struct um_log_counts *c, const struct um_log_driver_counter *x, size_t most)
{
	if (!x->address || c->one_by_one >= most || um_vec_push(&c->at, *x))
		return 0;
	c->one_by_one++;
	return 1;
}

static void add_sum(struct um_log_counts *c, const struct um_log_driver_counter *x)
{
	struct um_log_sum *s = &c->sums[x->kind][x->why];

	s->records += x->records;
	s->n += x->n;
}

void um_log_counts_sum(struct um_log_counts *c, const struct um_log_driver_counter *x, uint32_t def, size_t most)
{
	uint64_t key = ((uint64_t)def * UM_LOG_DRIVER_COUNTERS + x->kind) * UM_LOG_WHYS + x->why, *known = NULL;
	struct um_log_driver_counter *sum;

	if (def != UINT32_MAX)
		known = um_id_map_find(&c->sum_of, key);
	if (known) {
		sum = &c->at.at[*known];
		sum->records += x->records;
		sum->n += x->n;
		if (x->begin < sum->begin) {
			sum->begin = sum->end = x->begin;
			sum->address = x->address;
		}
		return;
	}
	if (def == UINT32_MAX || c->at.n - c->one_by_one >= most || um_vec_reserve(&c->at, 1) ||
	    um_id_map_add(&c->sum_of, key, c->at.n)) {
		add_sum(c, x);
		return;
	}
	c->at.at[c->at.n] = *x;
	c->at.at[c->at.n++].end = x->begin;
}

void um_log_counts_fold(struct um_log_counts *c)
{
	for (size_t i = 0; i < c->at.n; i++)
		add_sum(c, &c->at.at[i]);
	um_vec_clear(&c->at);
	c->one_by_one = 0;
	um_id_map_fini(&c->sum_of);
}

void um_log_counts_total(const struct um_log_counts *c, uint64_t counts[UM_LIBRARY_COUNTS])
{
	static const enum um_library_count keys[UM_LOG_DRIVER_COUNTERS] = {
		UM_LIBRARY_H2D, UM_LIBRARY_D2H, UM_LIBRARY_GPU_FAULTS, UM_LIBRARY_CPU_FAULTS};

	counts[UM_LIBRARY_SUMMED] = 0;
	for (int k = 0; k < UM_LOG_DRIVER_COUNTERS; k++) {
		counts[keys[k]] = 0;
		for (int w = 0; w < UM_LOG_WHYS; w++) {
			counts[keys[k]] += c->sums[k][w].n;
			counts[UM_LIBRARY_SUMMED] += c->sums[k][w].records;
		}
	}
	for (size_t i = 0; i < c->at.n; i++)
		counts[keys[c->at.at[i].kind]] += c->at.at[i].n;
}

static void key(struct um_out *o, const char *name)
{
	um_out_str(o, ",\"");
	um_out_str(o, name);
	um_out_str(o, "\":");
}

static void write_one(struct um_out *o, const struct um_log_driver_counter *c)
{
	const char *why = um_log_driver_counter_why(c->kind, c->why);

	um_out_str(o, "{\"um\":\"");
	um_out_str(o, um_log_driver_counter_names[c->kind]);
	um_out_str(o, "\"");
	if (why) {
		key(o, "why");
		um_out_json_str(o, why);
	}
	key(o, "at_ns");
	um_out_i64(o, c->begin);
	if (c->end > c->begin) {
		key(o, "ns");
		um_out_i64(o, c->end - c->begin);
	}
	if (c->address) {
		key(o, "address");
		um_out_u64(o, c->address);
	}
	if (!c->address || c->records > 1) {
		key(o, "records");
		um_out_u64(o, c->records);
	}
	key(o, um_log_driver_counter_unit(c->kind));
	um_out_u64(o, c->n);
	um_out_str(o, "}\n");
}

void um_log_counts_write(struct um_out *o, const struct um_log_counts *c, int64_t at)
{
	for (size_t i = 0; i < c->at.n; i++)
		write_one(o, &c->at.at[i]);
	for (unsigned k = 0; k < UM_LOG_DRIVER_COUNTERS; k++)
		for (unsigned w = 0; w < UM_LOG_WHYS; w++)
			if (c->sums[k][w].records)
				write_one(o, &(struct um_log_driver_counter){.kind = (enum um_log_driver_counter_kind)k,
									     .why = w,
									     .begin = at,
									     .end = at,
									     .n = c->sums[k][w].n,
									     .records = c->sums[k][w].records});
}

struct um_activity um_log_driver_counter_as(const struct um_log_driver_counter *c)
{
	struct um_activity a = {
		.begin = c->begin, .end = c->end, .op = UM_ACT_NO_OP, .address = c->address, .records = c->records};

	if (c->kind <= UM_LOG_D2H) {
		a.kind = UM_ACT_MIGRATION;
		a.dir = c->kind == UM_LOG_H2D ? UM_DIR_H2D : UM_DIR_D2H;
		a.cause = (enum um_activity_cause)c->why;
		a.bytes = c->n;
		return a;
	}
	a.kind = c->kind == UM_LOG_GPU_FAULT ? UM_ACT_GPU_FAULT : UM_ACT_CPU_FAULT;
	a.access = (enum um_activity_access)c->why;
	a.faults = c->n;
	return a;
}
