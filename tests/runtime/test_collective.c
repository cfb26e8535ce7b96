/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives: declared by the program or known by their names, kept in recordings and plans.
 */
#include "umadvise.h"

#include "io/plan_file.h"

#include "tap.h"

#include <unistd.h>

#define MIB (1ull << 20)
#define TENSORS 6
#define ITERATIONS 8
#define NCCL "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"

static int relaunched(void *arg, void *stream)
{
	(void)arg;
	(void)stream;
	return 0;
}

/* An iteration: ops on all tensors in turn; op 1 is a declared collective, op 2 one by its name. */
static int iteration(struct umadv *adv, void *const *p)
{
	int err = umadv_iter(adv, NULL);

	for (int i = 0; i < TENSORS && !err; i++) {
		const struct umadv_use use = UMADV_UPDATE(p[i]);
		const struct umadv_op_info info = {.struct_size = sizeof info,
						   .uses = &use,
						   .n_uses = 1,
						   .ns = 1000000,
						   .collective = i == 1,
						   .relaunch = i == 1 ? relaunched : NULL};

		err = umadv_op_ex(adv, NULL, i == 2 ? NCCL : "op", &info);
		if (!err)
			err = umadv_sim_run(adv, NULL, NULL, NULL);
	}
	return err;
}

static int run(const char *trace, const char *plan)
{
	struct umadv_options o;
	struct umadv *adv;
	void *p[TENSORS];
	int err;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 16 * MIB;
	o.trace = trace;
	err = umadv_open(&adv, &o);
	if (err)
		tap_bail("no simulated device");
	for (int i = 0; i < TENSORS && !err; i++)
		err = umadv_alloc(adv, &p[i], 4 * MIB, "t", UMADV_PARAM);
	for (int i = 0; i < ITERATIONS && !err; i++)
		err = iteration(adv, p);
	if (!err)
		err = umadv_save_plan(adv, plan);
	umadv_close(adv);
	return err;
}

static int lines_with(const char *path, const char *text)
{
	char line[4096];
	FILE *f = fopen(path, "r");
	int n = 0;

	while (f && fgets(line, sizeof line, f))
		n += strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return n;
}

static void is_kept(void)
{
	char trace[64], file[64];
	struct um_plan plan;

	snprintf(trace, sizeof trace, "test_collective.%ld.umtrace", (long)getpid());
	snprintf(file, sizeof file, "test_collective.%ld.umplan", (long)getpid());
	um_plan_init(&plan);
	is_int(run(trace, file), 0, "a program with collectives runs");
	is_int(lines_with(trace, "\"collective\":true"), 2 * ITERATIONS, "it says of each collective that it is one");
	is_int(um_plan_read(file, &plan, NULL), 0, "the plan is read back");
	is_int((int)plan.sched.ops.n, TENSORS, "it has the ops of an iteration");
	for (size_t i = 0; i < plan.sched.ops.n; i++)
		is_int(plan.sched.ops.at[i].collective, i == 1 || i == 2, "op %zu of the plan is as it was declared",
		       i);
	ok(plan.sched.ops.n == TENSORS && !plan.sched.ops.at[1].relaunchable, "a collective is not launched again");
	um_plan_fini(&plan);
	unlink(trace);
	unlink(file);
}

int main(void)
{
	is_kept();
	return tap_done();
}
