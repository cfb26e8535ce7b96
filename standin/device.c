/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c - cuDevice and cuCtx functions: one device, its attributes, contexts
 *
 * The device is named for its profile and has the attributes of a recent GPU. Contexts carry no state but their flags:
 * all of them use the same device, and a thread has a stack of them.
 */
#include "standin/errors.h"
#include "standin/report.h"
#include "standin/standin.h"

#include <stdio.h>

#define MAGIC 0x6378u
#define DEPTH 32 /* contexts pushed on a thread */

struct context {
	unsigned magic; /* MAGIC while it lives */
	unsigned flags;
	unsigned refs; /* of the primary one */
	int primary;
};

static struct context primary = {.magic = MAGIC, .primary = 1};
static _Thread_local struct context *stack[DEPTH];
static _Thread_local unsigned depth;

/* --- device ------------------------------------------------------------------------------------------------------- */

static const struct model {
	const char *profile;
	int sm, processors, mhz;
} models[] = {{"k40", 35, 15, 745},	  {"1080ti", 61, 28, 1582}, {"v100", 70, 80, 1530},
	      {"rtx4090", 89, 128, 2520}, {"a100", 80, 108, 1410},  {"h100", 90, 132, 1980},
	      {"h200", 90, 132, 1980},	  {"gh200", 90, 132, 1980}, {"simulated", 80, 108, 1410}};

#define MODELS (sizeof models / sizeof models[0])

/* A user's profile counts as the last one. */
static const struct model *model(void)
{
	size_t i = 0;

	while (i < MODELS - 1 && strcmp(models[i].profile, um_standin()->profile.name))
		i++;
	return &models[i];
}

int um_standin_sm(void)
{
	return model()->sm;
}

static const struct {
	int id, value;
} fixed[] = {
	{1, 1024},     {2, 1024},  {3, 1024},	   {4, 64},	     {5, 2147483647}, {6, 65535}, {7, 65535},
	{8, 49152},    {9, 65536}, {10, 32},	   {11, 2147483647}, {12, 65536},     {14, 512},  {15, 1},
	{19, 1},       {31, 1},	   {33, 1}, /* bus */
	{36, 1215000}, {37, 5120}, {38, 41943040}, {39, 2048},	     {40, 2},	      {41, 1},	  {51, 32},
	{78, 1},       {79, 1},	   {80, 1},	   {81, 102400},     {82, 65536},     {83, 1},	  {87, 2},
	{89, 1},       {90, 1},	   {91, 1},	   {92, 1},	     {94, 1},	      {95, 1},	  {97, 101376},
	{99, 1},       {106, 32},  {111, 1024},	   {115, 1},	     {122, 1},	      {123, 1},
};

static int device_ok(int device)
{
	return !um_standin() ? UM_CU_NOT_INITIALIZED : device ? UM_CUDA_INVALID_DEVICE : UM_CUDA_OK;
}

UM_EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
	int fresh = 0, err = um_standin_fail("cuInit");

	if (!err)
		err = flags ? UM_CUDA_INVALID_VALUE : um_standin_open(&fresh);
	if (!err && fresh)
		um_report_open();
	return err;
}

UM_EXPORT int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
	if (!version)
		return UM_CUDA_INVALID_VALUE;
	*version = um_standin_version();
	return UM_CUDA_OK;
}

UM_EXPORT int cuGetErrorName(int error, const char **name);
int cuGetErrorName(int error, const char **name)
{
	const struct um_error_text *t = um_error_text(error);

	if (!name)
		return UM_CUDA_INVALID_VALUE;
	*name = t ? t->driver : NULL;
	return t ? UM_CUDA_OK : UM_CUDA_INVALID_VALUE;
}

UM_EXPORT int cuGetErrorString(int error, const char **text);
int cuGetErrorString(int error, const char **text)
{
	const struct um_error_text *t = um_error_text(error);

	if (!text)
		return UM_CUDA_INVALID_VALUE;
	*text = t ? t->text : NULL;
	return t ? UM_CUDA_OK : UM_CUDA_INVALID_VALUE;
}

/* Profiling has no effect: ranges for tools are accepted. */
UM_EXPORT int cuProfilerStart(void);
int cuProfilerStart(void)
{
	return UM_CUDA_OK;
}

UM_EXPORT int cuProfilerStop(void);
int cuProfilerStop(void)
{
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
	if (!um_standin() || !count)
		return count ? UM_CU_NOT_INITIALIZED : UM_CUDA_INVALID_VALUE;
	*count = 1;
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal)
{
	int err = device_ok(ordinal);

	if (!err && device)
		*device = 0;
	return err;
}

UM_EXPORT int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device)
{
	int err = device_ok(device);

	if (!err && name && size > 0)
		snprintf(name, (size_t)size, "%s (simulated)", um_standin()->profile.name);
	return err;
}

UM_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	size_t unused;
	int err = device_ok(device);

	return err ? err : um_standin()->gpu->api->cudaMemGetInfo(um_standin()->gpu, &unused, bytes);
}

/* The first bytes are the profile's name, so that profiles have different devices. */
UM_EXPORT int cuDeviceGetUuid(char *uuid, int device);
int cuDeviceGetUuid(char *uuid, int device)
{
	int err = device_ok(device);

	if (err)
		return err;
	memset(uuid, 0, 16);
	memcpy(uuid, um_standin()->profile.name, strnlen(um_standin()->profile.name, 16));
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	int err = device_ok(device);

	if (!err)
		err = um_standin_fail("cuDeviceGetAttribute");
	if (err || !value)
		return err ? err : UM_CUDA_INVALID_VALUE;
	*value = 0;
	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
		if (fixed[i].id == attribute)
			*value = fixed[i].value;
	if (attribute == 13)
		*value = model()->mhz * 1000;
	else if (attribute == 16)
		*value = model()->processors;
	else if (attribute == 75)
		*value = model()->sm / 10;
	else if (attribute == 76)
		*value = model()->sm % 10;
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceComputeCapability(int *major, int *minor, int device);
int cuDeviceComputeCapability(int *major, int *minor, int device)
{
	int err = device_ok(device);

	if (err)
		return err;
	*major = model()->sm / 10;
	*minor = model()->sm % 10;
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceGetPCIBusId(char *id, int size, int device);
int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	int err = device_ok(device);

	if (!err && id && size > 0)
		snprintf(id, (size_t)size, "0000:01:00.0");
	return err;
}

UM_EXPORT int cuDeviceGetByPCIBusId(int *device, const char *id);
int cuDeviceGetByPCIBusId(int *device, const char *id)
{
	if (!um_standin())
		return UM_CU_NOT_INITIALIZED;
	if (!device || !id || !strstr(id, "01:00.0"))
		return UM_CUDA_INVALID_VALUE;
	*device = 0;
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	int err = device_ok(device) ? device_ok(device) : device_ok(peer);

	if (!err)
		*can = 0;
	return err;
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

static struct context *current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static int context_ok(const struct context *c)
{
	return !um_standin() ? UM_CU_NOT_INITIALIZED : !c || c->magic != MAGIC ? UM_CU_INVALID_CONTEXT : UM_CUDA_OK;
}

UM_EXPORT int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
	int err = device_ok(device);

	if (!err)
		err = um_standin_fail("cuDevicePrimaryCtxRetain");
	if (err || !ctx)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	primary.refs++;
	um_standin_unlock();
	*ctx = &primary;
	return UM_CUDA_OK;
}

UM_EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device)
{
	int err = device_ok(device);

	um_standin_lock();
	if (!err && !primary.refs)
		err = UM_CU_INVALID_CONTEXT;
	else if (!err)
		primary.refs--;
	um_standin_unlock();
	return err;
}

/* A reset frees nothing here: the process is about to end or to start over. */
UM_EXPORT int cuDevicePrimaryCtxReset_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device)
{
	int err = device_ok(device);

	return err ? err : um_report_sync(um_sim_sync(um_standin()->gpu));
}

UM_EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags);
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
	int err = device_ok(device);

	if (!err)
		primary.flags = flags;
	return err;
}

UM_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	int err = device_ok(device);

	if (err)
		return err;
	*flags = primary.flags;
	*active = primary.refs > 0;
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
		*device = 0;
	return err;
}

UM_EXPORT int cuCtxGetDevice_v2(int *device, void *ctx);
int cuCtxGetDevice_v2(int *device, void *ctx)
{
	int err = context_ok(ctx ? ctx : current());

	if (!err)
		*device = 0;
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
	return err ? err : um_report_sync(um_context_sync());
}

UM_EXPORT int cuCtxSynchronize_v2(void *ctx);
int cuCtxSynchronize_v2(void *ctx)
{
	int err = context_ok(ctx ? ctx : current());

	return err ? err : um_context_sync();
}

static int context_new(void **ctx, unsigned flags, int device)
{
	struct context *c;
	int err = device_ok(device);

	if (err || !ctx)
		return err ? err : UM_CUDA_INVALID_VALUE;
	c = calloc(1, sizeof *c);
	if (!c)
		return UM_CUDA_NO_MEMORY;
	c->magic = MAGIC;
	c->flags = flags;
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
	return um_sim_sync(um_standin()->gpu);
}

const struct um_entry um_device_entries[] = {
	UM_ENTRY(cuInit, 2000, cuInit),
	UM_ENTRY(cuDriverGetVersion, 2020, cuDriverGetVersion),
	UM_ENTRY(cuGetErrorName, 6000, cuGetErrorName),
	UM_ENTRY(cuGetErrorString, 6000, cuGetErrorString),
	UM_ENTRY(cuProfilerStart, 4000, cuProfilerStart),
	UM_ENTRY(cuProfilerStop, 4000, cuProfilerStop),
	UM_ENTRY(cuDeviceGetCount, 2000, cuDeviceGetCount),
	UM_ENTRY(cuDeviceGet, 2000, cuDeviceGet),
	UM_ENTRY(cuDeviceGetName, 2000, cuDeviceGetName),
	UM_ENTRY(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2),
	UM_ENTRY(cuDeviceGetUuid, 9020, cuDeviceGetUuid),
	UM_ENTRY(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute),
	UM_ENTRY(cuDeviceComputeCapability, 2000, cuDeviceComputeCapability),
	UM_ENTRY(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId),
	UM_ENTRY(cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId),
	UM_ENTRY(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer),
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
