/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes on simulated devices: they must find what the device was made of.
 */
#include "gpu/sim.h"
#include "probe/derive.h"
#include "probe/guard.h"
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

/* All probes on a device of profile `p`. */
static void observe(const struct um_profile *p, uint64_t budget, struct um_observed *seen)
{
	struct um_launcher *l;
	struct um_gpu *gpu = open_sim(p, &l);
	const struct um_probe_setup setup = {.gpu = gpu, .launcher = l, .budget = budget};
	char why[160];

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
	return c == UM_CONST_c_evict || c == UM_CONST_c_evict_unused || c == UM_CONST_c_zero;
}

/* Every constant within 5 %, starting from a profile that knows nothing of the device. */
static void recovers(const struct um_profile *p, uint64_t budget)
{
	struct um_observed seen;
	struct um_derived derived;
	struct um_profile q;
	unsigned bad = 0;

	observe(p, budget, &seen);
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

		if (c == UM_CONST_duplex || c == UM_CONST_eta || c == UM_CONST_b_remote)
			value = fmin(value, 1);
		um_constant_set(&p, (enum um_constant)c, value);
	}
	return p;
}

int main(void)
{
	for (unsigned i = 0; um_profile_builtin(i); i++)
		recovers(um_profile_find(um_profile_builtin(i)), 0);
	for (unsigned seed = 1; seed <= 8; seed++)
		for (unsigned i = 0; um_profile_builtin(i); i++) {
			struct um_profile p = perturbed(um_profile_builtin(i), seed);

			recovers(&p, seed % 2 ? 0 : 10 * MIB);
		}
	return tap_done();
}
