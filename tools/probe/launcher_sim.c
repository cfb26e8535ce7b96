/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels on the simulated device: their accesses and their times by its profile.
 */
#include "probe/launcher.h"

#include <errno.h>
#include <stdlib.h>

#include "sim/sim.h"

#define FMA_EACH 64.0 /* multiplications, each with an addition, of a thread in a round */

struct sim_launcher {
	struct um_launcher l; /* first */
	struct um_profile profile;
};

double um_kernel_flops(const struct um_kernel *k)
{
	return (double)k->rounds * k->n * UM_FMA_THREADS * FMA_EACH * 2;
}

static unsigned places(const struct um_kernel *k, struct um_touch *touch)
{
	uint32_t access = k->write ? UM_UPDATE : UM_READ;

	if (k->stride == UM_PLACE_BYTES) {
		touch[0] = (struct um_touch){.ptr = k->at, .bytes = k->n * (uint64_t)UM_PLACE_BYTES, .access = access};
		return 1;
	}
	for (unsigned i = 0; i < k->n; i++)
		touch[i] = (struct um_touch){
			.ptr = (char *)k->at + i * k->stride, .bytes = UM_PLACE_BYTES, .access = access};
	return k->n;
}

void um_kernel_announcement(const struct um_kernel *k, const struct um_profile *p, struct um_touch *touch,
			    struct um_announcement *out)
{
	struct um_cost cost = {0};
	unsigned n = 0;

	*out = (struct um_announcement){.touch = touch, .pattern = k->pattern};
	switch (k->kind) {
	case UM_KERNEL_SPIN:
		cost.ns = k->ns > p->launch_ns ? k->ns : 0;
		break;
	case UM_KERNEL_TOUCH:
		n = places(k, touch);
		out->pattern = k->serial ? UM_PATTERN_NARROW : UM_PATTERN_ONE_BATCH;
		break;
	case UM_KERNEL_FMA:
		cost.flops = um_kernel_flops(k);
		break;
	default:
		if (k->kind != UM_KERNEL_WRITE)
			touch[n++] = (struct um_touch){.ptr = k->from, .bytes = k->bytes, .access = UM_READ};
		if (k->kind != UM_KERNEL_READ)
			touch[n++] = (struct um_touch){.ptr = k->at, .bytes = k->bytes, .access = UM_WRITE};
		cost.bytes = (double)k->bytes * n;
		break;
	}
	out->n = n;
	out->ns = um_profile_op_ns(p, &cost, 0);
}

static int sim_launch(struct um_launcher *l, um_stream stream, const struct um_kernel *k)
{
	struct sim_launcher *s = (struct sim_launcher *)l;
	struct um_touch touch[UM_ADDRESS_MAP_MAX];
	struct um_announcement announcement;

	um_kernel_announcement(k, &s->profile, touch, &announcement);
	return um_sim_run(l->gpu, stream,
			  &(struct um_sim_kernel){.name = "probe",
						  .ns = announcement.ns,
						  .access = announcement.touch,
						  .n_access = announcement.n,
						  .pattern = announcement.pattern});
}

static int sim_copy(struct um_launcher *l, um_stream stream, void *to, const void *from, size_t bytes, int to_device)
{
	(void)to_device;
	return um_sim_copy(l->gpu, stream, &(struct um_sim_copy){to, from, bytes, bytes, bytes, 1}, 0);
}

static int sim_host_touch(struct um_launcher *l, void *at, uint64_t bytes)
{
	return um_sim_host_touch(l->gpu, at, bytes, UM_WRITE);
}

static void sim_close(struct um_launcher *l)
{
	free(l);
}

int um_launcher_sim(struct um_launcher **out, struct um_gpu *gpu, const struct um_profile *p)
{
	struct sim_launcher *s = malloc(sizeof *s);

	if (!s)
		return -ENOMEM;
	*s = (struct sim_launcher){.l = {.launch = sim_launch,
					 .copy = sim_copy,
					 .host_touch = sim_host_touch,
					 .close = sim_close,
					 .gpu = gpu,
					 .units = 100},
				   .profile = *p};
	*out = &s->l;
	return 0;
}
