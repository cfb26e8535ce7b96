/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes on simulated devices: they must find what the device was made of.
 */
#include "sim/sim.h"
#include "probe/derive.h"
#include "probe/guard.h"
#include "probe/ptx.h"
#include "fixture/random.h"
#include "tap.h"

#include <errno.h>
#include <math.h>

#define MIB (1ull << 20)

static struct um_gpu *open_sim(const struct um_profile *p, struct um_launcher **l)
{
	struct um_gpu *gpu;

	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = p}) || um_launcher_sim(l, gpu, p))
		tap_bail("no simulated device");
	return gpu;
}

/* A clock that now and then is late: by up to 200 ns, and one time in 16 by up to 400 us. */
static struct {
	const struct um_gpu_api *api;
	struct um_gpu_api late_api;
	uint64_t late, seed;
} noisy;

static uint64_t noisy_now(struct um_gpu *gpu)
{
	noisy.late += test_random(&noisy.seed, test_random(&noisy.seed, 16) ? 200 : 400000);
	return noisy.api->now(gpu) + noisy.late;
}

static void make_noisy(struct um_gpu *gpu)
{
	noisy.api = gpu->api;
	noisy.late_api = *gpu->api;
	noisy.late_api.now = noisy_now;
	gpu->api = &noisy.late_api;
}

/* All probes on a device of profile `p`. */
static void observe(const struct um_profile *p, uint64_t budget, int noise, struct um_observed *seen)
{
	struct um_launcher *l;
	struct um_gpu *gpu = open_sim(p, &l);
	const struct um_probe_setup setup = {.gpu = gpu, .launcher = l, .budget = budget, .rounds = noise ? 11 : 0};
	char why[160];

	if (noise)
		make_noisy(gpu);
	*seen = (struct um_observed){0};
	for (unsigned i = 0; um_probe_name(i); i++) {
		int rc = um_probe_run(i, &setup, seen, why, sizeof why);

		if (rc)
			ok(0, "%s: probe %s: %d: %s", p->name, um_probe_name(i), rc, why);
	}
	l->close(l);
	gpu->api->close(gpu);
}

static int never_measured(enum um_constant c)
{
	return c == UM_CONST_c_evict || c == UM_CONST_c_evict_unused || c == UM_CONST_c_zero ||
	       c == UM_CONST_duplex_evict;
}

/* Every constant within 5 %, starting from a profile that knows nothing of the device. */
static void recovers(const struct um_profile *p, uint64_t budget, int noise)
{
	struct um_observed seen;
	struct um_derived derived;
	struct um_profile q;
	unsigned bad = 0;

	observe(p, budget, noise, &seen);
	um_profile_init(&q);
	um_derive(&seen, &q, &derived);
	for (int c = 0; c < UM_CONST_N; c++) {
		double want = um_constant_get(p, (enum um_constant)c), got = um_constant_get(&q, (enum um_constant)c);

		if (never_measured((enum um_constant)c) || (c == UM_CONST_duplex && budget && budget < 24 * MIB)) {
			bad += derived.at[c].n != 0;
		} else if (!derived.at[c].n || fabs(got - want) > 0.05 * fabs(want)) {
			printf("# %s: %s: want %g, got %g (%s)\n", p->name, um_constant_name((enum um_constant)c), want,
			       got, derived.at[c].n ? "measured" : "not measured");
			bad++;
		}
	}
	if (derived.visits.n == 0 || fabs(derived.visits.value - 6) > 0.3) {
		printf("# %s: %g visits\n", p->name, derived.visits.value);
		bad++;
	}
	is_u64(bad, 0, "%s with %u MiB: every constant is found", p->name, (unsigned)(budget / MIB));
}

/* Every constant times another odd factor. */
static struct um_profile perturbed(const char *name, unsigned seed)
{
	struct um_profile p = *um_profile_find(name);

	snprintf(p.name, sizeof p.name, "%s, bent %u", name, seed);
	for (int c = 0; c < UM_CONST_N; c++) {
		double factor = 0.61 + 0.037 * (double)((c * 17 + seed * 11) % 31);
		double value = um_constant_get(&p, (enum um_constant)c) * factor;

		if (c == UM_CONST_duplex || c == UM_CONST_duplex_evict || c == UM_CONST_eta || c == UM_CONST_b_remote)
			value = fmin(value, 1);
		um_constant_set(&p, (enum um_constant)c, value);
	}
	return p;
}

/* --- medians and lines ------------------------------------------------------------------------------------------- */

static void check_stats(void)
{
	double odd[] = {5, 1, 100}, even[] = {4, 1, 2, 1000};
	struct um_series s = {.sizes = 3, .rounds = 3, .x = {1, 2, 4}};
	struct um_figure f, none = {0};
	struct um_line l;

	ok(um_median(odd, 3) == 5 && um_median(even, 4) == 3, "the median is in the middle");
	f = um_figure_of((double[]){10, 11, 12, 13, 900}, 5);
	ok(f.value == 12 && f.spread == 1 && f.n == 5, "one late answer changes neither median nor spread");
	for (unsigned r = 0; r < 3; r++)
		for (unsigned i = 0; i < 3; i++)
			s.y[r][i] = 7 + 3 * s.x[i];
	s.y[1][2] = 1000;
	l = um_series_line(&s);
	ok(fabs(l.slope.value - 3) < 1e-9 && fabs(l.fixed.value - 7) < 1e-9,
	   "one late answer does not change a fitted line");
	f = um_figure_add((struct um_figure){5, 3, 4}, -2, (struct um_figure){1, 2, 9});
	ok(f.value == 3 && f.spread == 5 && f.n == 4, "figures add up, and so do their spreads");
	ok(!um_figure_add(f, 1, none).n && !um_figure_add(none, 1, f).n, "a sum with an unknown figure is unknown");
}

/* --- what observations are worth --------------------------------------------------------------------------------- */

static void check_derive(void)
{
	struct um_profile p = *um_profile_find("v100"), before = p;
	struct um_observed seen = {0};
	struct um_derived d;

	um_derive(&seen, &p, &d);
	ok(memcmp(&p, &before, sizeof p) == 0, "without observations the profile is unchanged");
	seen.at[UM_OBS_PF_NEW_BLOCK] = (struct um_figure){20000, 100, 9};
	seen.at[UM_OBS_PF_AGAIN_BLOCK] = (struct um_figure){19900, 100, 9};
	seen.at[UM_OBS_PF_FIRST_BLOCK] = (struct um_figure){9900, 10, 9};
	seen.at[UM_OBS_D2H_BLOCK] = (struct um_figure){200000, 10, 9};
	seen.at[UM_OBS_D2H_BLOCK_FIRST] = (struct um_figure){300000, 10, 9};
	um_derive(&seen, &p, &d);
	ok(d.at[UM_CONST_c_unmap].n && p.c_unmap == 0, "less than nothing, within the noise, is nothing");
	ok(!d.at[UM_CONST_c_dma].n && p.c_dma == before.c_dma, "beyond it, it is no measurement");
	ok(!d.at[UM_CONST_c_hostpop].n && p.c_hostpop == before.c_hostpop,
	   "a constant that rests on an unknown figure is unknown");
	seen.at[UM_OBS_FLOPS] = (struct um_figure){NAN, 0, 9};
	seen.at[UM_OBS_DUPLEX] = (struct um_figure){1.3, 0, 9};
	um_derive(&seen, &p, &d);
	ok(!d.at[UM_CONST_flops].n && p.flops == before.flops, "NaN is not a measurement");
	ok(p.duplex == 1, "a share is a whole at most");
	seen.at[UM_OBS_DISCARD_BLOCK] = (struct um_figure){12345, 0, 9};
	um_derive(&seen, &p, &d);
	ok(!d.at[UM_CONST_c_disc_u].n, "a discard after which writes do not fault is of the other kind");
	seen.at[UM_OBS_DISCARD_FAULTS] = (struct um_figure){1, 0, 9};
	um_derive(&seen, &p, &d);
	is_u64(p.c_disc_u, 12345, "a discard after which writes fault has the measured cost");
	for (int c = 0; c < UM_CONST_N; c++)
		if (!*um_constant_name((enum um_constant)c) || !*um_constant_why((enum um_constant)c))
			ok(0, "constant %d has no name", c);
	for (int o = 0; o < UM_OBS_N; o++)
		if (um_observation_find(um_observation_name((enum um_observation)o)) != o)
			ok(0, "observation %d is not found", o);
	is_int(um_observation_find("nonsense"), -ENOENT, "an unknown observation is not found");
	is_int(um_probe_find("nonsense"), -ENOENT, "an unknown probe is not found");
}

/* An H100 with driver 580, which maps each page for the CPU: a block in 240 us, of which the copy is 40. */
static void check_slow_mapping(void)
{
	struct um_profile p = *um_profile_find("h100");
	struct um_observed seen = {0};
	struct um_derived d;

	seen.at[UM_OBS_H2D_PAGE] = (struct um_figure){1895.1, 55.1, 11};
	seen.at[UM_OBS_D2H_PAGE] = (struct um_figure){7114.1, 159.8, 11};
	seen.at[UM_OBS_MAP_PAGE] = (struct um_figure){7259.3, 111.6, 11};
	seen.at[UM_OBS_LINK_H2D] = (struct um_figure){55.154e9, 1.9e8, 11};
	seen.at[UM_OBS_LINK_D2H] = (struct um_figure){55.368e9, 1.2e8, 11};
	seen.at[UM_OBS_RATE_H2D] = (struct um_figure){49.272e9, 4.7e8, 11};
	seen.at[UM_OBS_RATE_D2H] = (struct um_figure){11.852e9, 6.8e8, 11};
	um_derive(&seen, &p, &d);
	ok(fabs(p.h2d / 55.154e9 - 1) < 0.01 && fabs(p.d2h / 55.368e9 - 1) < 0.01,
	   "where mapping hides the copies to the host, the link's rates count: %g, %g", p.h2d, p.d2h);
	ok(fabs(p.eta - 0.893) < 0.001, "and the share that the other direction reaches: %g", p.eta);
	seen.at[UM_OBS_MAP_PAGE] = (struct um_figure){6878.8, 100, 11};
	um_derive(&seen, &p, &d);
	ok(fabs(p.d2h / 55.368e9 - 1) < 0.01, "copies five times as fast as the link are noise: %g", p.d2h);
	seen.at[UM_OBS_MAP_PAGE] = (struct um_figure){5700, 100, 11};
	um_derive(&seen, &p, &d);
	ok(fabs(p.d2h * p.eta / (65536e9 / 1414.1) - 1) < 0.01, "a copy that is seen counts: %g", p.d2h * p.eta);
	seen.at[UM_OBS_LINK_D2H].n = 0;
	um_derive(&seen, &p, &d);
	ok(!d.at[UM_CONST_d2h].n && !d.at[UM_CONST_eta].n, "without copies of pinned memory there are no rates");
}

/* --- the guard --------------------------------------------------------------------------------------------------- */

static void check_guard(void)
{
	struct um_launcher *l;
	struct um_gpu *gpu = open_sim(um_profile_find("k40"), &l); /* 12 GiB */
	char why[160] = "";
	void *p;

	is_u64(um_probe_allowance(gpu), 1536 * MIB, "an eighth of what is free");
	is_int(um_probe_guard(gpu, 1536 * MIB, 0, why, sizeof why), 0, "may be had");
	is_int(um_probe_guard(gpu, 1536 * MIB, 1536 * MIB, why, sizeof why), 0,
	       "a budget as large as free memory is accepted");
	is_str(why, "", "an accepted device has no reason");
	is_int(um_probe_guard(gpu, 1536 * MIB + 1, 0, why, sizeof why), -EPERM, "a byte more is refused");
	ok(strstr(why, "1/8") != NULL, "the refusal has its reason: %s", why);
	is_int(um_probe_guard(gpu, MIB, 1537 * MIB, why, sizeof why), -EPERM, "a larger budget is refused, too");
	ok(!gpu->api->cudaMalloc(gpu, &p, 8ull << 30), "somebody takes 8 GiB");
	is_int(um_probe_guard(gpu, 1024 * MIB, 0, why, sizeof why), -EPERM, "less free memory allows less");
	is_int(um_probe_guard(gpu, 512 * MIB, 0, why, sizeof why), 0, "an eighth of the rest is allowed");
	l->close(l);
	gpu->api->close(gpu);
}

/* --- devices that fail ------------------------------------------------------------------------------------------- */

static struct um_gpu_api weak;
static const struct um_gpu_api *strong;
static int calls_left;

static int weak_prefetch(struct um_gpu *gpu, const void *ptr, size_t bytes, struct um_location to, unsigned flags,
			 um_stream stream)
{
	return calls_left-- > 0 ? strong->cudaMemPrefetchAsync(gpu, ptr, bytes, to, flags, stream) : 46;
}

static int mute_info(struct um_gpu *gpu, size_t *left, size_t *total)
{
	(void)gpu;
	*left = *total = 0;
	return 46;
}

/* A probe gives back what it took, also when a call of its fails. */
static void check_failures(void)
{
	struct um_launcher *l;
	struct um_gpu *gpu = open_sim(um_profile_find("a100"), &l);
	const struct um_probe_setup setup = {.gpu = gpu, .launcher = l};
	uint64_t free_before = um_probe_allowance(gpu);
	struct um_observed seen = {0};
	char why[160];
	unsigned failed = 0;

	strong = gpu->api;
	weak = *strong;
	weak.cudaMemPrefetchAsync = weak_prefetch;
	gpu->api = &weak;
	for (unsigned i = 0; um_probe_name(i); i++)
		for (int n = 0; n < 40; n += 13) {
			int rc;

			calls_left = n;
			rc = um_probe_run(i, &setup, &seen, why, sizeof why);
			failed += rc != 0;
			if (rc && (rc != -EIO || strcmp(why, "cudaMemPrefetchAsync returned CUDA error 46") != 0))
				ok(0, "probe %s: %d: %s", um_probe_name(i), rc, why);
			if (um_probe_allowance(gpu) != free_before)
				ok(0, "probe %s keeps memory", um_probe_name(i));
		}
	ok(failed > 20, "a call that fails ends its probe, says so, and leaves nothing behind");
	weak.cudaMemGetInfo = mute_info;
	is_int(um_probe_run(0, &setup, &seen, why, sizeof why), -EPERM, "who does not know what is free, asks not");
	is_int(um_probe_guard(gpu, 1, 0, why, sizeof why), -EIO,
	       "a device that does not know its free memory is refused one byte");
	gpu->api = strong;
	gpu->caps.concurrent_managed = 0;
	snprintf(gpu->caps.why, sizeof gpu->caps.why, "no hints here");
	is_int(um_probe_run(0, &setup, &seen, why, sizeof why), -EIO,
	       "a device without concurrent managed access is refused");
	is_str(why, "no hints here", "the report has the driver's reason");
	l->close(l);
	gpu->api->close(gpu);
}

/* Too little memory for a probe, and memory that others have. */
static void check_budgets(void)
{
	struct um_profile p = *um_profile_find("v100");
	struct um_probe_setup setup = {0};
	struct um_observed seen = {0};
	char why[160];

	p.capacity = 128 * MIB;
	setup.gpu = open_sim(&p, &setup.launcher);
	is_int(um_probe_run(0, &setup, &seen, why, sizeof why), 0, "16 MiB are enough");
	setup.budget = 16 * MIB;
	is_int(um_probe_run(0, &setup, &seen, why, sizeof why), 0, "the same memory is accepted as a budget");
	setup.budget++;
	is_int(um_probe_run(0, &setup, &seen, why, sizeof why), -EPERM, "a byte more is refused");
	setup.budget = UM_PROBE_LEAST - 1;
	is_int(um_probe_run(0, &setup, &seen, why, sizeof why), -EPERM, "too little is too little");
	setup.launcher->close(setup.launcher);
	setup.gpu->api->close(setup.gpu);
}

/* For runs in which allocations fail: 0 if all was measured, 3 if some was not. */
static int once(void)
{
	struct um_probe_setup setup = {0};
	struct um_observed seen = {0};
	char why[160];
	int bad = 0;

	if (um_sim_open(&setup.gpu, &(struct um_sim_options){.profile = um_profile_find("v100")}))
		return 3;
	if (um_launcher_sim(&setup.launcher, setup.gpu, um_profile_find("v100"))) {
		setup.gpu->api->close(setup.gpu);
		return 3;
	}
	setup.budget = UM_PROBE_LEAST;
	for (unsigned i = 0; um_probe_name(i); i++)
		bad |= um_probe_run(i, &setup, &seen, why, sizeof why) != 0;
	setup.launcher->close(setup.launcher);
	setup.gpu->api->close(setup.gpu);
	return bad ? 3 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "once") == 0)
		return once();
	if (argc == 2 && strcmp(argv[1], "ptx") == 0)
		return fputs(um_probe_ptx, stdout) < 0;
	check_stats();
	check_derive();
	check_slow_mapping();
	check_guard();
	check_failures();
	check_budgets();
	for (unsigned i = 0; um_profile_builtin(i); i++)
		recovers(um_profile_find(um_profile_builtin(i)), 0, 0);
	for (unsigned seed = 1; seed <= 8; seed += (unsigned)tap_step(7))
		for (unsigned i = 0; um_profile_builtin(i); i++) {
			struct um_profile p = perturbed(um_profile_builtin(i), seed);

			recovers(&p, seed % 2 ? 0 : 10 * MIB, 0);
		}
	recovers(um_profile_find("v100"), 0, 1);
	recovers(um_profile_find("h100"), 0, 1);
	return tap_done();
}
