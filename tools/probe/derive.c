/* SPDX-License-Identifier: Apache-2.0
 *
 * Each constant is a sum of observations, mostly a difference that isolates one cost. Differences of noisy figures may
 * be negative: within their noise that counts as 0, beyond it as not measured.
 */
#include "probe/derive.h"

#include <math.h>
#include <stddef.h>

enum kind { RATE, TIME, SHARE };

static const struct {
	const char *name;
	enum kind kind;
	size_t at;
} constants[UM_CONST_N] = {
#define ROW(c, kind) [UM_CONST_##c] = {#c, kind, offsetof(struct um_profile, c)}
	ROW(flops, RATE),      ROW(mem_bandwidth, RATE), ROW(launch_ns, TIME),	    ROW(h2d, RATE),
	ROW(d2h, RATE),	       ROW(duplex, SHARE),	 ROW(duplex_evict, SHARE),  ROW(eta, SHARE),
	ROW(c_batch, TIME),    ROW(c_fault, TIME),	 ROW(c_blk, TIME),	    ROW(c_perm, TIME),
	ROW(c_unmap, TIME),    ROW(c_dma, TIME),	 ROW(c_dma_4k, TIME),	    ROW(c_hostpop, TIME),
	ROW(c_hostzero, TIME), ROW(c_evict, TIME),	 ROW(c_evict_unused, TIME), ROW(c_zero, TIME),
	ROW(c_api, TIME),      ROW(c_pf, TIME),		 ROW(c_pf_res, TIME),	    ROW(c_pf_cpu, TIME),
	ROW(c_disc, TIME),     ROW(c_disc_u, TIME),	 ROW(c_adv, TIME),	    ROW(c_adv_ab, TIME),
	ROW(c_cpuf, TIME),     ROW(o_seg, TIME),	 ROW(b_remote, SHARE),
#undef ROW
};

const char *um_constant_name(enum um_constant c)
{
	return constants[c].name;
}

const char *um_constant_unit(enum um_constant c)
{
	if (constants[c].kind == TIME)
		return "ns";
	if (constants[c].kind == SHARE)
		return "";
	return c == UM_CONST_flops ? "FLOP/s" : "bytes/s";
}

double um_constant_get(const struct um_profile *p, enum um_constant c)
{
	const void *at = (const char *)p + constants[c].at;

	return constants[c].kind == TIME ? (double)*(const uint64_t *)at : *(const double *)at;
}

void um_constant_set(struct um_profile *p, enum um_constant c, double value)
{
	void *at = (char *)p + constants[c].at;

	if (constants[c].kind == TIME)
		*(uint64_t *)at = (uint64_t)(value + 0.5);
	else
		*(double *)at = value;
}

const char *um_constant_why(enum um_constant c)
{
	switch (c) {
	case UM_CONST_c_evict:
	case UM_CONST_c_evict_unused:
	case UM_CONST_c_zero:
	case UM_CONST_duplex_evict:
		return "seen only when memory runs out, which is not safe on a real device";
	case UM_CONST_c_disc:
	case UM_CONST_c_disc_u:
		return "the device has no such call, or discard is of the other kind";
	default:
		return "its probe did not end, or its figures contradict each other";
	}
}

/* Values that a profile may not have count as not measured. */
static int usable(enum um_constant c, struct um_figure *f)
{
	const double noise = 3 * f->spread + 1000;

	if (!f->n || !isfinite(f->value))
		return 0;
	switch (constants[c].kind) {
	case TIME:
		if (f->value < 0 && f->value >= -noise)
			f->value = 0;
		return f->value >= 0 && f->value <= 1e9;
	case SHARE:
		f->value = f->value > 1 ? 1 : f->value;
		return f->value >= (c == UM_CONST_duplex ? 0 : 0.01);
	default:
		return f->value >= 1e6 && f->value <= (c == UM_CONST_flops ? 1e18 : 1e15);
	}
}

/* Keeps a valid measurement; values derived from an invalid one are invalid, too. */
static void keep(struct um_figure *constant, enum um_constant c, struct um_figure f)
{
	constant[c] = usable(c, &f) ? f : (struct um_figure){0};
}

static struct um_figure scaled(struct um_figure f, double k)
{
	return (struct um_figure){f.value * k, f.spread * k, f.n};
}

static struct um_figure less(struct um_figure a, struct um_figure b)
{
	return um_figure_add(a, -1, b);
}

/* Driver work: sums and differences. */
static void costs(const struct um_figure *o, struct um_figure *c)
{
	keep(c, UM_CONST_launch_ns, o[UM_OBS_LAUNCH]);
	keep(c, UM_CONST_c_api, o[UM_OBS_PF_RES_CALL]);
	keep(c, UM_CONST_c_pf_res, o[UM_OBS_PF_RES_BLOCK]);
	keep(c, UM_CONST_c_pf, o[UM_OBS_PF_NEW_BLOCK]);
	keep(c, UM_CONST_c_unmap, less(o[UM_OBS_PF_AGAIN_BLOCK], o[UM_OBS_PF_NEW_BLOCK]));
	keep(c, UM_CONST_c_dma, less(o[UM_OBS_PF_FIRST_BLOCK], o[UM_OBS_PF_AGAIN_BLOCK]));
	keep(c, UM_CONST_c_dma_4k, less(o[UM_OBS_PF_SPLIT_BLOCK], o[UM_OBS_PF_AGAIN_BLOCK]));
	keep(c, UM_CONST_c_pf_cpu, less(o[UM_OBS_MAP_BLOCK], o[UM_OBS_MAP_NOTHING]));
	keep(c, UM_CONST_c_hostpop, less(less(o[UM_OBS_D2H_BLOCK_FIRST], o[UM_OBS_D2H_BLOCK]), c[UM_CONST_c_dma]));
	keep(c, UM_CONST_c_hostzero, less(less(o[UM_OBS_CPU_FIRST], o[UM_OBS_CPU_FAULT]), c[UM_CONST_c_hostpop]));
	keep(c, UM_CONST_c_cpuf, o[UM_OBS_CPU_FAULT]);
	keep(c, UM_CONST_c_fault, o[UM_OBS_FAULT_ENTRY]);
	keep(c, UM_CONST_c_blk, less(o[UM_OBS_FAULT_PLACE], o[UM_OBS_FAULT_ENTRY]));
	keep(c, UM_CONST_c_batch, less(o[UM_OBS_FAULT_SERIAL], o[UM_OBS_FAULT_PLACE]));
	keep(c, UM_CONST_c_perm,
	     um_figure_add(less(o[UM_OBS_FAULT_PERM], c[UM_CONST_c_batch]), -16, o[UM_OBS_FAULT_ENTRY]));
	keep(c, UM_CONST_c_disc, less(o[UM_OBS_RENEW_BLOCK], o[UM_OBS_PF_RES_BLOCK]));
	if (o[UM_OBS_DISCARD_FAULTS].n && o[UM_OBS_DISCARD_FAULTS].value > 0)
		keep(c, UM_CONST_c_disc_u, o[UM_OBS_DISCARD_BLOCK]);
	keep(c, UM_CONST_c_adv, o[UM_OBS_ADVISE_BLOCK]);
	keep(c, UM_CONST_c_adv_ab, o[UM_OBS_ADVISE_AB_BLOCK]);
	keep(c, UM_CONST_o_seg, o[UM_OBS_H2D_RUN]);
}

/* Number of the driver's visits to a block until single faults have filled it: each is a batch of one fault and unmaps
 * pages of the CPU. Not a constant; the simulator assumes 6. */
static struct um_figure visits(const struct um_figure *o, const struct um_figure *c)
{
	struct um_figure each = um_figure_add(o[UM_OBS_FAULT_SERIAL], 1, c[UM_CONST_c_unmap]), all;

	if (!each.n || each.value <= 0 || !o[UM_OBS_FAULT_NARROW].n)
		return (struct um_figure){0};
	all = (struct um_figure){UM_BLOCK_BYTES * 1e9 / o[UM_OBS_FAULT_NARROW].value, 0, o[UM_OBS_FAULT_NARROW].n};
	all = um_figure_add(less(all, c[UM_CONST_c_dma]), -32, o[UM_OBS_H2D_PAGE]);
	all.value /= each.value;
	return all;
}

/* Bytes per second from the time of a page. */
static struct um_figure rate_of(struct um_figure page)
{
	double rate;

	if (!page.n || page.value <= 0)
		return (struct um_figure){0};
	rate = UM_PLACE_BYTES * 1e9 / page.value;
	return (struct um_figure){rate, rate * page.spread / page.value, page.n};
}

#define FASTER 1.05 /* than pinned copies: more is noise */

/* Rate of the driver's copies to the host. Where they are lost in the noise of mapping the pages for the CPU: the
 * link's, with the share that the other direction reaches. */
static struct um_figure home_rate(const struct um_figure *o, struct um_figure to)
{
	struct um_figure page = less(o[UM_OBS_D2H_PAGE], o[UM_OBS_MAP_PAGE]), rate = rate_of(page);

	if (!page.n || (rate.n && rate.value <= o[UM_OBS_LINK_D2H].value * FASTER))
		return rate;
	return scaled(o[UM_OBS_LINK_D2H], to.value / o[UM_OBS_LINK_H2D].value);
}

/* The driver's copies reach a share of the link, which is one number for both directions. Planning uses the product, so
 * the product is exact, and the rates follow from it. */
static void link_rates(const struct um_figure *o, struct um_figure *c)
{
	struct um_figure to = rate_of(o[UM_OBS_H2D_PAGE]), home;
	double eta;

	keep(c, UM_CONST_duplex, o[UM_OBS_DUPLEX]);
	if (!to.n || !o[UM_OBS_LINK_H2D].n || !o[UM_OBS_LINK_D2H].n)
		return;
	/* Calls over many blocks are never faster than their copies. */
	to.value = fmax(to.value, o[UM_OBS_RATE_H2D].value);
	home = home_rate(o, to);
	if (!home.n)
		return;
	home.value = fmax(home.value, o[UM_OBS_RATE_D2H].value);
	eta = sqrt(to.value / o[UM_OBS_LINK_H2D].value * (home.value / o[UM_OBS_LINK_D2H].value));
	eta = eta > 1 ? 1 : eta;
	keep(c, UM_CONST_eta,
	     (struct um_figure){eta, eta * hypot(to.spread / to.value, home.spread / home.value) / 2, to.n});
	keep(c, UM_CONST_h2d, scaled(to, 1 / eta));
	keep(c, UM_CONST_d2h, scaled(home, 1 / eta));
	if (o[UM_OBS_REMOTE].n && c[UM_CONST_h2d].n)
		keep(c, UM_CONST_b_remote, scaled(o[UM_OBS_REMOTE], 1 / c[UM_CONST_h2d].value));
}

void um_derive(const struct um_observed *seen, struct um_profile *p, struct um_derived *out)
{
	*out = (struct um_derived){0};
	keep(out->at, UM_CONST_flops, seen->at[UM_OBS_FLOPS]);
	keep(out->at, UM_CONST_mem_bandwidth, seen->at[UM_OBS_MEMORY]);
	costs(seen->at, out->at);
	link_rates(seen->at, out->at);
	out->visits = visits(seen->at, out->at);
	for (int c = 0; c < UM_CONST_N; c++)
		if (out->at[c].n)
			um_constant_set(p, (enum um_constant)c, out->at[c].value);
}
