/* SPDX-License-Identifier: Apache-2.0
 *
 * profile.c - the built-in device profiles
 *
 * The built-in devices share the driver costs: those are work of the host's driver and differ more between hosts than
 * between cards. All values are assumed; none was measured by this project.
 */
#include "model/profile.h"

#include <math.h>
#include <string.h>

#define GIB (1ull << 30)

/* Defaults of the optional keys. */
#define DEFAULTS                                                                                                       \
	.eta = 0.9, .c_batch = 60000, .c_fault = 500, .c_blk = 10000, .c_perm = 70000, .c_unmap = 30000,               \
	.c_dma = 5000, .c_dma_4k = 300000, .c_hostpop = 335000, .c_hostzero = 150000, .c_evict = 15000,                \
	.c_evict_unused = 5000, .c_zero = 6000, .c_api = 10000, .c_pf = 20000, .c_pf_res = 3000, .c_pf_cpu = 80000,    \
	.c_disc = 2000, .c_disc_u = 15000, .c_adv = 3000, .c_adv_ab = 15000, .c_cpuf = 15000, .o_seg = 400,            \
	.b_remote = 0.8, .driver = 595

#define DEVICE(NAME, GIBS, FLOPS, MEM, LAUNCH, H2D, D2H, DUPLEX, EVICT)                                                \
	{                                                                                                              \
		.name = NAME, .capacity = (GIBS)*GIB, .flops = FLOPS, .mem_bandwidth = MEM, .launch_ns = LAUNCH,       \
		.h2d = H2D, .d2h = D2H, .duplex = DUPLEX, .duplex_evict = EVICT, DEFAULTS                              \
	}

/* The one list; doc/profiles.md shows it. */
static const struct um_profile builtin[] = {
	DEVICE("k40", 12, 3.0e12, 220e9, 8000, 8e9, 8e9, 1, 1),
	DEVICE("1080ti", 11, 8.0e12, 400e9, 6000, 12e9, 13e9, 1, 1),
	DEVICE("v100", 32, 13e12, 800e9, 5000, 12e9, 12e9, 0.8, 0.8),
	DEVICE("rtx4090", 24, 60e12, 850e9, 3500, 25e9, 25e9, 0.9, 0.9),
	DEVICE("a100", 40, 60e12, 1.3e12, 4000, 24e9, 24e9, 0.5, 0.1),
	DEVICE("h100", 80, 250e12, 2.8e12, 3000, 52e9, 52e9, 0.9, 0.9),
	DEVICE("h200", 141, 250e12, 3.9e12, 3000, 52e9, 52e9, 0.9, 0.9),
	DEVICE("gh200", 96, 250e12, 3.3e12, 3000, 370e9, 297e9, 0.9, 0.9),
};

#define N_BUILTIN (sizeof builtin / sizeof *builtin)

void um_profile_init(struct um_profile *p)
{
	*p = (struct um_profile){.duplex = 1, .duplex_evict = 1, DEFAULTS};
}

/* A rate of 0 is unknown and adds nothing. */
static double time_at(double amount, double rate)
{
	return amount > 0 && rate > 0 ? amount / rate * 1e9 : 0;
}

uint64_t um_profile_op_ns(const struct um_profile *p, const struct um_cost *cost, double touched)
{
	const double longest = 1e18; /* 30 years: keeps a plan's sums within 64 bits whatever a file says */
	double ns, bytes = cost->flops > 0 || cost->bytes > 0 ? cost->bytes : touched;

	if (cost->ns)
		return cost->ns;
	ns = fmax(time_at(cost->flops, p->flops), time_at(bytes, p->mem_bandwidth)) + (double)p->launch_ns;
	return (uint64_t)(fmin(ns, longest) + 0.5);
}

const struct um_profile *um_profile_find(const char *name)
{
	for (size_t i = 0; i < N_BUILTIN; i++)
		if (strcmp(builtin[i].name, name) == 0)
			return &builtin[i];
	return NULL;
}

const struct um_profile *um_profile_of_device(const char *device)
{
	/* Names before the names that they contain. */
	static const char *const names[][2] = {
		{"GH200", "gh200"}, {"H200", "h200"},	     {"H100", "h100"},		{"A100", "a100"},
		{"V100", "v100"},   {"RTX 4090", "rtx4090"}, {"GTX 1080 Ti", "1080ti"}, {"K40", "k40"},
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strstr(device, names[i][0]))
			return um_profile_find(names[i][1]);
	return NULL;
}

const char *um_profile_builtin(unsigned n)
{
	return n < N_BUILTIN ? builtin[n].name : NULL;
}
