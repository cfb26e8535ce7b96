/* SPDX-License-Identifier: Apache-2.0
 *
 * profile.h - speeds, sizes and driver costs of a GPU and its link
 *
 * Times in ns, sizes in bytes, rates in bytes/s or FLOP/s. Driver costs carry the symbols of doc/simulator.md.
 */
#ifndef UM_MODEL_PROFILE_H
#define UM_MODEL_PROFILE_H

#include "model/event.h"

struct um_profile {
	char name[64];
	uint64_t capacity;
	double flops, mem_bandwidth;
	uint64_t launch_ns;
	double h2d, d2h; /* one direction alone */
	double duplex; /* kappa: 1 both directions at full rate at once, 0 they share one */
	double duplex_evict; /* likewise if one of them is the copy of an eviction by the driver */
	double eta; /* share of the link rate that driver-queued 2 MiB copies reach */
	int measured; /* written by calibration, not assumed */
	int coherent; /* the GPU reaches host memory in hardware: the driver's paging differs, and is not simulated */
	int serial_host; /* prefetches to the host keep all other calls waiting, on whatever thread */
	/* driver costs, ns */
	uint64_t c_batch, c_fault, c_blk, c_perm, c_unmap;
	uint64_t c_dma, c_dma_4k; /* first DMA mapping of a block's host memory: one 2 MiB chunk / 4 KiB pages */
	uint64_t c_hostpop, c_hostzero; /* allocate 2 MiB of host memory / zero it */
	uint64_t c_evict, c_evict_unused, c_zero, c_api, c_pf, c_pf_res, c_pf_cpu;
	uint64_t c_disc, c_disc_u, c_adv, c_adv_ab, c_cpuf;
	uint64_t o_seg; /* fixed time per copy */
	double b_remote; /* remote access, share of the link rate */
	uint64_t link_devices; /* that share its link (a PCIe root, a socket), this one included */
	uint64_t driver; /* major version of the driver that the simulated device follows */
};

/* All optional keys at their defaults, required ones 0. */
void um_profile_init(struct um_profile *p);

/* Duration of an op that touches `touched` bytes: measured, otherwise estimated from its cost: max(flops / p.flops,
 * bytes / p.mem_bandwidth) + launch_ns, rounded to the nearest ns. An op without a cost moves each byte that it touches
 * once. */
uint64_t um_profile_op_ns(const struct um_profile *p, const struct um_cost *cost, double touched);

/* What a device can count on: with all devices of its link at work, its share of the rates. */
struct um_profile um_profile_share(const struct um_profile *p);

/* The built-in profile of a name, or NULL; the name of the n-th one, or NULL. */
const struct um_profile *um_profile_find(const char *name);
const char *um_profile_builtin(unsigned n);

/* Where a constant is from: "measured by others: ...", "derived: ...", "assumed: ...". Of a built-in profile, or with
 * NULL of the defaults of optional keys. 0, or -ENOENT: no such key. */
int um_profile_source(const char *name, const char *key, char *line, size_t size);

/* The built-in profile for a CUDA device name ("NVIDIA H100 80GB HBM3"), or NULL. */
const struct um_profile *um_profile_of_device(const char *device);

#endif
