/* SPDX-License-Identifier: Apache-2.0
 *
 * report_state.h - state of the report: private to report.c, iterations.c and gpu_work.c
 */
#ifndef UM_REPORT_REPORT_STATE_H
#define UM_REPORT_REPORT_STATE_H

#include "report/report.h"

#define UM_REPORT_OPS_MAX 65536u /* different names; one row takes the rest */
#define UM_REPORT_ITERATIONS_MAX 262144u
#define UM_REPORT_CELLS_MAX 1048576u
#define UM_REPORT_RANGES_MAX 8192u
#define UM_REPORT_TENSORS_MAX 65536u /* different names; one row takes the rest */
#define UM_REPORT_TENSOR_CELLS_MAX 524288u
#define UM_REPORT_SERVED_MAX 4096u /* largest number of concurrent groups of faults that share time */
#define UM_REPORT_WAITING_MAX 262144u /* events between kernels; further ones are charged to no iteration */

struct um_report_running {
	int64_t end;
	uint32_t op, iteration, cell;
	uint64_t serial, op_id; /* report/causes.h: kernel, op_id, known */
	int known;
	uint64_t waited_ns; /* idle time of its device for its data */
};

/* A device, as one process uses it. */
struct um_report_lane {
	uint32_t process;
	int32_t device;
	UM_VEC(struct um_report_running) running; /* in order of begin; ended ones are dropped */
	int64_t serving_until; /* faults */
	struct um_report_sums pending; /* since the last work ended: assigned to the next one's iteration */
	int pends; /* something does */
	UM_VEC(struct um_report_event) waiting; /* the same, by address */
	UM_VEC(struct um_report_served) served; /* faults that began to be served at `served_at` */
	int64_t served_at;
	uint64_t served_ns; /* stall of kernels for them */
};

/* iterations.c */
int um_report_on_range(struct um_report *r, uint32_t process, const struct um_activity *a);
void um_report_on_call(struct um_report *r, uint32_t process, const struct um_activity *a);
/* The iteration of the process's CPU at time `t`; the iteration that enqueued the work. UM_REPORT_NONE: none. */
uint32_t um_report_iteration_at(const struct um_report *r, uint32_t process, int64_t t);
uint32_t um_report_iteration_of(struct um_report *r, uint32_t process, const struct um_activity *work);
int um_report_compare(struct um_report *r);

/* iteration_spans.c: begins or ends found iterations at a call or work. 0 or -ENOMEM; after the last activity. */
int um_report_on_found(struct um_report *r, uint32_t process, const struct um_activity *a);
void um_report_found_end(struct um_report *r);

/* attribution.c: passes activities with their kernel and iteration to the causes. 0 or -ENOMEM */
int um_report_site_host(struct um_report *r, uint32_t process, const struct um_activity *a);
int um_report_site_begin(struct um_report *r, const struct um_report_lane *l, struct um_report_running *k,
			 const struct um_activity *a);
int um_report_site_event(struct um_report *r, const struct um_report_lane *l, const struct um_report_running *k,
			 const struct um_activity *a, uint64_t fault_ns);
int um_report_site_settle(struct um_report *r, const struct um_report_lane *l, uint32_t iteration);

/* driver_counters.c: a migration or faults with `records`. 0 or -ENOMEM */
int um_report_on_counted(struct um_report *r, uint32_t process, const struct um_activity *a);

/* collectives.c: a kernel, copy or fill; after the last activity of a file. */
void um_report_on_collective(struct um_report *r, uint32_t process, uint32_t iteration, const struct um_activity *a);
void um_report_collectives_end(struct um_report *r);

/* work.c */
int um_report_on_work(struct um_report *r, uint32_t process, const struct um_activity *a);
int um_report_on_fault(struct um_report *r, uint32_t process, const struct um_activity *a);
int um_report_on_migration(struct um_report *r, uint32_t process, const struct um_activity *a);
int um_report_settle(struct um_report *r); /* assigns pending events to no iteration */

/* The process's latest iteration, or NULL. */
static inline struct um_report_iteration *um_report_last_of(const struct um_report *r,
							    const struct um_report_process *p)
{
	return p->iterations.n ? &r->iterations.at[p->iterations.at[p->iterations.n - 1]] : NULL;
}

static inline struct um_report_sums *um_report_sums_of(struct um_report *r, uint32_t iteration)
{
	return iteration == UM_REPORT_NONE ? &r->outside : &r->iterations.at[iteration].sums;
}

static inline void um_report_collectives_add(struct um_report_collectives *to, const struct um_report_collectives *c)
{
	to->ns += c->ns;
	to->alone_ns += c->alone_ns;
}

static inline void um_report_work_add(struct um_report_work *to, const struct um_report_work *w)
{
	to->launches += w->launches;
	to->ns += w->ns;
	to->faults += w->faults;
	to->fault_ns += w->fault_ns;
	to->h2d_bytes += w->h2d_bytes;
	to->d2h_bytes += w->d2h_bytes;
	to->wait_ns += w->wait_ns;
}

#endif
