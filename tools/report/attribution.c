/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes activities from the report to its causes, with their kernel, operation and iteration.
 */
#include "report/launches.h"
#include "report/report_state.h"

static struct um_cause_site site_of(const struct um_report *r, const struct um_report_lane *l,
				    const struct um_report_running *k)
{
	struct um_cause_site site = {.process = l->process,
				     .op = UM_CAUSES_NONE,
				     .iteration = UM_CAUSES_NONE,
				     .lane = (uint32_t)(l - r->lanes.at),
				     .op_id = UM_ACT_NO_OP};

	if (k) {
		site.op = k->op;
		site.iteration = k->iteration;
		site.kernel = k->serial;
		site.op_id = k->op_id;
		site.known = k->known;
	}
	return site;
}

int um_report_site_host(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	return um_causes_on_host(&r->causes, process, um_report_iteration_at(r, process, a->begin), a);
}

int um_report_site_begin(struct um_report *r, const struct um_report_lane *l, struct um_report_running *k,
			 const struct um_activity *a)
{
	struct um_cause_site site = site_of(r, l, k);
	const struct um_launch *launch = um_report_launch_of(r, a->process, a->correlation);
	struct um_kernel_span span = {a->begin, a->end, launch ? launch->at : INT64_MIN};
	int err;

	site.op_id = launch ? launch->op : UM_ACT_NO_OP;
	err = um_causes_on_kernel(&r->causes, &site, &span, &k->waited_ns);
	k->serial = site.kernel;
	k->op_id = site.op_id;
	k->known = site.known;
	return err;
}

int um_report_site_event(struct um_report *r, const struct um_report_lane *l, const struct um_report_running *k,
			 const struct um_activity *a, uint64_t fault_ns)
{
	struct um_cause_site site = site_of(r, l, k);

	site.serving = a->begin < l->serving_until;
	if (a->kind == UM_ACT_GPU_FAULT)
		return um_causes_on_fault(&r->causes, &site, a, fault_ns);
	return um_causes_on_migration(&r->causes, &site, a);
}

int um_report_site_settle(struct um_report *r, const struct um_report_lane *l, uint32_t iteration)
{
	return um_causes_settle(&r->causes, (uint32_t)(l - r->lanes.at), iteration);
}
