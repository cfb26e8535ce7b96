/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of allocations does not decide whether there is a plan: small tensors come first, large tensors of one
 * block each follow, and an op that needs three of four blocks of the budget gets hints on the simulated GPU.
 */
#include "umadvise.h"

#include "tap.h"

#define MIB (1ull << 20)
#define LARGE 12
#define SMALL 3

struct program {
	void *small[SMALL], *large[LARGE];
};

static char warning[512];

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	snprintf(warning, sizeof warning, "%s", line);
}

static int allocate(struct umadv *adv, struct program *p, size_t large_bytes)
{
	int err = 0;

	for (int i = 0; i < SMALL && !err; i++)
		err = umadv_alloc(adv, &p->small[i], MIB / 4, "small", UMADV_PARAM);
	for (int i = 0; i < LARGE && !err; i++)
		err = umadv_alloc(adv, &p->large[i], large_bytes, "large", UMADV_PARAM);
	return err;
}

/* Each op uses one small tensor and two large ones that are not neighbours. */
static int iterate(struct umadv *adv, struct program *p)
{
	int err = umadv_iter(adv, NULL);

	for (int i = 0; i < LARGE && !err; i++) {
		err = umadv_op(adv, NULL, "mix",
			       UMADV_USES(UMADV_READ(p->small[0]), UMADV_READ(p->large[i]),
					  UMADV_UPDATE(p->large[(i + LARGE / 2) % LARGE])));
		if (!err)
			err = umadv_sim_run(adv, NULL, NULL, NULL);
	}
	return err ? err : umadv_sim_sync(adv);
}

static int run(size_t large_bytes, struct program *p, struct umadv_stats *stats)
{
	struct umadv_options o;
	struct umadv *adv;
	int err;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 8 * MIB;
	o.log = on_log;
	warning[0] = 0;
	err = umadv_open(&adv, &o);
	if (err)
		tap_bail("no simulated device");
	err = allocate(adv, p, large_bytes);
	for (int i = 0; i < 6 && !err; i++)
		err = iterate(adv, p);
	stats->struct_size = sizeof *stats;
	if (!err)
		err = umadv_stats_get(adv, stats);
	umadv_close(adv);
	return err;
}

int main(void)
{
	struct program p;
	struct umadv_stats stats;
	int aligned = 1;

	is_int(run(2 * MIB, &p, &stats), 0, "a program with ops of 4.25 MiB runs within 8 MiB");
	for (int i = 0; i < LARGE; i++)
		aligned &= (uintptr_t)p.large[i] % (2 * MIB) == 0;
	ok(aligned, "all tensors of 2 MiB lie at block boundaries");
	ok((uintptr_t)p.small[0] / (2 * MIB) == (uintptr_t)p.small[SMALL - 1] / (2 * MIB),
	   "small tensors share a block");
	ok(stats.hinted_iterations >= 4, "the plan hints every iteration from the third one on (%llu of 6)",
	   (unsigned long long)stats.hinted_iterations);
	is_str(warning, "", "the log has no warning");

	is_int(run(3 * MIB + MIB / 2, &p, &stats), 0, "a program with ops of 7.25 MiB runs within 8 MiB");
	ok(stats.hinted_iterations >= 4, "ops whose blocks exceed the budget are paged within a plan (%llu of 6)",
	   (unsigned long long)stats.hinted_iterations);
	is_str(warning, "", "the log has no warning for paged ops");
	return tap_done();
}
