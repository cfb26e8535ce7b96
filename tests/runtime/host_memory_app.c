/* SPDX-License-Identifier: Apache-2.0
 *
 * host_memory_app.c - what tests/runtime/host_memory_cgroup.sh runs over the stand-in driver: 128 MiB of tensors
 *
 * After each iteration it takes, for good, the host memory that a real driver keeps for evicted data and the stand-in
 * only counts: a program whose plan evicts too much is killed where a limit is enforced. Of each tensor it uses a page.
 * Prints the sum of the tensors and the host memory of the plan in MiB.
 */
#include "umadvise.h"

#include "gpu/device.h"
#include "runtime/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <umadvise_dryrun.h>

#define MIB (1ull << 20)
#define TENSORS 32
#define BYTES (4 * MIB)
#define ITERATIONS 8
#define ROOM (24 * MIB) /* for what the process itself takes later */

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry add(.param .u64 x)\n{\n\tret;\n}\n";

static struct umadv *adv;
static struct um_gpu *gpu;
static float *t[TENSORS];
static uint64_t taken;

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %d\n", what, err);
		exit(9);
	}
}

static void add(void **args, const unsigned grid[3], const unsigned block[3])
{
	float *x = *(float **)args[0];

	(void)grid;
	(void)block;
	*x = *x * 3 + 1;
}

static char *take(uint64_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(p == MAP_FAILED, "mmap");
	memset(p, 1, bytes);
	return p;
}

static void take_as_a_driver(void)
{
	struct um_tally tally;

	must(um_device_standin_tally(gpu, &tally), "um_device_standin_tally");
	if (tally.host_bytes <= taken)
		return;
	take(tally.host_bytes - taken);
	taken = tally.host_bytes;
}

/* Three sweeps over all tensors in different orders: a block that is far from its next use in one of them is near it in
 * another. */
static float *tensor_of(int op)
{
	int i = op % TENSORS;

	return t[op / TENSORS == 0 ? i : op / TENSORS == 1 ? TENSORS - 1 - i : i * 13 % TENSORS];
}

static void iterate(void *function)
{
	must(umadv_iter(adv, NULL), "umadv_iter");
	for (int i = 0; i < 3 * TENSORS; i++) {
		float *x = tensor_of(i);
		void *args[] = {&x};

		must(umadv_op(adv, NULL, "add", UMADV_USES(UMADV_UPDATE(x))), "umadv_op");
		must(um_device_launch(gpu, function, (unsigned)(BYTES / 1024), 256, NULL, args), "um_device_launch");
	}
	must(gpu->api->cudaDeviceSynchronize(gpu), "cudaDeviceSynchronize");
}

int main(void)
{
	char *room = take(ROOM);
	void *module, *function;
	double sum = 0;

	must(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), "prctl"); /* a page of a tensor is a small one */
	must(umadv_open(&adv, NULL), "umadv_open");
	munmap(room, ROOM);
	gpu = adv->device.gpu;
	must(!adv->device.cuda, "a CUDA device");
	must(um_device_module_load(gpu, ptx, &module), "um_device_module_load");
	must(um_device_function(gpu, module, "add", &function), "um_device_function");
	must(umadv_dryrun_function(function, add) != 1, "umadv_dryrun_function");
	for (int i = 0; i < TENSORS; i++) {
		must(umadv_alloc(adv, (void **)&t[i], BYTES, "t", UMADV_PARAM), "umadv_alloc");
		*t[i] = (float)i;
	}
	for (int it = 0; it < ITERATIONS; it++) {
		iterate(function);
		take_as_a_driver();
	}
	for (int i = 0; i < TENSORS; i++) {
		must(umadv_host(adv, "sum", UMADV_USES(UMADV_READ_RANGE(t[i], 4))), "umadv_host");
		sum += (double)*t[i];
	}
	printf("sum %.9g\nplan %llu\n", sum, (unsigned long long)(adv->replan.program.host * UM_BLOCK_BYTES / MIB));
	umadv_close(adv);
	return 0;
}
