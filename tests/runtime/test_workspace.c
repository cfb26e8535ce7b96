/* SPDX-License-Identifier: Apache-2.0
 *
 * umadv_workspace answers which algorithm an op takes, and lends its workspace. With an argument it runs the program
 * alone: tests/runtime/workspace_memory.sh fails its allocations in turn, and refuses status 3.
 */
#include "umadvise.h"

#include "runtime/context.h"

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define MIB (1u << 20)
#define B (2u * MIB)
#define N 4 /* layers */

static const size_t sizes[] = {0, B, 4 * B};
static const uint64_t times[] = {90000000, 40000000, 20000000};

static int no_log; /* of failures that are wanted */

static void keep_quiet(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	if (!no_log)
		diag("%d: %s", level, line);
}

static struct umadv *open_with(enum umadv_device device, uint64_t budget, const char *trace, const char *plan)
{
	struct umadv_options o;
	struct umadv *adv;

	umadv_options_init(&o);
	o.device = device;
	o.budget = budget;
	o.trace = trace;
	o.plan = plan;
	o.log = keep_quiet;
	o.log_level = UMADV_LOG_WARN;
	return umadv_open(&adv, &o) ? NULL : adv;
}

static struct umadv *open_context(enum umadv_device device, uint64_t budget, const char *trace)
{
	return open_with(device, budget, trace, NULL);
}

/* A net whose op in the middle offers workspaces. */
struct program {
	struct umadv *adv;
	void *w, *act[N], *grad;
	size_t choice; /* of the latest iteration */
	void *memory;
	int wrong, unmarked;
};

static int run_op(struct program *p, const char *name, uint64_t ns, const struct umadv_use *uses, size_t n)
{
	const struct umadv_op_info info = {.struct_size = sizeof info, .ns = ns, .uses = uses, .n_uses = n};
	int err = umadv_op_ex(p->adv, NULL, name, &info);

	return err ? err : umadv_sim_run(p->adv, NULL, NULL, NULL);
}

static int run_middle(struct program *p)
{
	int err = umadv_workspace(p->adv, sizes, times, 3, &p->choice, &p->memory);

	if (err)
		return err;
	if ((p->memory != NULL) != (sizes[p->choice] != 0))
		p->wrong++;
	if (p->memory)
		memset(p->memory, 1, 1);
	return run_op(p, "middle", times[p->choice], UMADV_USES(UMADV_READ(p->w)));
}

static int run_iteration(struct program *p)
{
	int err = p->unmarked ? 0 : umadv_iter(p->adv, NULL);

	for (int i = 0; i < N && !err; i++) {
		err = umadv_alloc(p->adv, &p->act[i], B, "act", UMADV_ACT);
		if (!err)
			err = run_op(p, "make", B / 4, UMADV_USES(UMADV_READ(p->w), UMADV_WRITE(p->act[i])));
	}
	if (!err)
		err = run_middle(p);
	if (!err)
		err = umadv_alloc(p->adv, &p->grad, B, "grad", UMADV_GRAD); /* where the workspace was, or elsewhere */
	for (int i = N; i-- && !err;) {
		err = run_op(p, "use", B / 4, UMADV_USES(UMADV_READ(p->act[i]), UMADV_WRITE(p->grad)));
		if (!err)
			err = umadv_free(p->adv, p->act[i]);
	}
	return err ? err : umadv_free(p->adv, p->grad);
}

static int open_program(struct program *p, uint64_t budget, const char *trace)
{
	memset(p, 0, sizeof *p);
	p->adv = open_context(UMADV_DEVICE_SIM, budget, trace);
	return p->adv ? umadv_alloc(p->adv, &p->w, B, "w", UMADV_PARAM) : -ENOMEM;
}

static struct umadv_stats stats_of(const struct program *p)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	umadv_stats_get(p->adv, &s);
	return s;
}

/* Before there is a plan, nothing leaves for a workspace; the plan finds the choice that is worth it. */
static void test_plan(uint64_t blocks, size_t first, size_t then)
{
	struct program p;
	struct umadv_stats s;
	int err = open_program(&p, blocks * B, NULL);

	if (!err)
		err = run_iteration(&p);
	is_int(err, 0, "with %d blocks a program offers workspaces", (int)blocks);
	is_int((long long)p.choice, (long long)first, "without a plan it gets what fits beside all that is alive");
	for (int i = 0; i < 7 && !err; i++)
		err = run_iteration(&p);
	is_int(err, 0, "it goes on");
	is_int((long long)p.choice, (long long)then, "with a plan it gets what is worth its room");
	is_int(p.wrong, 0, "there is memory for each workspace, and for nothing else");
	s = stats_of(&p);
	is_u64(s.plans, 1, "one plan is made");
	is_u64(s.divergences, 0, "another choice is no departure from it");
	is_u64(s.allocs_elsewhere, 0, "workspaces lie where they are planned");
	is_u64(s.tensors_live, 1, "no workspace is left");
	is_u64(s.in_core_ns, 2 * N * (B / 4) + times[2], "in core the fastest would be taken");
	is_u64(p.adv->replan.plan.sched.ops.at[N].choice, then, "the plan says so");
	umadv_close(p.adv);
}

/* Iterations that the library finds have no other choices. */
static void test_unmarked(void)
{
	struct program p;
	int err = open_program(&p, 8 * B, NULL);

	p.unmarked = 1;
	for (int i = 0; i < 12 && !err; i++)
		err = run_iteration(&p);
	is_int(err, 0, "a program marks no iterations");
	ok(stats_of(&p).plans > 0 && p.choice == 2, "its workspaces are planned, too");
	is_u64(stats_of(&p).divergences, 0, "and its plan is followed");
	umadv_close(p.adv);
}

/* With a saved plan the first iteration gets what was planned. */
static void test_saved(void)
{
	char path[] = "/tmp/test_workspace.XXXXXX";
	int fd = mkstemp(path), err;
	struct program p, q = {.wrong = 0};

	if (fd < 0)
		tap_bail("no file");
	close(fd);
	err = open_program(&p, 4 * B, NULL);
	for (int i = 0; i < 4 && !err; i++)
		err = run_iteration(&p);
	is_int(umadv_save_plan(p.adv, path), 0, "a plan with workspaces is saved");
	umadv_close(p.adv);
	q.adv = open_with(UMADV_DEVICE_SIM, 4 * B, NULL, path);
	if (!q.adv)
		tap_bail("the plan is refused");
	umadv_alloc(q.adv, &q.w, B, "w", UMADV_PARAM);
	is_int(run_iteration(&q), 0, "a program starts with it");
	is_int((long long)q.choice, 1, "and gets the workspace of the plan at once");
	umadv_close(q.adv);
	unlink(path);
}

static void test_errors(void)
{
	struct umadv *adv = open_context(UMADV_DEVICE_SIM, 64 * B, NULL);
	uint64_t zero[] = {1, 0};
	size_t huge[] = {SIZE_MAX, 1}, choice = 7;
	void *memory = NULL, *first;

	is_int(umadv_workspace(NULL, sizes, times, 3, &choice, &memory), -EINVAL, "a context must be given");
	is_int(umadv_workspace(adv, NULL, times, 3, &choice, &memory), -EINVAL, "sizes must be given");
	is_int(umadv_workspace(adv, sizes, NULL, 3, &choice, &memory), -EINVAL, "times must be given");
	is_int(umadv_workspace(adv, sizes, times, 0, &choice, &memory), -EINVAL, "one algorithm must be given");
	is_int(umadv_workspace(adv, sizes, times, 65, &choice, &memory), -EINVAL, "65 are too many");
	is_int(umadv_workspace(adv, sizes, times, 3, NULL, &memory), -EINVAL, "the choice must go somewhere");
	is_int(umadv_workspace(adv, sizes, times, 3, &choice, NULL), -EINVAL, "so must the memory");
	is_int(umadv_workspace(adv, sizes, zero, 2, &choice, &memory), -EINVAL, "a time of 0 is refused");
	is_int(umadv_workspace(adv, huge, times, 2, &choice, &memory), -EINVAL, "a size beyond memory is refused");
	ok(choice == 7 && !memory, "nothing was stored");
	is_int(umadv_workspace(adv, sizes + 1, times, 1, &choice, &memory), 0, "one algorithm may be offered");
	is_int(umadv_free(adv, memory), -EINVAL, "its workspace is not for umadv_free");
	first = memory;
	is_int(umadv_workspace(adv, sizes + 1, times, 1, &choice, &memory), 0,
	       "another offer before the op replaces it");
	ok(memory == first, "in the same memory");
	is_int(umadv_op(adv, NULL, "f", UMADV_USES(UMADV_UPDATE(memory))), 0, "the op may name its workspace");
	is_int(adv->iterations.recorder.it.tensors.n, 0, "no iteration records it");
	umadv_iter(adv, NULL);
	is_u64(adv->tensors.live, 0, "it ends with the next call");
	umadv_close(adv);

	adv = open_context(UMADV_DEVICE_NONE, 0, NULL);
	is_int(umadv_workspace(adv, sizes, times, 3, &choice, &memory), 0, "there is an answer without a device");
	ok(choice == 2 && memory, "the fastest, with memory");
	memset(memory, 0, sizes[2]);
	umadv_close(adv);
}

static int launches;

static int launch(void *arg, void *stream)
{
	(void)arg;
	(void)stream;
	launches++;
	return 0;
}

/* An op with a workspace is launched once; its memory is another tensor's afterwards. */
static void test_launch(void)
{
	struct umadv *adv = open_context(UMADV_DEVICE_SIM, 64 * B, NULL);
	const struct um_iteration *it = &adv->iterations.recorder.it;
	size_t choice;
	void *memory, *y;

	umadv_alloc(adv, &y, B, "y", UMADV_OTHER);
	umadv_iter(adv, NULL);
	umadv_workspace(adv, sizes, times, 3, &choice, &memory);
	is_int(umadv_launch(adv, NULL, "f", UMADV_USES(UMADV_WRITE(y)), launch, NULL, 0), 0, "such an op is launched");
	ok(choice == 2 && !adv->iterations.closures.at[0].fn, "it may not be launched again");
	ok(it->ops.at[0].relaunchable, "with another choice it might be");
	is_int((long long)it->ops.at[0].n_uses, 1, "the iteration knows the program's uses");
	is_int((long long)it->ops.at[0].n_ws, 3, "and what it offered");
	umadv_workspace(adv, sizes, times, 1, &choice, &memory);
	umadv_launch(adv, NULL, "g", UMADV_USES(UMADV_WRITE(y)), launch, NULL, 0);
	ok(!memory && adv->iterations.closures.at[1].fn == launch, "an op without a workspace may be");
	is_int(launches, 2, "each was launched once");
	umadv_close(adv);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

struct offerer {
	struct umadv *adv;
	pthread_barrier_t *both;
	unsigned char mark;
	int wrong;
};

static void *offer_often(void *arg)
{
	struct offerer *o = arg;
	size_t choice;
	void *memory = NULL, *stream = o->mark == 1 ? NULL : (void *)2;

	for (int i = 0; i < 200; i++) {
		o->wrong += umadv_workspace(o->adv, sizes + 1, times, 1, &choice, &memory) != 0;
		memset(memory, o->mark, 512);
		pthread_barrier_wait(o->both); /* both have one */
		o->wrong += umadv_op(o->adv, stream, "f", NULL, 0) != 0;
		for (int k = 0; k < 512; k++)
			o->wrong += ((unsigned char *)memory)[k] != o->mark;
		pthread_barrier_wait(o->both);
	}
	return NULL;
}

static void test_threads(void)
{
	struct umadv *adv = open_context(UMADV_DEVICE_NONE, 0, NULL);
	pthread_barrier_t both;
	struct offerer o[2] = {{adv, &both, 1, 0}, {adv, &both, 2, 0}};
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	if (pthread_create(&thread, NULL, offer_often, &o[1]))
		tap_bail("no thread");
	offer_often(&o[0]);
	pthread_join(thread, NULL);
	is_int(o[0].wrong + o[1].wrong, 0, "each thread has a workspace of its own until its next call");
	umadv_close(adv);
	pthread_barrier_destroy(&both);
}

/* --- the trace ---------------------------------------------------------------------------------------------------- */

static void test_trace(void)
{
	char path[] = "/tmp/test_workspace.XXXXXX", text[8192] = "";
	int fd = mkstemp(path);
	struct program p;
	ssize_t n;

	if (fd < 0)
		tap_bail("no file");
	is_int(open_program(&p, 64 * B, path), 0, "a program is recorded");
	run_iteration(&p);
	umadv_close(p.adv);
	close(fd);
	fd = open(path, O_RDONLY);
	n = read(fd, text, sizeof text - 1);
	ok(n > 0 && strstr(text, "\"name\":\"middle\",\"r\":[0],\"w\":[],") &&
		   strstr(text, "\"ws\":[[0,90000000],[2097152,40000000],[8388608,20000000]]"),
	   "the trace has what it offered");
	ok(!strstr(text, "workspace"), "and no tensor for it");
	close(fd);
	unlink(path);
}

/* The program alone: it goes on whatever fails. */
static int run_alone(void)
{
	struct program p;
	int err = open_program(&p, 6 * B, NULL), lent = 0;

	no_log = 1;
	for (int i = 0; i < 4 && !err; i++) {
		err = run_iteration(&p);
		lent += p.memory != NULL;
	}
	if (p.wrong || (err && err != -ENOMEM))
		return 3;
	umadv_close(p.adv);
	return err ? 1 : !lent;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return run_alone();
	test_plan(16, 2, 2);
	test_plan(8, 1, 2);
	test_plan(4, 0, 1);
	test_unmarked();
	test_saved();
	test_errors();
	test_launch();
	test_threads();
	test_trace();
	return tap_done();
}
