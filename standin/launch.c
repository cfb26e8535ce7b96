/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c - kernel launches
 *
 * A launch is a value: the kernel and copies of its parameters, so that it can be captured and executed repeatedly. A
 * kernel touches the ranges announced on the stream. Without an announcement they are derived from the parameters: each
 * 8-byte word that is an address of managed memory represents everything from there to the end of its allocation, read,
 * and written if the kernel may write through that word (image.h). A library's kernel has no device code: its ranges
 * and its time are arguments of the launch.
 */
#include "standin/module.h"

#include <stdatomic.h>
#include <stddef.h>

#define PARAM_END ((void *)0)
#define PARAM_BUFFER ((void *)1)
#define PARAM_SIZE ((void *)2)

/* A library's. */
struct host_code {
	char *name;
	struct um_announcement what; /* touch: a copy */
	void (*fn)(void *arg);
	void *arg;
	void (*free_arg)(void *arg);
	void *extra[5]; /* `what` as a buffer of parameters */
	size_t bytes; /* of it */
};

struct um_launch {
	atomic_uint refs;
	struct um_function *function; /* NULL: `code` */
	struct host_code code;
	unsigned grid[3], block[3];
	int cooperative;
	uint32_t bytes;
	uint32_t n_args;
	void **args; /* into param */
	_Alignas(max_align_t) unsigned char param[]; /* `bytes`, then the array of args */
};

struct config { /* CUlaunchConfig */
	unsigned grid[3], block[3], shared;
	void *stream, *attributes;
	unsigned n_attributes;
};

struct um_launch *um_launch_get(struct um_launch *launch)
{
	atomic_fetch_add(&launch->refs, 1);
	return launch;
}

int um_launch_is_cooperative(const struct um_launch *launch)
{
	return launch->cooperative;
}

void um_launch_put(struct um_launch *launch)
{
	if (!launch || atomic_fetch_sub(&launch->refs, 1) != 1)
		return;
	if (launch->code.free_arg)
		launch->code.free_arg(launch->code.arg);
	free(launch);
}

/* --- making one --------------------------------------------------------------------------------------------------- */

/* The buffer of the extra options, which contains all parameters in memory order. */
static int extra_read(void **extra, const void **buffer, size_t *bytes)
{
	*buffer = NULL;
	*bytes = 0;
	for (; *extra != PARAM_END; extra += 2) {
		if (*extra == PARAM_BUFFER)
			*buffer = extra[1];
		else if (*extra == PARAM_SIZE)
			*bytes = *(const size_t *)extra[1];
		else
			return UM_CUDA_INVALID_VALUE;
	}
	return *bytes > UM_IMAGE_PARAM_MAX || (*bytes && !*buffer) ? UM_CUDA_INVALID_VALUE : UM_CUDA_OK;
}

static void params_copy(struct um_launch *l, void **params, const void *buffer)
{
	const struct um_image_kernel *k = l->function->kernel;

	if (buffer)
		memcpy(l->param, buffer, l->bytes);
	for (uint32_t i = 0; i < l->n_args; i++) {
		l->args[i] = l->param + k->params.at[i].offset;
		if (!buffer)
			memcpy(l->args[i], params[i], k->params.at[i].bytes);
	}
}

int um_launch_new(struct um_launch **out, void *function, const unsigned grid[3], const unsigned block[3],
		  void **params, void **extra)
{
	struct um_function *f = function;
	const void *buffer = NULL;
	struct um_launch *l;
	size_t bytes, round;
	int err;

	if (!f)
		return UM_CU_INVALID_HANDLE;
	bytes = f->bytes;
	if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2] ||
	    (uint64_t)block[0] * block[1] * block[2] > 1024 || (params && extra))
		return UM_CUDA_INVALID_VALUE;
	if (extra) {
		err = extra_read(extra, &buffer, &bytes);
		if (err || bytes < f->bytes)
			return UM_CUDA_INVALID_VALUE;
	} else if (!params && f->kernel->params.n) {
		return UM_CUDA_INVALID_VALUE;
	}
	round = (bytes + 15) & ~(size_t)15;
	l = calloc(1, sizeof *l + round + f->kernel->params.n * sizeof *l->args);
	if (!l)
		return UM_CUDA_NO_MEMORY;
	l->refs = 1;
	l->function = f;
	memcpy(l->grid, grid, sizeof l->grid);
	memcpy(l->block, block, sizeof l->block);
	l->bytes = (uint32_t)bytes;
	l->n_args = (uint32_t)f->kernel->params.n;
	l->args = (void **)(l->param + round);
	params_copy(l, params, buffer);
	*out = l;
	return UM_CUDA_OK;
}

void um_launch_describe(struct um_launch *l, struct um_launch_description *out)
{
	*out = (struct um_launch_description){.function = l->function};
	memcpy(out->grid, l->grid, sizeof out->grid);
	memcpy(out->block, l->block, sizeof out->block);
	if (l->function) {
		out->params = l->args;
		return;
	}
	l->code.extra[0] = PARAM_BUFFER;
	l->code.extra[1] = l->param;
	l->code.extra[2] = PARAM_SIZE;
	l->code.extra[3] = &l->code.bytes;
	l->code.extra[4] = PARAM_END;
	out->extra = l->code.extra;
}

/* --- doing it ----------------------------------------------------------------------------------------------------- */

/* Runs on the host when simulated time has reached the kernel. */
static void run_host(void *arg)
{
	struct um_launch *l = arg;

	if (!l->function)
		l->code.fn(l->code.arg);
	else if (l->function->host)
		l->function->host(l->args, l->grid, l->block);
	um_launch_put(l);
}

typedef UM_VEC(struct um_touch) touches;

/* Adds an address: an allocation counts once, from its lowest address on. */
static int touch_add(touches *t, uint64_t *traffic, void *ptr, enum um_access access)
{
	struct um_sim_memory a;
	uint64_t bytes, end;

	if (um_sim_memory(um_standin()->gpu, ptr, &a) || (a.kind != UM_SIM_MANAGED && a.kind != UM_SIM_DEVICE))
		return 0;
	if (a.kind == UM_SIM_DEVICE && a.device != um_standin()->ordinal) /* out of reach: it may be passed on only */
		return 0;
	end = a.addr + ((uint64_t)(uintptr_t)ptr - a.addr < a.used ? a.used : a.bytes);
	bytes = end - (uint64_t)(uintptr_t)ptr;
	for (size_t i = 0; i < t->n; i++) {
		struct um_touch *was = &t->at[i];

		if ((uint64_t)(uintptr_t)was->ptr + was->bytes != end)
			continue;
		was->access |= access;
		if (bytes > was->bytes) {
			*traffic += bytes - was->bytes;
			was->ptr = ptr;
			was->bytes = bytes;
		}
		return 0;
	}
	*traffic += bytes;
	return um_vec_push(t, ((struct um_touch){ptr, bytes, 0, access}));
}

static int run_code(struct um_launch *launch, um_stream stream)
{
	const struct host_code *c = &launch->code;
	struct um_sim_kernel k = {.name = c->name,
				  .ns = c->what.ns,
				  .access = c->what.touch,
				  .n_access = c->what.n,
				  .pattern = c->what.pattern,
				  .announced = 1};
	int err;

	if (c->fn) {
		k.fn = run_host;
		k.arg = um_launch_get(launch);
	}
	err = um_sim_run(um_standin()->gpu, stream, &k);
	if (err && k.fn)
		um_launch_put(launch);
	return err;
}

int um_launch_run(struct um_launch *launch, um_stream stream)
{
	struct um_sim_kernel k = {.announced = 1};
	const struct um_image_kernel *kernel;
	touches t = {0};
	uint64_t traffic = 0;
	int err = UM_CUDA_OK;

	if (!launch->function)
		return run_code(launch, stream);
	kernel = launch->function->kernel;
	k.name = kernel->name;
	for (uint32_t at = 0; at + sizeof(void *) <= launch->bytes && !err; at += sizeof(void *)) {
		int written = at / 8 >= um_image_words(kernel) || kernel->written[at / 8];
		void *word;

		memcpy(&word, launch->param + at, sizeof word);
		if (touch_add(&t, &traffic, word, written ? UM_UPDATE : UM_READ))
			err = UM_CUDA_NO_MEMORY;
	}
	k.access = t.at;
	k.n_access = (uint32_t)t.n;
	k.ns = um_profile_op_ns(&um_standin()->profile, &(struct um_cost){0}, (double)traffic);
	if (launch->function->host) {
		k.fn = run_host;
		k.arg = um_launch_get(launch);
	}
	if (!err)
		err = um_sim_run(um_standin()->gpu, stream, &k);
	if (err && k.fn)
		um_launch_put(launch);
	um_vec_fini(&t);
	return err;
}

static int launch(const char *name, const struct config *c, void *function, void **params, void **extra,
		  int cooperative)
{
	struct um_work work = {.kind = UM_WORK_KERNEL};
	int err = um_standin() ? um_standin_fail(name) : UM_CU_NOT_INITIALIZED;

	um_standin_on(NULL);
	if (!err)
		err = um_launch_new(&work.launch, function, c->grid, c->block, params, extra);
	if (!err)
		work.launch->cooperative = cooperative;
	return err ? err : um_work_submit(c->stream, &work);
}

int um_launch_host(um_stream stream, const char *name, const struct um_announcement *what, void (*fn)(void *arg),
		   void *arg, void (*free_arg)(void *arg))
{
	struct um_work work = {.kind = UM_WORK_KERNEL};
	int err = um_standin() ? um_standin_fail(name) : UM_CU_NOT_INITIALIZED;
	size_t bytes = what->n * sizeof *what->touch;
	struct um_launch *l = err ? NULL : calloc(1, sizeof *l + bytes + strlen(name) + 1);

	if (!l) {
		if (free_arg)
			free_arg(arg);
		return err ? err : UM_CUDA_NO_MEMORY;
	}
	l->refs = 1;
	l->code = (struct host_code){.name = (char *)l->param + bytes,
				     .what = *what,
				     .fn = fn,
				     .arg = arg,
				     .free_arg = free_arg,
				     .bytes = bytes};
	l->code.what.touch = bytes ? memcpy(l->param, what->touch, bytes) : NULL;
	strcpy(l->code.name, name);
	work.launch = l;
	return um_work_submit(stream, &work);
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

#define STREAM(handle) ((handle) ? (handle) : (void *)2) /* of the forms for per-thread default streams */

UM_EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			     unsigned bz, unsigned shared, void *stream, void **params, void **extra);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **params, void **extra)
{
	struct config c = {{gx, gy, gz}, {bx, by, bz}, shared, stream, NULL, 0};

	return launch("cuLaunchKernel", &c, function, params, extra, 0);
}

UM_EXPORT int cuLaunchKernel_ptsz(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
				  unsigned bz, unsigned shared, void *stream, void **params, void **extra);
int cuLaunchKernel_ptsz(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			unsigned shared, void *stream, void **params, void **extra)
{
	return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, STREAM(stream), params, extra);
}

UM_EXPORT int cuLaunchKernelEx(const struct config *config, void *function, void **params, void **extra);
int cuLaunchKernelEx(const struct config *config, void *function, void **params, void **extra)
{
	return config ? launch("cuLaunchKernelEx", config, function, params, extra, 0) : UM_CUDA_INVALID_VALUE;
}

UM_EXPORT int cuLaunchKernelEx_ptsz(const struct config *config, void *function, void **params, void **extra);
int cuLaunchKernelEx_ptsz(const struct config *config, void *function, void **params, void **extra)
{
	struct config c;

	if (!config)
		return UM_CUDA_INVALID_VALUE;
	c = *config;
	c.stream = STREAM(c.stream);
	return cuLaunchKernelEx(&c, function, params, extra);
}

UM_EXPORT int cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
					unsigned bz, unsigned shared, void *stream, void **params);
int cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			      unsigned bz, unsigned shared, void *stream, void **params)
{
	struct config c = {{gx, gy, gz}, {bx, by, bz}, shared, stream, NULL, 0};

	return launch("cuLaunchCooperativeKernel", &c, function, params, NULL, 1);
}

UM_EXPORT int cuLaunchCooperativeKernel_ptsz(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
					     unsigned by, unsigned bz, unsigned shared, void *stream, void **params);
int cuLaunchCooperativeKernel_ptsz(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
				   unsigned bz, unsigned shared, void *stream, void **params)
{
	return cuLaunchCooperativeKernel(function, gx, gy, gz, bx, by, bz, shared, STREAM(stream), params);
}

const struct um_entry um_launch_entries[] = {
	UM_ENTRY_PTSZ(cuLaunchKernel, 4000, cuLaunchKernel),
	UM_ENTRY_PTSZ(cuLaunchKernelEx, 11060, cuLaunchKernelEx),
	UM_ENTRY_PTSZ(cuLaunchCooperativeKernel, 9000, cuLaunchCooperativeKernel),
	{NULL, 0, NULL, NULL},
};
