/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - memory of a plan
 */
#include "model/plan.h"

void um_plan_init(struct um_plan *p)
{
	memset(p, 0, sizeof *p);
	um_schedule_init(&p->sched);
}

void um_plan_fini(struct um_plan *p)
{
	um_schedule_fini(&p->sched);
	free(p->source);
	free(p->workload);
	free(p->profile);
	free(p->strategy);
	p->source = p->workload = p->profile = p->strategy = NULL;
	um_vec_fini(&p->hints);
	um_vec_fini(&p->scratch);
	free(p->start);
	p->start = NULL;
}
