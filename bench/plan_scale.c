/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_scale.c - what planning costs as iterations grow: for each number of ops, one line
 *
 *     plan_scale RATIO OPS...     budget = most bytes alive at once / RATIO, on an a100 with duplex 1 and eta 1
 *
 * The iteration is one of training: layers with weights and small biases forward, an activation each that the backward
 * pass reads, some with a scratch tensor; back through them, with gradients of activations that live for two layers and
 * gradients of weights that live until the update; then the update of each layer with two moments. Sizes are drawn, the
 * same ones each time. Times are the processor's own, so that what else runs does not count. Memory is the most that
 * the process had so far.
 */
#include "fixture/plan_fixture.h"

#include "base/clock.h"
#include "replay/compiled_plan.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define OPS_A_LAYER 5 /* forward, norm, backward, weights' gradient, update */

static double now_ms(void)
{
	return (double)um_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

static double peak_mib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss / 1024;
}

static uint64_t kib(uint64_t *r, uint64_t from, uint64_t to)
{
	return (from + fx_draw(r, to - from)) << 10;
}

static void op(struct um_schedule *s, const struct um_profile *profile, const char *name, double moved,
	       const char *uses)
{
	struct um_cost cost = {.bytes = moved};

	fx_op(s, name, um_profile_op_ns(profile, &cost, cost.bytes), uses);
}

struct layer {
	uint32_t w, b, m, v, act, norm, grad, wgrad;
	uint64_t bytes;
};

/* Births and deaths are known beforehand: layer i is forward in ops 2i and 2i + 1, backward in two, then updated. */
static void slots(struct um_schedule *s, struct layer *l, int32_t i, int32_t n, uint64_t *r)
{
	int32_t fwd = 2 * i, bwd = 2 * n + 2 * (n - 1 - i), update = 4 * n + i;
	uint64_t weight = kib(r, 64, 4096);

	l->bytes = kib(r, 256, 6144);
	l->w = fx_slot(s, weight, -1, -1);
	l->b = fx_slot(s, kib(r, 1, 16), -1, -1);
	l->m = fx_slot(s, weight, -1, -1);
	l->v = fx_slot(s, weight, -1, -1);
	l->act = fx_slot(s, l->bytes, fwd, bwd + 1);
	l->norm = fx_slot(s, l->bytes, fwd + 1, bwd + 2);
	l->grad = fx_slot(s, l->bytes, bwd, i ? bwd + 4 : bwd + 2);
	l->wgrad = fx_slot(s, weight, bwd + 1, update + 1);
}

static void generate(struct um_schedule *s, const struct um_profile *profile, int32_t ops)
{
	int32_t n = ops / OPS_A_LAYER > 0 ? ops / OPS_A_LAYER : 1;
	struct layer *l = calloc((size_t)n, sizeof *l);
	uint64_t r = 1;
	char uses[160], before[24] = "";

	if (!l)
		exit(1);
	memset(s, 0, sizeof *s);
	for (int32_t i = 0; i < n; i++)
		slots(s, &l[i], i, n, &r);
	for (int32_t i = 0; i < n; i++) {
		snprintf(uses, sizeof uses, "%s r%u r%u w%u", before, l[i].w, l[i].b, l[i].act);
		op(s, profile, "forward", 24.0 * (double)l[i].bytes, uses);
		snprintf(uses, sizeof uses, "r%u w%u", l[i].act, l[i].norm);
		op(s, profile, "norm", 2.0 * (double)l[i].bytes, uses);
		snprintf(before, sizeof before, "r%u", l[i].norm);
	}
	for (int32_t i = n - 1; i >= 0; i--) {
		if (i + 1 < n)
			snprintf(uses, sizeof uses, "r%u r%u r%u w%u", l[i + 1].grad, l[i].act, l[i].w, l[i].grad);
		else
			snprintf(uses, sizeof uses, "r%u r%u w%u", l[i].act, l[i].w, l[i].grad);
		op(s, profile, "backward", 24.0 * (double)l[i].bytes, uses);
		snprintf(uses, sizeof uses, "r%u r%u w%u", l[i].grad, l[i].norm, l[i].wgrad);
		op(s, profile, "weights", 24.0 * (double)l[i].bytes, uses);
	}
	for (int32_t i = 0; i < n; i++) {
		snprintf(uses, sizeof uses, "r%u u%u u%u u%u", l[i].wgrad, l[i].w, l[i].m, l[i].v);
		op(s, profile, "update", 7.0 * (double)s->slots.at[l[i].w].bytes, uses);
	}
	free(l);
}

/* Births in their order; and the most bytes alive at once, in O(ops + slots). */
static uint64_t finish(struct um_schedule *s)
{
	size_t n = s->ops.n;
	uint32_t *first = calloc(n + 2, sizeof *first);
	int64_t *more = calloc(n + 1, sizeof *more), sum = 0, most = 0;

	if (!first || !more || um_vec_reserve(&s->births, s->slots.n))
		exit(1);
	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];

		more[t->birth < 0 ? 0 : t->birth] += (int64_t)t->bytes;
		if (t->death >= 0)
			more[t->death] -= (int64_t)t->bytes;
		if (t->birth >= 0)
			first[t->birth + 1]++;
		s->births.n += t->birth >= 0;
	}
	for (size_t i = 0; i < n; i++) {
		first[i + 1] += first[i];
		most = (sum += more[i]) > most ? sum : most;
	}
	for (uint32_t i = 0; i < s->slots.n; i++)
		if (s->slots.at[i].birth >= 0) {
			s->slots.at[i].born_ord = first[s->slots.at[i].birth]++;
			s->births.at[s->slots.at[i].born_ord] = i;
		}
	free(first);
	free(more);
	return (uint64_t)most;
}

static int line(const struct um_profile *profile, double ratio, int32_t ops)
{
	struct um_schedule s;
	struct um_plan_request r;
	struct um_compiled_plan program;
	struct um_plan p;
	struct um_plan_figures f;
	char why[200] = "";
	double before, built, checked, compiled;
	uint64_t grow;
	int err;

	generate(&s, profile, ops);
	r = fx_request(&s, (uint64_t)((double)finish(&s) / ratio));
	r.profile = profile;
	um_plan_init(&p);
	um_compiled_plan_init(&program);
	before = now_ms();
	err = um_plan_build(&r, &p, &grow, why, sizeof why);
	built = now_ms();
	if (!err)
		err = um_plan_check(&p, &f, why, sizeof why);
	checked = now_ms();
	if (!err)
		err = um_compiled_plan_build(&p, r.budget / UM_BLOCK_BYTES, &program);
	compiled = now_ms();
	if (err)
		printf("%9zu  %s\n", s.ops.n, *why ? why : strerror(-err));
	else
		printf("%9zu %9zu %9.1f %9.3f %9.3f %10.1f %9.1f %10.1f %9.0f %9.0f\n", s.ops.n, p.hints.n,
		       (double)r.budget / 1048576 / 1024, (double)p.predicted_ns / (double)p.in_core_ns,
		       (double)p.predicted_ns / (double)p.bound_ns, built - before, checked - built, compiled - checked,
		       peak_mib(), peak_mib() * 1048576 / (double)s.ops.n);
	fflush(stdout);
	um_compiled_plan_fini(&program);
	um_plan_fini(&p);
	um_schedule_fini(&s);
	return err;
}

int main(int argc, char **argv)
{
	struct um_profile profile = *um_profile_find("a100");
	int err = 0;

	if (argc < 3)
		return fprintf(stderr, "usage: plan_scale RATIO OPS...\n"), 2;
	profile.duplex = profile.duplex_evict = profile.eta = 1;
	printf("%9s %9s %9s %9s %9s %10s %9s %10s %9s %9s\n", "ops", "hints", "GiB", "x core", "x bound", "plan ms",
	       "check ms", "compile ms", "peak MiB", "B/op");
	for (int i = 2; i < argc && !err; i++)
		err = line(&profile, atof(argv[1]), atoi(argv[i]));
	return err ? 1 : 0;
}
