/* SPDX-License-Identifier: Apache-2.0
 *
 * libs.c - connects the stand-in libraries with the stand-in driver; kernels and copies
 *
 * The driver is found where the runtime has found it: libcuda.so.1. Only the stand-in provides the required table;
 * without it nothing is called.
 */
#include "standin/libs.h"

#include "standin/half.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define INSUFFICIENT_DRIVER 35
#define PLACE_HOST_OR_DEVICE 4u /* CU_MEMORYTYPE_UNIFIED: the address says it */

struct copy2d { /* CUDA_MEMCPY2D */
	size_t from_x, from_y;
	unsigned from_type;
	const void *from_host;
	uintptr_t from;
	void *from_array;
	size_t from_pitch, to_x, to_y;
	unsigned to_type;
	void *to_host;
	uintptr_t to;
	void *to_array;
	size_t to_pitch, width, rows;
};

typedef int find_fn(const char *name, void **fn, int version, unsigned long long flags, int *status);

static struct {
	const struct um_standin_table *table;
	int (*cuInit)(unsigned flags);
	int (*cuStreamSynchronize)(void *stream);
	int (*cuMemcpy2DAsync)(const struct copy2d *copy, void *stream);
} driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int compute; /* kernels compute, not only move memory */

static void find(void)
{
	const struct um_standin_table *table = NULL;
	const char *off = secure_getenv("UMADVISE_DRYRUN_COMPUTE");
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *symbol, *fn = NULL;
	find_fn *get;

	compute = !off || strcmp(off, "off") != 0;
	symbol = lib ? dlsym(lib, "cuGetProcAddress_v2") : NULL;
	memcpy(&get, &symbol, sizeof get); /* an object pointer becomes one to a function */
	if (symbol && !get(UM_STANDIN_NAME, &fn, 12000, 0, NULL))
		table = fn;
	if (!table || table->version != UM_STANDIN_VERSION || table->size != sizeof *table) {
		fprintf(stderr, "umadvise: this stand-in for a library of CUDA works under `umadvise dryrun` alone\n");
		return;
	}
	get("cuInit", &fn, 2000, 0, NULL);
	memcpy(&driver.cuInit, &fn, sizeof fn);
	get("cuStreamSynchronize", &fn, 2000, 0, NULL);
	memcpy(&driver.cuStreamSynchronize, &fn, sizeof fn);
	get("cuMemcpy2DAsync", &fn, 3020, 0, NULL);
	memcpy(&driver.cuMemcpy2DAsync, &fn, sizeof fn);
	if (driver.cuInit && driver.cuStreamSynchronize && driver.cuMemcpy2DAsync)
		driver.table = table;
}

int um_libs_open(void)
{
	pthread_once(&once, find);
	return driver.table ? driver.cuInit(0) : INSUFFICIENT_DRIVER;
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

void um_libs_touch(struct um_libs_kernel *k, const void *ptr, uint64_t bytes, uint64_t touched, uint32_t access)
{
	if (!ptr || !bytes)
		return;
	k->bytes += (double)touched * (access == UM_UPDATE ? 2 : 1);
	if (um_vec_push(&k->touch, ((struct um_touch){ptr, bytes, touched < bytes ? touched : 0, access})))
		k->no_memory = 1;
}

void um_libs_touch_vector(struct um_libs_kernel *k, const void *x, int64_t n, int64_t inc, size_t size, uint32_t access)
{
	uint64_t step = (uint64_t)(inc < 0 ? -inc : inc);

	if (n <= 0)
		return;
	/* Overwriting every second element leaves the others as they are. */
	if (step > 1 && access == UM_WRITE)
		access = UM_UPDATE;
	um_libs_touch(k, x, ((uint64_t)(n - 1) * step + 1) * size, (step ? (uint64_t)n : 1) * size, access);
}

void um_libs_touch_matrix(struct um_libs_kernel *k, const void *a, int64_t rows, int64_t cols, int64_t ld, size_t size,
			  uint32_t access)
{
	if (rows <= 0 || cols <= 0)
		return;
	if (ld > rows && access == UM_WRITE)
		access = UM_UPDATE;
	um_libs_touch(k, a, ((uint64_t)(cols - 1) * (uint64_t)ld + (uint64_t)rows) * size,
		      (uint64_t)rows * (uint64_t)cols * size, access);
}

/* As um_profile_op_ns. */
static uint64_t duration(const struct um_libs_kernel *k)
{
	const struct um_profile *p = driver.table->profile();
	double compute_s = k->flops / p->flops, memory_s = k->bytes / p->mem_bandwidth;

	return (uint64_t)((compute_s > memory_s ? compute_s : memory_s) * 1e9 + 0.5) + p->launch_ns;
}

int um_libs_run(void *stream, struct um_libs_kernel *k, void (*fn)(void *arg), const void *arg, size_t bytes)
{
	int err = um_libs_open();
	void *copy = NULL;

	if (!err) {
		copy = k->no_memory ? NULL : malloc(bytes);
		err = copy ? UM_CUDA_OK : UM_CUDA_NO_MEMORY;
	}
	if (!err) {
		const struct um_announcement what = {
			.touch = k->touch.at, .n = (uint32_t)k->touch.n, .ns = duration(k)};

		memcpy(copy, arg, bytes);
		err = driver.table->launch_host(stream, k->name, &what, compute ? fn : NULL, copy, free);
	}
	um_vec_fini(&k->touch);
	return err;
}

int um_libs_wait(void *stream)
{
	int err = um_libs_open();

	return err ? err : driver.cuStreamSynchronize(stream);
}

int um_libs_copy(void *stream, const struct um_libs_copy *c, int wait)
{
	const struct copy2d two = {.from_type = PLACE_HOST_OR_DEVICE,
				   .from = (uintptr_t)c->from,
				   .from_pitch = c->from_pitch,
				   .to_type = PLACE_HOST_OR_DEVICE,
				   .to = (uintptr_t)c->to,
				   .to_pitch = c->to_pitch,
				   .width = c->bytes,
				   .rows = c->rows};
	int err = um_libs_open();

	if (!err && c->bytes && c->rows)
		err = driver.cuMemcpy2DAsync(&two, stream);
	return err || !wait ? err : driver.cuStreamSynchronize(stream);
}

/* --- factors ------------------------------------------------------------------------------------------------------ */

static double number(const void *at, int type)
{
	return type == UM_F64	? *(const double *)at
	       : type == UM_F16 ? (double)um_half_load(*(const uint16_t *)at)
				: (double)*(const float *)at;
}

struct um_factor um_factor_take(struct um_libs_kernel *k, const void *ptr, int type, int on_device)
{
	size_t size = type == UM_F64 ? sizeof(double) : type == UM_F16 ? sizeof(uint16_t) : sizeof(float);

	if (!on_device || !ptr)
		return (struct um_factor){NULL, ptr ? number(ptr, type) : 0, type};
	um_libs_touch(k, ptr, size, size, UM_READ);
	return (struct um_factor){ptr, 0, type};
}

double um_factor_value(const struct um_factor *f)
{
	return f->at ? number(f->at, f->type) : f->value;
}

int um_factor_is_zero(const struct um_factor *f)
{
	return !f->at && f->value == 0;
}
