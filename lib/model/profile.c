/* SPDX-License-Identifier: Apache-2.0
 *
 * profile.c - the built-in device profiles, and where each of their constants is from
 *
 * The built-in devices share the driver costs: those are work of the host's driver and differ more between hosts than
 * between cards. None was measured by this project: doc/gpu.md has the costs of one real device.
 */
#include "model/profile.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIB (1ull << 30)

/* Defaults of the optional keys. */
#define DEFAULTS                                                                                                       \
	.eta = 0.9, .c_batch = 60000, .c_fault = 500, .c_blk = 10000, .c_perm = 70000, .c_unmap = 30000,               \
	.c_dma = 5000, .c_dma_4k = 300000, .c_hostpop = 335000, .c_hostzero = 150000, .c_evict = 15000,                \
	.c_evict_unused = 5000, .c_zero = 6000, .c_api = 10000, .c_pf = 20000, .c_pf_res = 3000, .c_pf_cpu = 80000,    \
	.c_disc = 2000, .c_disc_u = 15000, .c_adv = 3000, .c_adv_ab = 15000, .c_cpuf = 15000, .o_seg = 400,            \
	.b_remote = 0.8, .driver = 595, .link_devices = 1

#define DEVICE(NAME, GIBS, FLOPS, MEM, LAUNCH, H2D, D2H, DUPLEX, EVICT, COHERENT)                                      \
	{                                                                                                              \
		.name = NAME, .capacity = (GIBS)*GIB, .flops = FLOPS, .mem_bandwidth = MEM, .launch_ns = LAUNCH,       \
		.h2d = H2D, .d2h = D2H, .duplex = DUPLEX, .duplex_evict = EVICT, .coherent = COHERENT, DEFAULTS        \
	}

/* The one list; doc/profiles.md shows it. */
static const struct um_profile builtin[] = {
	DEVICE("k40", 12, 3.0e12, 220e9, 8000, 8e9, 8e9, 1, 1, 0),
	DEVICE("1080ti", 11, 8.0e12, 400e9, 6000, 12e9, 13e9, 1, 1, 0),
	DEVICE("v100", 32, 13e12, 800e9, 5000, 12e9, 12e9, 0.8, 0.8, 0),
	DEVICE("rtx3090", 24, 26e12, 790e9, 3500, 25e9, 25e9, 0.9, 0.9, 0),
	DEVICE("rtx4090", 24, 60e12, 850e9, 3500, 25e9, 25e9, 0.9, 0.9, 0),
	DEVICE("rtx5090", 31, 75e12, 1.5e12, 3000, 52e9, 52e9, 0.9, 0.9, 0),
	DEVICE("rtxpro6000", 95, 85e12, 1.5e12, 3000, 52e9, 52e9, 0.9, 0.9, 0),
	DEVICE("a10", 23, 22e12, 500e9, 4000, 24e9, 24e9, 0.9, 0.9, 0),
	DEVICE("l4", 23, 20e12, 250e9, 4000, 24e9, 24e9, 0.9, 0.9, 0),
	DEVICE("l40s", 47, 65e12, 720e9, 3500, 24e9, 24e9, 0.9, 0.9, 0),
	DEVICE("a100", 40, 60e12, 1.3e12, 4000, 24e9, 24e9, 0.5, 0.1, 0),
	DEVICE("h20", 96, 40e12, 3.3e12, 3000, 52e9, 52e9, 0.9, 0.9, 0),
	DEVICE("h100", 80, 250e12, 2.8e12, 3000, 52e9, 52e9, 0.9, 0.9, 0),
	DEVICE("h200", 141, 250e12, 3.9e12, 3000, 52e9, 52e9, 0.9, 0.9, 0),
	DEVICE("b200", 180, 550e12, 6.6e12, 3000, 52e9, 52e9, 0.9, 0.9, 0),
	DEVICE("gh200", 96, 250e12, 3.3e12, 3000, 370e9, 297e9, 0.9, 0.9, 1),
	DEVICE("gb200", 186, 600e12, 6.6e12, 3000, 185e9, 148e9, 0.9, 0.9, 1),
	DEVICE("gb10", 119, 22e12, 230e9, 3000, 115e9, 115e9, 0.5, 0.5, 1),
};

#define N_BUILTIN (sizeof builtin / sizeof *builtin)

/* The data sheet of each, and the source of its link. Figures of the data sheet: nominal memory, TFLOP/s of fp32 or
 * dense TF32, GB/s. */
static const struct sheet {
	const char *name, *memory;
	double tflops;
	const char *precision;
	double gb_per_s;
	const char *link, *duplex;
} sheets[] = {
	{"k40", "12 GB", 4.3, "fp32", 288, "assumed: PCIe 3 x16 of its time", NULL},
	{"1080ti", "11 GB", 11.3, "fp32", 484, "assumed: PCIe 3 x16", NULL},
	{"v100", "32 GB", 15.7, "fp32", 900, "measured by others: pinned copies, PCIe 3 x16", NULL},
	{"rtx3090", "24 GB", 35.6, "fp32", 936, "derived: rtx4090's, PCIe 4 x16 as well", NULL},
	{"rtx4090", "24 GB", 82.6, "fp32", 1008, "derived: the A100's 25-26 GB/s, PCIe 4 x16 as well", NULL},
	{"rtx5090", "32 GB, of which a device reports 32,109 MiB", 104.8, "fp32", 1792,
	 "derived: h100's, PCIe 5 x16 as well", "derived: h100's"},
	{"rtxpro6000", "96 GB with ECC", 117, "fp32", 1792, "derived: h100's, PCIe 5 x16 as well", "derived: h100's"},
	{"a10", "24 GB with ECC", 31.2, "fp32", 600, "derived: a100's, PCIe 4 x16 as well", NULL},
	{"l4", "24 GB with ECC", 30.3, "fp32", 300, "derived: a100's, PCIe 4 x16 as well", NULL},
	{"l40s", "48 GB with ECC", 91.6, "fp32", 864, "derived: a100's, PCIe 4 x16 as well", NULL},
	{"a100", "40 GB", 156, "TF32", 1555, "measured by others: 25-26 GB/s of pinned copies, PCIe 4 x16",
	 "measured by others: copies to the device drop to 11-13 of 25 GB/s while others run to the host"},
	{"h20", "96 GB", 74, "TF32", 4000, "derived: h100's, PCIe 5 x16 as well", "derived: h100's"},
	{"h100", "80 GB", 494, "TF32", 3350, "derived: 56-57 GB/s of pinned copies that others measured, PCIe 5 x16",
	 "measured by others: 101 GB/s in both directions together, PCIe 5 x16"},
	{"h200", "141 GB", 494, "TF32", 4800, "derived: h100's, PCIe 5 x16 as well", "derived: h100's"},
	{"b200", "180 GB", 1100, "TF32", 8000, "derived: h100's, PCIe 5 x16 as well", "derived: h100's"},
	{"gh200", "96 GB", 494, "TF32", 4000, "measured by others: 346-375 GB/s to the device, 297 to the host", NULL},
	{"gb200", "186 GB", 1250, "TF32", 8000, "derived: half of gh200's, because two GPUs share the CPU's link",
	 NULL},
	{"gb10", "128 GB of one memory for CPU and GPU, less the system's share", 31, "fp32", 273,
	 "assumed: a copy inside the one memory, half of its bandwidth", "assumed"},
};

/* Where the constants that all built-in profiles share are from. */
static const struct {
	const char *key, *from;
} shared[] = {
	{"name", "chosen"},
	{"launch_ns", "assumed"},
	{"duplex", "assumed"},
	{"duplex_evict", "assumed: as duplex"},
	{"eta", "measured by others: A100, prefetches at 23.0 GB/s on a link of 25.5"},
	{"coherent", "data sheet"},
	{"measured", "built in"},
	{"serial_host", "assumed: no, though an H100 with driver 580 was measured as yes"},
	{"driver", "the release that the simulator follows"},
	{"c_batch", "derived: intercept of batch times of a Titan V (Allen and Ge, SC'21)"},
	{"c_fault", "derived: fit to batch times of a Titan V (the same)"},
	{"c_blk", "derived: fit to a Titan V (the same) and to logs of an A100"},
	{"c_perm", "derived: log of an RTX 5090, read-mostly memory written in every iteration"},
	{"c_unmap", "derived: Titan V (Allen and Ge); grows with the threads of the CPU"},
	{"c_dma", "assumed"},
	{"c_dma_4k", "derived: Titan V (Allen and Ge)"},
	{"c_hostpop", "derived: A100, 13 s instead of 6 s for 40 GiB where victims never had host pages"},
	{"c_hostzero", "assumed: 2 MiB at 14 GB/s"},
	{"c_evict", "assumed"},
	{"c_evict_unused", "assumed"},
	{"c_zero", "assumed: 2 MiB at 350 GB/s"},
	{"c_api", "assumed"},
	{"c_pf", "assumed: an A100's prefetches bound it to 91 us"},
	{"c_pf_res", "assumed"},
	{"c_pf_cpu", "assumed: 512 entries of the page table"},
	{"c_disc", "assumed"},
	{"c_disc_u", "assumed"},
	{"c_adv", "assumed"},
	{"c_adv_ab", "assumed"},
	{"c_cpuf", "assumed: more than 10 us according to a GTC report"},
	{"o_seg", "derived: a third of the 1.2 us of single copies (UVMSmart), as they are pipelined"},
	{"b_remote", "assumed"},
	{"link_devices", "assumed: each device has its own link"},
};

void um_profile_init(struct um_profile *p)
{
	*p = (struct um_profile){.duplex = 1, .duplex_evict = 1, DEFAULTS};
}

struct um_profile um_profile_share(const struct um_profile *p)
{
	struct um_profile share = *p;

	share.h2d /= (double)p->link_devices;
	share.d2h /= (double)p->link_devices;
	share.link_devices = 1;
	return share;
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

static const struct sheet *sheet_of(const char *name)
{
	for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++)
		if (strcmp(sheets[i].name, name) == 0)
			return &sheets[i];
	return NULL;
}

static int is_key(const char *key, const char *is)
{
	return strcmp(key, is) == 0;
}

/* Of a constant that a device has for itself: 1, or 0. */
static int own_source(const struct um_profile *p, const struct sheet *s, const char *key, char *line, size_t size)
{
	if (is_key(key, "capacity"))
		snprintf(line, size, "derived: data sheet, %s", s->memory);
	else if (is_key(key, "flops"))
		snprintf(line, size, "assumed: %.2f of the data sheet's %g TFLOP/s (%s)", p->flops / s->tflops / 1e12,
			 s->tflops, s->precision);
	else if (is_key(key, "mem_bandwidth"))
		snprintf(line, size, "assumed: %.2f of the data sheet's %g GB/s", p->mem_bandwidth / s->gb_per_s / 1e9,
			 s->gb_per_s);
	else if (is_key(key, "h2d") || is_key(key, "d2h"))
		snprintf(line, size, "%s", s->link);
	else if (is_key(key, "duplex") && s->duplex)
		snprintf(line, size, "%s", s->duplex);
	else if (is_key(key, "duplex_evict") && p->duplex_evict < p->duplex)
		snprintf(line, size, "derived: log of prefetches with evictions, 11.7 GB/s at first, then 8.9-9.2");
	else
		return 0;
	return 1;
}

int um_profile_source(const char *name, const char *key, char *line, size_t size)
{
	const struct um_profile *p = name ? um_profile_find(name) : NULL;

	if (p && own_source(p, sheet_of(name), key, line, size))
		return 0;
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
		if (is_key(key, shared[i].key))
			return snprintf(line, size, "%s", shared[i].from) < 0 ? -EINVAL : 0;
	return -ENOENT;
}

/* Is `word` in `device`, at the begin of a word and not within a longer number? "A10" is in "A10G", not in "A100". */
static int has_word(const char *device, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = device; (at = strstr(at, word)); at++)
		if ((at == device || !isalnum((unsigned char)at[-1])) && !isdigit((unsigned char)at[n]))
			return 1;
	return 0;
}

const struct um_profile *um_profile_of_device(const char *device)
{
	static const char *const names[][2] = {
		{"GH200", "gh200"},
		{"GB200", "gb200"},
		{"GB10", "gb10"},
		{"B200", "b200"},
		{"H200", "h200"},
		{"H100", "h100"},
		{"H20", "h20"},
		{"A100", "a100"},
		{"A10", "a10"},
		{"L40", "l40s"},
		{"L4", "l4"},
		{"V100", "v100"},
		{"RTX 3090", "rtx3090"},
		{"RTX 4090", "rtx4090"},
		{"RTX 5090", "rtx5090"},
		{"RTX PRO 6000", "rtxpro6000"},
		{"GTX 1080 Ti", "1080ti"},
		{"K40", "k40"},
	};

	if (strstr(device, "Laptop")) /* another card under the same number */
		return NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (has_word(device, names[i][0]))
			return um_profile_find(names[i][1]);
	return NULL;
}

const char *um_profile_builtin(unsigned n)
{
	return n < N_BUILTIN ? builtin[n].name : NULL;
}
