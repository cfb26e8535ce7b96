/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/perfetto_state.h"

#include <stdio.h>

#define TEXT 400 /* bytes of a name that are shown of several */

static int is_before(const struct um_perfetto *w, const struct um_activity *a)
{
	return w->begun && a->begin < w->last;
}

/* --- on the CPU --------------------------------------------------------------------------------------------------- */

static int on_range(struct um_perfetto *w, const struct um_activity *a)
{
	int64_t lane = um_pf_lane(w, a->process, UM_PF_PROGRAM, UM_PF_THREAD, a->thread);
	struct um_pf_slice s = {.begin = um_pf_time(w, a->begin), .end = um_pf_time(w, a->end)};
	int fits = lane < 0 ? (int)lane : um_pf_place(w, (uint32_t)lane, &s), first = 1;
	uint32_t ops;

	if (fits < 0)
		return fits;
	um_pf_slice_begin(w, &s, fits, "range", a->name);
	if (a->domain)
		um_pf_key_str(w, &first, "domain", a->domain);
	if (a->unfinished)
		um_pf_key_str(w, &first, "unfinished", "still open when recording ended");
	um_out_str(w->out, "}}");
	/* Ends the thread's current operation. */
	ops = um_pf_lane_find(w, a->process, UM_PF_PROGRAM, UM_PF_OPS, a->thread);
	return ops == UM_PF_NONE ? 0 : um_pf_op_over(w, ops, s.begin);
}

static int on_call(struct um_perfetto *w, const struct um_activity *a)
{
	int64_t lane = um_pf_lane(w, a->process, UM_PF_PROGRAM, UM_PF_THREAD, a->thread);
	struct um_pf_slice s = {.begin = um_pf_time(w, a->begin), .end = um_pf_time(w, a->end)};
	int fits = lane < 0 ? (int)lane : um_pf_place(w, (uint32_t)lane, &s), first = 1;

	if (fits < 0)
		return fits;
	um_pf_slice_begin(w, &s, fits, "call", a->name);
	if (a->correlation)
		um_pf_key_u64(w, &first, "correlation", a->correlation);
	um_out_str(w->out, "}}");
	um_pf_on_call(w, a);
	return 0;
}

static int on_cpu_fault(struct um_perfetto *w, const struct um_activity *a)
{
	int64_t lane = um_pf_lane(w, a->process, UM_PF_PROGRAM, UM_PF_CPU_FAULTS, 0);
	const char *tensor = um_pf_tensor(w, a);
	struct um_pf_slice s = {.begin = um_pf_time(w, a->begin)};
	int first = 1;

	if (lane < 0)
		return (int)lane;
	s.lane = (uint32_t)lane;
	um_pf_slice_begin(w, &s, 0, "fault", tensor ? tensor : "page fault");
	um_pf_key_u64(w, &first, "faults", a->faults);
	um_pf_key_address(w, &first, a->address);
	um_out_str(w->out, "}}");
	return 0;
}

static int on_memory(struct um_perfetto *w, const struct um_activity *a)
{
	int64_t group = a->managed ? um_pf_group(w, a->process, UM_PF_PROGRAM) : -1;

	if (!a->managed)
		return 0;
	if (group < 0)
		return (int)group;
	um_pf_count_add(w, (uint32_t)group, UM_PF_MANAGED, um_pf_time(w, a->begin),
			a->kind == UM_ACT_ALLOC ? (int64_t)a->bytes : -(int64_t)a->bytes);
	return a->kind == UM_ACT_FREE ? um_pf_count_free(w, a) : 0;
}

/* --- on the device ------------------------------------------------------------------------------------------------ */

/* Kernels, copies and fills. */
static int on_work(struct um_perfetto *w, const struct um_activity *a)
{
	static const char *const copies[] = {[UM_DIR_OTHER] = "copy",
					     [UM_DIR_H2D] = "copy to the device",
					     [UM_DIR_D2H] = "copy to the host",
					     [UM_DIR_D2D] = "copy on the device"};
	int64_t lane = um_pf_lane(w, a->process, a->device, UM_PF_STREAM, (uint64_t)(int64_t)a->stream);
	struct um_pf_slice s = {.begin = um_pf_time(w, a->begin), .end = um_pf_time(w, a->end)};
	struct um_pf_op *op = NULL;
	int fits = lane < 0 ? (int)lane : um_pf_place(w, (uint32_t)lane, &s), first = 1;

	if (fits < 0)
		return fits;
	if (a->kind != UM_ACT_KERNEL) {
		um_pf_slice_begin(w, &s, fits, "copy", a->kind == UM_ACT_FILL ? "fill" : copies[a->dir]);
		um_pf_key_u64(w, &first, "bytes", a->bytes);
		um_out_str(w->out, "}}");
		return 0;
	}
	um_pf_slice_begin(w, &s, fits, "kernel", a->name);
	op = um_pf_op_of(w, a);
	if (op) {
		um_pf_key_u64(w, &first, "op", op->number);
		if (op->name)
			um_pf_key_str(w, &first, "op_name", op->name);
	}
	um_out_str(w->out, "}}");
	if (op && fits)
		um_pf_op_meet(w, op, &s);
	return 0;
}

static int on_fault(struct um_perfetto *w, const struct um_activity *a)
{
	static const char *const accesses[] = {
		[UM_ACCESS_UNKNOWN] = "unknown", [UM_ACCESS_READ] = "read",	    [UM_ACCESS_WRITE] = "write",
		[UM_ACCESS_ATOMIC] = "atomic",	 [UM_ACCESS_PREFETCH] = "prefetch", [UM_ACCESS_UPDATE] = "update",
	};
	int64_t lane = um_pf_lane(w, a->process, a->device, UM_PF_GPU_FAULTS, 0);
	const char *tensor = um_pf_tensor(w, a);
	struct um_pf_slice s = {.begin = um_pf_time(w, a->begin), .end = um_pf_time(w, a->end)};
	int fits = lane < 0 ? (int)lane : um_pf_place(w, (uint32_t)lane, &s), first = 1;

	if (fits < 0)
		return fits;
	um_pf_slice_begin(w, &s, fits, "fault", tensor ? tensor : "page faults");
	um_pf_key_u64(w, &first, "faults", a->faults);
	um_pf_key_str(w, &first, "access", accesses[a->access]);
	um_pf_key_address(w, &first, a->address);
	um_out_str(w->out, "}}");
	um_pf_count_add(w, w->lanes.at[s.lane].group, UM_PF_FAULTS, s.begin, (int64_t)a->faults);
	return 0;
}

static int on_migration(struct um_perfetto *w, const struct um_activity *a)
{
	static const char *const causes[UM_CAUSES] = {"unknown",     "prefetch", "demand",
						      "speculative", "eviction", "access counters"};
	static const enum um_pf_kind kinds[] = {[UM_DIR_OTHER] = UM_PF_BETWEEN,
						[UM_DIR_H2D] = UM_PF_TO_DEVICE,
						[UM_DIR_D2H] = UM_PF_TO_HOST,
						[UM_DIR_D2D] = UM_PF_BETWEEN};
	int64_t lane = um_pf_lane(w, a->process, a->device, kinds[a->dir], 0);
	const char *tensor = um_pf_tensor(w, a);
	struct um_pf_slice s = {.begin = um_pf_time(w, a->begin), .end = um_pf_time(w, a->end)};
	int fits = lane < 0 ? (int)lane : um_pf_place(w, (uint32_t)lane, &s), first = 1;
	char name[TEXT];

	if (fits < 0)
		return fits;
	snprintf(name, sizeof name, "%s%s%s", causes[a->cause], tensor ? " " : "", tensor ? tensor : "");
	um_pf_slice_begin(w, &s, fits, "migration", name);
	um_pf_key_str(w, &first, "cause", causes[a->cause]);
	um_pf_key_u64(w, &first, "bytes", a->bytes);
	um_pf_key_address(w, &first, a->address);
	if (tensor)
		um_pf_key_str(w, &first, "tensor", tensor);
	um_out_str(w->out, "}}");
	return um_pf_count_move(w, w->lanes.at[s.lane].group, a);
}

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct um_perfetto *w = (struct um_perfetto *)sink;

	if (is_before(w, a))
		return -EINVAL;
	if (!w->begun)
		w->zero = a->begin < 0 ? a->begin : 0;
	w->begun = 1;
	w->last = a->begin;
	if (a->records > 1 || (a->records && !a->address))
		return 0; /* only a sum: without a time to draw */
	switch (a->kind) {
	case UM_ACT_ALLOC:
	case UM_ACT_FREE:
		return on_memory(w, a);
	case UM_ACT_RANGE:
		return on_range(w, a);
	case UM_ACT_OP:
		return um_pf_on_op(w, a);
	case UM_ACT_HINT:
		return um_pf_on_hint(w, a);
	case UM_ACT_CALL:
		return on_call(w, a);
	case UM_ACT_KERNEL:
	case UM_ACT_FILL:
	case UM_ACT_COPY:
		return on_work(w, a);
	case UM_ACT_GPU_FAULT:
		return on_fault(w, a);
	case UM_ACT_CPU_FAULT:
		return on_cpu_fault(w, a);
	case UM_ACT_MIGRATION:
		return on_migration(w, a);
	case UM_ACT_TENSOR_END:
	case UM_ACT_TENSOR:
	case UM_ACT_USE:
	case UM_ACT_KINDS:
		break;
	}
	return 0;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

int um_perfetto_open(struct um_perfetto **out, const char *path, const struct um_perfetto_options *options,
		     struct um_diag *diag)
{
	struct um_perfetto *w = calloc(1, sizeof *w);
	int err;

	if (diag)
		um_diag_init(diag, path);
	if (!w)
		return um_diag_set(diag, ENOMEM, 0, "no memory");
	w->sink.feed = feed;
	w->o = *options;
	w->free_hint = UM_PF_NONE;
	w->ops = calloc(UM_PF_RING, sizeof *w->ops);
	w->calls = calloc(UM_PF_RING, sizeof *w->calls);
	err = w->ops && w->calls ? um_out_open(&w->out, path, diag) : um_diag_set(diag, ENOMEM, 0, "no memory");
	if (err) {
		um_pf_ops_fini(w);
		free(w);
		return err;
	}
	um_out_str(w->out, "{\"traceEvents\":[");
	*out = w;
	return 0;
}

struct um_activity_sink *um_perfetto_sink(struct um_perfetto *w)
{
	return &w->sink;
}

/* Some versions of Perfetto apply a unit that precedes the events to them. */
static void finish(struct um_perfetto *w)
{
	for (uint32_t i = 0; i < w->lanes.n; i++)
		if (um_pf_op_over(w, i, 0))
			um_out_fail(w->out, -ENOMEM);
	for (uint32_t i = 0; i < w->groups.n; i++)
		um_pf_count_end(w, i);
	um_out_str(w->out, "\n],\"displayTimeUnit\":\"ns\"}\n");
}

int um_perfetto_close(struct um_perfetto *w, int keep, struct um_diag *diag)
{
	int err;

	if (!w)
		return 0;
	finish(w);
	err = um_out_close(w->out, keep, diag);
	for (size_t i = 0; i < w->lanes.n; i++)
		um_vec_fini(&w->lanes.at[i].open);
	um_vec_fini(&w->lanes);
	um_vec_fini(&w->groups);
	um_id_map_fini(&w->group_of);
	um_id_map_fini(&w->lane_of);
	um_pf_ops_fini(w);
	free(w);
	return err;
}
