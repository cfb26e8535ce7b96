/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives: declared by the program or known by their names, kept in recordings and plans; their measured time is
 * not taken for the device's own.
 */
#include "umadvise.h"

#include "io/plan_file.h"
#include "runtime/plan_times.h"
#include "sim/sim.h"

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

/* --- measured times ----------------------------------------------------------------------------------------------- */

static struct um_gpu *gpu;
static struct um_chosen_device device;

#define OPS 3

static void kernel(uint64_t ns)
{
	struct um_sim_kernel k = {.name = "k", .ns = ns};

	um_sim_run(gpu, NULL, &k);
}

/* Measures ops of `ns`. The last iteration's answer: 1, plan again. */
static int measure(struct um_plan_times *t, struct um_schedule *s, const uint64_t *ns)
{
	int again = 0;

	um_plan_times_begin(t, s, 1);
	for (int n = 0; n < 4; n++) {
		for (uint32_t i = 0; i < OPS; i++) {
			um_op_timer_stop_op(&t->timer, NULL);
			um_op_timer_start_op(&t->timer, NULL, i);
			kernel(ns[i]);
		}
		um_op_timer_stop_op(&t->timer, NULL);
		um_sim_sync(gpu);
		again = um_plan_times_end(t, 1, s, 1);
		if (t->measured)
			break;
	}
	return again;
}

/* Ops of 1 ms; the middle one is a collective. */
static void schedule(struct um_schedule *s, struct um_cost cost)
{
	um_schedule_init(s);
	s->signature = 7;
	for (int i = 0; i < OPS; i++)
		if (um_vec_push(&s->ops, ((struct um_sched_op){.ns = 1000000, .cost = cost, .collective = i == 1})))
			tap_bail("out of memory");
}

static void times(void)
{
	const struct um_cost given = {.ns = 1000000};
	const uint64_t waited[OPS] = {1000000, 9000000, 1000000}, brief[OPS] = {1000000, 400000, 1000000},
		       slower[OPS] = {2000000, 1000000, 1000000};
	struct um_plan_times t;
	struct um_schedule s;

	um_plan_times_init(&t, &device);
	schedule(&s, given);
	is_int(measure(&t, &s, waited), 0, "waiting for others in a collective is no reason to plan again");
	is_u64(t.measured, OPS, "the ops were measured");
	is_u64(t.wait_ns, 8000000, "what the collective took longer than planned is known");
	um_plan_times_fill(&t, &s);
	is_u64(s.ops.at[1].ns, 1000000, "a collective is planned with the time that the program declared");
	s.ops.at[1].cost = (struct um_cost){.ns = 0};
	um_plan_times_fill(&t, &s);
	is_u64(s.ops.at[1].ns, 9000000, "without a declared cost it is planned with the least measured time");
	um_plan_times_fini(&t);
	um_schedule_fini(&s);

	um_plan_times_init(&t, &device);
	schedule(&s, given);
	measure(&t, &s, brief);
	um_plan_times_fill(&t, &s);
	is_u64(s.ops.at[1].ns, 400000, "a measured time below the declared one is the collective's");
	is_u64(t.wait_ns, 0, "then nothing was waited for");
	um_plan_times_fini(&t);
	um_schedule_fini(&s);

	um_plan_times_init(&t, &device);
	schedule(&s, given);
	is_int(measure(&t, &s, slower), 1, "another op that is slower than planned is a reason to plan again");
	um_plan_times_fill(&t, &s);
	is_u64(s.ops.at[0].ns, 2000000, "it is planned with its measured time");
	um_plan_times_fini(&t);
	um_schedule_fini(&s);
}

int main(void)
{
	struct um_sim_options o = {.profile = um_profile_find("v100")};

	is_kept();
	if (um_sim_open(&gpu, &o))
		tap_bail("no simulated device");
	device.gpu = gpu;
	device.profile = *o.profile;
	device.real = 1;
	times();
	gpu->api->close(gpu);
	return tap_done();
}
