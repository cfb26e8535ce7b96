/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs train networks whose activations are dropped and made anew, with real arithmetic: layers that skip,
 * activations that are updated in place, freed and born again, iterations that differ, accesses of the CPU, launches
 * and hints that fail, a second thread. All that was discarded is poisoned; all numbers are compared with the same
 * program on plain memory.
 * A launch that breaks its promise is named by UMADVISE_CHECK.
 *
 *     test_relaunches SEED        one program, where memory may run out: 0, 3 if a number is wrong, 2 if a call failed
 *
 * UM_TEST_PROGRAMS=N runs N random programs from UM_TEST_SEED on.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "fixture/random.h"
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES (2ull << 20)
#define N (BYTES / sizeof(float))
#define STRIDE 4099 /* elements that are computed */
#define SAMPLES ((N + STRIDE - 1) / STRIDE)
#define LAYERS 16
#define MOST_JOBS 20000
#define ITERATIONS 10

/* A tensor, and what it should hold. */
struct tensor {
	float *at;
	float *is;
};

/* out = (out) + f(in[0], in[1], in[2]), also = f(in[0], in[1], in[2]) / 2 */
struct job {
	struct tensor *out, *also, *in[3]; /* also: NULL: none */
	float *at, *also_at, *from[3]; /* addresses as of the launch */
	float factor;
	int adds;
};

struct program {
	struct umadv *adv;
	um_stream other; /* a second stream */
	uint64_t random;
	struct tensor y[LAYERS + 1], z[LAYERS], w[LAYERS], g[2], extra;
	struct job jobs[MOST_JOBS];
	uint32_t n_jobs;
	unsigned fail_launches, fail_hints, diverge; /* the chance of each is one in this; 0: none */
	int by_iteration; /* activations are born in each iteration */
	int updates; /* activations are updated in place, and some layers have a second output z */
	int threads; /* a second thread may call */
	int check; /* UMADVISE_CHECK=1 */
	const float *breaks; /* an activation: launched again, its op writes something else */
	unsigned broken; /* how often */
	unsigned named; /* lines about it */
	char line[256]; /* the first */
	unsigned strays; /* lines about accesses that an op does not declare */
	const char *plan, *save; /* files: to begin with, to write; or NULL */
	uint64_t wrong;
	int err;
};

static struct program *p;
static const void *direct; /* argument of the launch by umadv_launch itself */
static const struct um_gpu_api *sim;
static struct um_gpu_api api;
static uint64_t launches; /* again */
static uint64_t again_in_place; /* of them updates */

/* --- arithmetic --------------------------------------------------------------------------------------------------- */

static float value(float a, float b, float c, float factor)
{
	float sum = a * factor + b * 0.5f - c * 0.25f + 0.125f;

	return sum / (1 + (sum < 0 ? -sum : sum));
}

static void kernel(void *arg)
{
	const struct job *j = arg;

	if (p->check && !j->adds)
		memset(j->at, 0, BYTES); /* all of it is compared */
	if (p->check && j->also)
		memset(j->also_at, 0, BYTES);
	for (size_t i = 0; i < N; i += STRIDE) {
		float f = value(j->from[0][i], j->from[1][i], j->from[2][i], j->factor);

		j->at[i] = (j->adds ? j->at[i] : 0) + f;
		if (j->also)
			j->also_at[i] = f / 2;
	}
}

/* The last element, which is not computed, differs. */
static void other_kernel(void *arg)
{
	const struct job *j = arg;

	kernel(arg);
	j->at[N - 1] = 1;
}

static void expect(const struct job *j)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		float f = value(j->in[0]->is[i], j->in[1]->is[i], j->in[2]->is[i], j->factor);

		j->out->is[i] = (j->adds ? j->out->is[i] : 0) + f;
		if (j->also)
			j->also->is[i] = f / 2;
	}
}

static void compare(const struct tensor *t)
{
	for (size_t i = 0; i < SAMPLES; i++)
		p->wrong += memcmp(&t->at[i * STRIDE], &t->is[i], sizeof(float)) != 0;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

static int one_in(unsigned n)
{
	return n && test_random(&p->random, n) == 0;
}

static int launch(void *arg, void *stream)
{
	struct job *j = *(struct job **)arg;

	launches += arg != direct;
	again_in_place += arg != direct && j->adds;
	if (arg != direct && one_in(p->fail_launches))
		return 1;
	if (arg != direct && j->at == p->breaks) {
		p->broken++;
		return umadv_sim_run(p->adv, stream, other_kernel, j);
	}
	return umadv_sim_run(p->adv, stream, kernel, j);
}

static int prefetch(struct um_gpu *gpu, const void *addr, size_t bytes, struct um_location to, unsigned flags,
		    um_stream stream)
{
	return one_in(p->fail_hints) ? UM_CUDA_INVALID_VALUE
				     : sim->cudaMemPrefetchAsync(gpu, addr, bytes, to, flags, stream);
}

static void run(void *stream, const char *name, struct job job, int relaunchable)
{
	struct job *j = &p->jobs[p->n_jobs++];
	struct umadv_use uses[5];
	uint32_t n_uses = 4;

	if (p->n_jobs >= MOST_JOBS)
		tap_bail("too many jobs");
	*j = job;
	j->at = j->out->at;
	for (int i = 0; i < 3; i++) {
		j->from[i] = j->in[i]->at;
		uses[i] = UMADV_READ(j->from[i]);
	}
	uses[3] = j->adds ? UMADV_UPDATE(j->at) : UMADV_WRITE(j->at);
	if (j->also) {
		j->also_at = j->also->at;
		uses[n_uses++] = UMADV_WRITE(j->also_at);
	}
	direct = &j;
	if (relaunchable) {
		p->err |= umadv_launch(p->adv, stream, name, uses, n_uses, launch, &j, sizeof j);
	} else {
		p->err |= umadv_op(p->adv, stream, name, uses, n_uses);
		p->err |= umadv_sim_run(p->adv, stream, kernel, j);
	}
	expect(j);
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static void birth(struct tensor *t, const char *name)
{
	void *at;

	if (umadv_alloc(p->adv, &at, BYTES, name, UMADV_OTHER))
		tap_bail("no memory");
	t->at = at;
	t->is = t->is ? t->is : calloc(SAMPLES, sizeof *t->is);
	if (!t->is)
		tap_bail("no memory");
}

static void fill(struct tensor *t, float with)
{
	for (size_t i = 0; i < SAMPLES; i++)
		t->at[i * STRIDE] = t->is[i] = with + (float)i / SAMPLES;
}

/* --- programs ----------------------------------------------------------------------------------------------------- */

/* Reads a tensor on the CPU. */
static void look(struct tensor *t)
{
	p->err |= umadv_host(p->adv, "look", UMADV_USES(UMADV_READ(t->at)));
	p->err |= umadv_sim_sync(p->adv);
	compare(t);
}

static void *announce_elsewhere(void *arg)
{
	run(p->other, "extra", (struct job){&p->extra, NULL, {arg, arg, arg}, .factor = 0.4f}, 1);
	return NULL;
}

/* Another thread announces an op, after all work. */
static void call_elsewhere(struct tensor *t)
{
	pthread_t thread;

	p->err |= umadv_sim_sync(p->adv);
	if (pthread_create(&thread, NULL, announce_elsewhere, t) || pthread_join(thread, NULL))
		tap_bail("no thread");
	p->err |= umadv_sim_sync(p->adv);
}

/* Something that other iterations do not do; `known`: activations that are written. 1: the iteration ends. */
static int differ(int known)
{
	struct tensor *y = &p->y[test_random(&p->random, (uint32_t)known + 1)],
		      *w = &p->w[test_random(&p->random, LAYERS)];

	switch (test_random(&p->random, p->threads ? 8 : 7)) {
	case 0:
		look(y);
		return 0;
	case 1:
		run(NULL, "extra", (struct job){&p->extra, NULL, {y, w, y}, .factor = 0.3f}, 1);
		return 0;
	case 2:
		run(NULL, "extra", (struct job){w, NULL, {y, y, y}, .factor = 0.01f, .adds = 1}, 0);
		return 0;
	case 3: /* on another stream, after all work */
		p->err |= umadv_sim_sync(p->adv);
		run(p->other, "extra", (struct job){&p->extra, NULL, {y, w, w}, .factor = 0.2f}, 1);
		p->err |= umadv_sim_sync(p->adv);
		return 0;
	case 4: /* a weight is another tensor from now on */
		p->err |= umadv_free(p->adv, w->at);
		birth(w, "w");
		p->err |= umadv_host(p->adv, "fill", UMADV_USES(UMADV_WRITE(w->at)));
		p->err |= umadv_sim_sync(p->adv);
		fill(w, 0.25f);
		return 0;
	case 5:
		p->err |= umadv_forget_stream(p->adv, NULL);
		return 0;
	case 7:
		call_elsewhere(y);
		return 0;
	default:
		return 1;
	}
}

static int has_z(int layer)
{
	return p->updates && layer % 3 == 1;
}

static void free_layer(int i)
{
	p->err |= umadv_free(p->adv, p->y[i + 1].at);
	if (has_z(i))
		p->err |= umadv_free(p->adv, p->z[i].at);
}

/* Updates a layer's activation in place. 1: the iteration ends. */
static int update_in_place(int i)
{
	struct tensor *y = &p->y[i + 1], *in = &p->y[i], *w = &p->w[i];

	if (!p->updates || i % 4 == 2)
		return 0;
	if (i % 7 == 3) /* its content before is used, too */
		run(NULL, "extra", (struct job){&p->extra, NULL, {y, w, y}, .factor = 0.6f}, 1);
	run(NULL, "activate", (struct job){y, NULL, {in, w, in}, .factor = 0.5f, .adds = 1}, i % 6 != 5);
	if (one_in(p->diverge) && differ(i + 1))
		return 1;
	if (i % 3 == 0)
		run(NULL, "add", (struct job){y, NULL, {&p->y[i / 2], in, w}, .factor = 0.4f, .adds = 1}, 1);
	return 0;
}

static void iteration(void)
{
	int i, born = 0, ends = 0;

	p->err |= umadv_iter(p->adv, NULL);
	for (i = 0; i < LAYERS && !ends; i++) {
		int from = i > 2 && i % 4 == 3 ? i - 2 : i;

		if (p->by_iteration) {
			birth(&p->y[i + 1], "y");
			if (has_z(i))
				birth(&p->z[i], "z");
			born = i + 1;
		}
		run(NULL, "forward",
		    (struct job){&p->y[i + 1],
				 has_z(i) ? &p->z[i] : NULL,
				 {&p->y[i], &p->w[i], &p->y[from]},
				 .factor = 0.7f},
		    i % 5 != 4);
		ends = (one_in(p->diverge) && differ(i + 1)) || update_in_place(i);
	}
	if (!ends)
		run(NULL, "loss",
		    (struct job){&p->g[0], NULL, {&p->y[LAYERS], &p->y[LAYERS], &p->w[0]}, .factor = 0.9f}, 1);
	for (i = LAYERS - 1; i >= 0 && !ends; i--) {
		struct tensor *from = &p->g[(LAYERS - 1 - i) % 2], *to = &p->g[(LAYERS - i) % 2];

		run(NULL, "backward", (struct job){to, NULL, {from, &p->y[i], &p->y[i + 1]}, .factor = 0.8f}, 1);
		run(NULL, "update",
		    (struct job){
			    &p->w[i], NULL, {from, &p->y[i], has_z(i) ? &p->z[i] : to}, .factor = 0.01f, .adds = 1},
		    0);
		if (p->by_iteration) {
			free_layer(i);
			born = i;
		}
		ends = one_in(p->diverge) && differ(i);
	}
	for (; born; born--)
		free_layer(born - 1);
}

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	p->strays += strncmp(line, "check: op", 9) == 0;
	if (!strstr(line, "launched again"))
		diag("%s", line);
	else if (!p->named++)
		snprintf(p->line, sizeof p->line, "%s", line);
}

static void open_program(double ratio)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct umadv_options o;
	struct um_gpu *gpu;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = (uint64_t)((2 * LAYERS + (p->updates ? LAYERS / 3 : 0) + 4) * (double)BYTES / ratio) /
		   UM_BLOCK_BYTES * UM_BLOCK_BYTES;
	o.log_level = p->check ? UMADV_LOG_WARN : UMADV_LOG_ERROR;
	o.log = p->check ? on_log : NULL;
	o.check = p->check ? UMADV_CHECK_ON : UMADV_CHECK_OFF;
	struct um_sim_options so = {.profile = v100, .capacity = o.budget, .backed = 1, .poison = 1, .check = p->check};

	if (um_sim_open(&gpu, &so))
		tap_bail("no device");
	sim = gpu->api;
	api = *sim;
	api.cudaMemPrefetchAsync = prefetch;
	gpu->api = &api;
	if (gpu->api->cudaStreamCreateWithFlags(gpu, &p->other, 1))
		tap_bail("no stream");
	if (um_context_open(&p->adv, &o, gpu, v100))
		tap_bail("no context");
	if (p->plan)
		p->err |= umadv_load_plan(p->adv, p->plan);
}

static struct umadv_stats play(uint64_t seed, double ratio)
{
	struct umadv_stats stats = {.struct_size = sizeof stats};

	p->random = seed;
	open_program(ratio);
	for (int i = 0; i < LAYERS; i++) {
		birth(&p->w[i], "w");
		fill(&p->w[i], 0.5f + (float)i / LAYERS);
	}
	for (int i = 0; i <= LAYERS; i++)
		if (!i || !p->by_iteration)
			birth(&p->y[i], "y");
	for (int i = 0; i < LAYERS; i++)
		if (has_z(i) && !p->by_iteration)
			birth(&p->z[i], "z");
	fill(&p->y[0], -0.5f);
	birth(&p->g[0], "g");
	birth(&p->g[1], "g");
	birth(&p->extra, "extra");
	if (p->breaks)
		p->breaks = p->y[3].at;
	for (int i = 0; i < ITERATIONS; i++)
		iteration();
	for (int i = 0; i < LAYERS; i++)
		look(&p->w[i]);
	if (p->save)
		p->err |= umadv_save_plan(p->adv, p->save);
	umadv_stats_get(p->adv, &stats);
	umadv_close(p->adv);
	for (int i = 0; i <= LAYERS; i++)
		free(p->y[i].is);
	for (int i = 0; i < LAYERS; i++) {
		free(p->w[i].is);
		free(p->z[i].is);
	}
	free(p->g[0].is);
	free(p->g[1].is);
	free(p->extra.is);
	return stats;
}

static void begin(void)
{
	memset(p, 0, sizeof *p);
}

static void test_ratios(void)
{
	static const double ratios[] = {1.5, 2, 3};

	for (int i = 0; i < 3; i++) {
		struct umadv_stats s;

		begin();
		s = play(1, ratios[i]);
		ok(s.relaunches > 0, "with 1 / %g of the memory ops are launched again (%llu)", ratios[i],
		   (unsigned long long)s.relaunches);
		is_int((long)p->wrong, 0, "all numbers are right");
		is_int(p->err, 0, "no call fails");
	}
}

static void test_updates(void)
{
	struct umadv_stats s;

	begin();
	p->updates = 1;
	s = play(1, 2);
	ok(s.relaunches > 0 && again_in_place, "activations that were updated in place are made anew (%llu, %llu)",
	   (unsigned long long)s.relaunches, (unsigned long long)again_in_place);
	is_int((long)p->wrong, 0, "all numbers are right");
	is_int(p->err, 0, "no call fails");
}

static void test_failures(void)
{
	struct umadv_stats s;
	uint64_t all;

	begin();
	all = play(2, 2).relaunches;
	begin();
	p->fail_launches = 5;
	s = play(2, 2);
	ok(s.relaunch_errors > 0, "some launches fail");
	is_int((long)p->wrong, 0, "all numbers are right, since they are tried again");
	is_int(p->err, 0, "no call fails");
	ok(s.relaunches < all / 2, "soon nothing is launched again (%llu of %llu)", (unsigned long long)s.relaunches,
	   (unsigned long long)all);
}

static void test_check(void)
{
	static const float any;
	struct umadv_stats s, t;
	uint64_t predicted;

	begin();
	s = play(1, 2);
	predicted = s.plan_ns;
	begin();
	p->check = 1;
	t = play(1, 2);
	is_int((long)t.relaunch_mismatches, 0, "no launch makes other content than the program's did");
	is_int(p->named, 0, "nothing is logged");
	ok(t.relaunches == s.relaunches && t.plan_ns == s.plan_ns, "checks change no plan");
	begin();
	p->check = 1;
	p->breaks = &any;
	t = play(1, 2);
	is_int((long)p->wrong, 0, "all numbers are right if a relaunch changes an element that no op reads");
	ok(t.relaunch_mismatches > 0 && p->broken == t.relaunch_mismatches,
	   "each changed element counts as a mismatch (%u, %llu)", p->broken,
	   (unsigned long long)t.relaunch_mismatches);
	is_str(p->line,
	       "check: in iteration 2 op 'forward' was launched again and wrote other content to tensor 'y' than "
	       "before: it is not launched again. Announce it by umadv_op, or declare all that it uses",
	       "one line names the iteration, the op and the tensor");
	ok(t.relaunches < s.relaunches / 2, "soon the op is not launched again (%llu, %llu)",
	   (unsigned long long)s.relaunches, (unsigned long long)t.relaunches);
	ok(t.plan_ns > predicted, "the next plan copies instead");
	is_int(p->err, 0, "no call fails");
}

static void test_saved(void)
{
	char path[] = "/tmp/test_relaunches.XXXXXX";
	int fd = mkstemp(path);
	struct umadv_stats first, again;

	begin();
	p->save = path;
	first = play(3, 2);
	is_int(p->err, 0, "a plan with relaunches is saved");
	begin();
	p->plan = path;
	again = play(3, 2);
	is_int(p->err, 0, "it is loaded");
	is_int((long)p->wrong, 0, "all numbers are right");
	ok(again.relaunches > first.relaunches, "ops are launched again earlier (%llu, %llu)",
	   (unsigned long long)first.relaunches, (unsigned long long)again.relaunches);
	close(fd);
	unlink(path);
}

static uint64_t number(const char *variable, uint64_t other)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : other;
}

static void test_random_programs(void)
{
	uint64_t first = number("UM_TEST_SEED", 0), n = number("UM_TEST_PROGRAMS", 24);
	uint64_t wrong = 0, again = 0, errors = 0, failed = 0, other = 0, strays = 0;

	if (n < 24) /* in fewer no launch fails */
		n = 24;
	for (uint64_t seed = first; seed < first + n; seed++) {
		begin();
		p->diverge = seed % 3 ? 20 << seed % 4 : 0;
		p->fail_launches = seed % 4 == 1 ? 40 : 0;
		p->fail_hints = seed % 5 == 2 ? 10 : 0;
		p->by_iteration = seed % 2;
		p->updates = seed / 2 % 2;
		p->threads = seed % 6 == 5;
		p->check = seed % 5 == 1;
		struct umadv_stats s = play(seed, 1.25 + (double)(seed % 8) / 4);

		if (p->wrong || p->err || p->strays || s.relaunch_mismatches)
			diag("seed %llu: %llu wrong numbers, error %d, %u undeclared accesses, %llu other contents",
			     (unsigned long long)seed, (unsigned long long)p->wrong, p->err, p->strays,
			     (unsigned long long)s.relaunch_mismatches);
		wrong += p->wrong;
		errors += p->err != 0;
		again += s.relaunches;
		failed += s.relaunch_errors;
		other += s.relaunch_mismatches;
		strays += p->strays;
	}
	is_int((long)wrong, 0, "%llu random programs compute the right numbers", (unsigned long long)n);
	is_int((long)errors, 0, "no call fails");
	ok(again > n, "ops are launched again (%llu)", (unsigned long long)again);
	is_int((long)other, 0, "where it is checked, they make the same content");
	is_int((long)strays, 0, "nor is an op named that touches only what it declares");
	ok(failed > 0, "and some of these launches fail (%llu)", (unsigned long long)failed);
}

static int survive(uint64_t seed)
{
	begin();
	p->diverge = seed % 2 ? 40 : 0;
	p->by_iteration = seed / 2 % 2;
	p->check = seed / 4 % 2;
	p->updates = seed / 8 % 2;
	play(seed, 2);
	return p->wrong && !p->err ? 3 : p->err ? 2 : 0;
}

int main(int argc, char **argv)
{
	p = calloc(1, sizeof *p);
	if (!p)
		return 2;
	if (argc > 1)
		return survive(strtoull(argv[1], NULL, 10));
	test_ratios();
	test_updates();
	test_failures();
	test_check();
	test_saved();
	test_random_programs();
	free(p);
	return tap_done();
}
