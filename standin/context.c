/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c - cuDevicePrimaryCtx and cuCtx functions
 *
 * Contexts carry no state but their device and their flags, and a thread has a stack of them.
 */
#include "standin/report.h"
#include "standin/standin.h"

#define MAGIC 0x6378u
#define DEPTH 32 /* contexts pushed on a thread */

struct context {
	unsigned magic; /* MAGIC while it lives */
	unsigned flags;
	unsigned refs; /* of the primary one */
	int primary;
	int device;
};

static struct context primaries[UM_SIM_DEVICES_MAX];
static _Thread_local struct context *stack[DEPTH];
static _Thread_local unsigned depth;

static struct um_gpu *gpu_of(int device)
{
	return um_standin_device(device)->gpu;
}

/* The device's, which is known to exist. */
static struct context *primary_of(int device)
{
	struct context *c = &primaries[device];

	um_standin_lock();
	c->magic = MAGIC;
	c->primary = 1;
	c->device = device;
	um_standin_unlock();
	return c;
}

static struct context *current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

int um_standin_context_device(void)
{
	return depth ? current()->device : 0;
}

static int context_ok(const struct context *c)
{
	return !um_standin() ? UM_CU_NOT_INITIALIZED : !c || c->magic != MAGIC ? UM_CU_INVALID_CONTEXT : UM_CUDA_OK;
}

UM_EXPORT int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
	int err = um_device_ok(device);

	if (!err)
		err = um_standin_fail("cuDevicePrimaryCtxRetain");
	if (err || !ctx)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	primary_of(device)->refs++;
	um_standin_unlock();
	*ctx = primary_of(device);
	return UM_CUDA_OK;
}

UM_EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device)
{
	int err = um_device_ok(device);

	um_standin_lock();
	if (!err && !primary_of(device)->refs)
		err = UM_CU_INVALID_CONTEXT;
	else if (!err)
		primary_of(device)->refs--;
	um_standin_unlock();
	return err;
}

/* A reset frees nothing here: the process is about to end or to start over. */
UM_EXPORT int cuDevicePrimaryCtxReset_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device)
{
	int err = um_device_ok(device);

	return err ? err : um_report_sync(um_sim_sync(gpu_of(device)));
}

UM_EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags);
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
	int err = um_device_ok(device);

	if (!err)
		primary_of(device)->flags = flags;
	return err;
}

UM_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	int err = um_device_ok(device);

	if (err)
		return err;
	*flags = primary_of(device)->flags;
	*active = primary_of(device)->refs > 0;
	return UM_CUDA_OK;
}

UM_EXPORT int cuCtxPushCurrent_v2(void *ctx);
int cuCtxPushCurrent_v2(void *ctx)
{
	int err = context_ok(ctx);

	if (err)
		return err;
	if (depth == DEPTH)
		return UM_CUDA_NO_MEMORY;
	stack[depth++] = ctx;
	return UM_CUDA_OK;
}

UM_EXPORT int cuCtxPopCurrent_v2(void **ctx);
int cuCtxPopCurrent_v2(void **ctx)
{
	if (!um_standin() || !depth)
		return um_standin() ? UM_CU_INVALID_CONTEXT : UM_CU_NOT_INITIALIZED;
	depth--;
	if (ctx)
		*ctx = stack[depth];
	return UM_CUDA_OK;
}

UM_EXPORT int cuCtxSetCurrent(void *ctx);
int cuCtxSetCurrent(void *ctx)
{
	int err = ctx ? context_ok(ctx) : um_standin() ? UM_CUDA_OK : UM_CU_NOT_INITIALIZED;

	if (!err)
		err = um_standin_fail("cuCtxSetCurrent");
	if (err)
		return err;
	if (!ctx) {
		depth -= depth > 0;
		return UM_CUDA_OK;
	}
	depth += !depth;
	stack[depth - 1] = ctx;
	return UM_CUDA_OK;
}

UM_EXPORT int cuCtxGetCurrent(void **ctx);
int cuCtxGetCurrent(void **ctx)
{
	if (!um_standin() || !ctx)
		return ctx ? UM_CU_NOT_INITIALIZED : UM_CUDA_INVALID_VALUE;
	*ctx = current();
	return UM_CUDA_OK;
}

UM_EXPORT int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
	int err = context_ok(current());

	if (!err)
		*device = current()->device;
	return err;
}

UM_EXPORT int cuCtxGetDevice_v2(int *device, void *ctx);
int cuCtxGetDevice_v2(int *device, void *ctx)
{
	const struct context *c = ctx ? ctx : current();
	int err = context_ok(c);

	if (!err)
		*device = c->device;
	return err;
}

UM_EXPORT int cuCtxGetFlags(unsigned *flags);
int cuCtxGetFlags(unsigned *flags)
{
	int err = context_ok(current());

	if (!err)
		*flags = current()->flags;
	return err;
}

UM_EXPORT int cuCtxGetApiVersion(void *ctx, unsigned *version);
int cuCtxGetApiVersion(void *ctx, unsigned *version)
{
	int err = context_ok(ctx ? ctx : current());

	if (!err)
		*version = 3020;
	return err;
}

UM_EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest);
int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	int err = context_ok(current());

	if (err)
		return err;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = 0;
	return UM_CUDA_OK;
}

UM_EXPORT int cuCtxGetLimit(size_t *value, int limit);
int cuCtxGetLimit(size_t *value, int limit)
{
	static const size_t limits[] = {1024, 1 << 20, 8 << 20}; /* stack, printf, heap */
	int err = context_ok(current());

	if (!err)
		*value = limit >= 0 && limit < 3 ? limits[limit] : 0;
	return err;
}

/* Limits and preferences are accepted without effect. */
UM_EXPORT int cuCtxSetLimit(int limit, size_t value);
int cuCtxSetLimit(int limit, size_t value)
{
	(void)limit;
	(void)value;
	return context_ok(current());
}

UM_EXPORT int cuCtxSetCacheConfig(int config);
int cuCtxSetCacheConfig(int config)
{
	(void)config;
	return context_ok(current());
}

UM_EXPORT int cuCtxSynchronize(void);
int cuCtxSynchronize(void)
{
	int err = context_ok(current());

	if (!err)
		err = um_standin_fail("cuCtxSynchronize");
	return err ? err : um_report_sync(um_context_sync(um_standin_device(current()->device)));
}

UM_EXPORT int cuCtxSynchronize_v2(void *ctx);
int cuCtxSynchronize_v2(void *ctx)
{
	const struct context *c = ctx ? ctx : current();
	int err = context_ok(c);

	return err ? err : um_context_sync(um_standin_device(c->device));
}

static int context_new(void **ctx, unsigned flags, int device)
{
	struct context *c;
	int err = um_device_ok(device);

	if (err || !ctx)
		return err ? err : UM_CUDA_INVALID_VALUE;
	c = calloc(1, sizeof *c);
	if (!c)
		return UM_CUDA_NO_MEMORY;
	c->magic = MAGIC;
	c->flags = flags;
	c->device = device;
	err = cuCtxPushCurrent_v2(c);
	if (err)
		free(c);
	else
		*ctx = c;
	return err;
}

UM_EXPORT int cuCtxCreate_v2(void **ctx, unsigned flags, int device);
int cuCtxCreate_v2(void **ctx, unsigned flags, int device)
{
	return context_new(ctx, flags, device);
}

UM_EXPORT int cuCtxCreate_v4(void **ctx, void *params, unsigned flags, int device);
int cuCtxCreate_v4(void **ctx, void *params, unsigned flags, int device)
{
	return params ? um_standin_unsupported("contexts with parameters") : context_new(ctx, flags, device);
}

/* Its memory stays: other threads may still have it on their stacks, and must see that it is destroyed. */
UM_EXPORT int cuCtxDestroy_v2(void *ctx);
int cuCtxDestroy_v2(void *ctx)
{
	struct context *c = ctx;
	int err = context_ok(c);

	if (err || c->primary)
		return err ? err : UM_CU_INVALID_CONTEXT;
	if (current() == c)
		depth--;
	c->magic = 0;
	return um_sim_sync(gpu_of(c->device));
}

UM_EXPORT int cuCtxEnablePeerAccess(void *ctx, unsigned flags);
int cuCtxEnablePeerAccess(void *ctx, unsigned flags)
{
	int err = context_ok(ctx) ? context_ok(ctx) : context_ok(current());

	return err ? err : flags ? UM_CUDA_INVALID_VALUE : UM_CU_PEER_UNSUPPORTED;
}

UM_EXPORT int cuCtxDisablePeerAccess(void *ctx);
int cuCtxDisablePeerAccess(void *ctx)
{
	int err = context_ok(ctx) ? context_ok(ctx) : context_ok(current());

	return err ? err : UM_CU_PEER_NOT_ENABLED;
}

const struct um_entry um_context_entries[] = {
	UM_ENTRY(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess),
	UM_ENTRY(cuCtxDisablePeerAccess, 4000, cuCtxDisablePeerAccess),
	UM_ENTRY(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain),
	UM_ENTRY(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease_v2),
	UM_ENTRY(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset_v2),
	UM_ENTRY(cuDevicePrimaryCtxSetFlags, 7000, cuDevicePrimaryCtxSetFlags_v2),
	UM_ENTRY(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState),
	UM_ENTRY(cuCtxCreate, 3020, cuCtxCreate_v2),
	UM_ENTRY(cuCtxCreate, 13000, cuCtxCreate_v4),
	UM_ENTRY(cuCtxDestroy, 4000, cuCtxDestroy_v2),
	UM_ENTRY(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2),
	UM_ENTRY(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2),
	UM_ENTRY(cuCtxSetCurrent, 4000, cuCtxSetCurrent),
	UM_ENTRY(cuCtxGetCurrent, 4000, cuCtxGetCurrent),
	UM_ENTRY(cuCtxGetDevice, 2000, cuCtxGetDevice),
	UM_ENTRY(cuCtxGetDevice, 13000, cuCtxGetDevice_v2),
	UM_ENTRY(cuCtxGetFlags, 7000, cuCtxGetFlags),
	UM_ENTRY(cuCtxGetApiVersion, 3020, cuCtxGetApiVersion),
	UM_ENTRY(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange),
	UM_ENTRY(cuCtxGetLimit, 3010, cuCtxGetLimit),
	UM_ENTRY(cuCtxSetLimit, 3010, cuCtxSetLimit),
	UM_ENTRY(cuCtxSetCacheConfig, 3020, cuCtxSetCacheConfig),
	UM_ENTRY(cuCtxSynchronize, 2000, cuCtxSynchronize),
	UM_ENTRY(cuCtxSynchronize, 13000, cuCtxSynchronize_v2),
	{NULL, 0, NULL, NULL},
};
