/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c - cuDevice functions: devices and their attributes
 *
 * A device is named for its profile and has the attributes of a recent GPU. No device reaches the memory of another.
 */
#include "standin/errors.h"
#include "standin/report.h"
#include "standin/standin.h"

#include <stdio.h>

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
	{1, 1024},     {2, 1024},  {3, 1024},	     {4, 64},	  {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
	{9, 65536},    {10, 32},   {11, 2147483647}, {12, 65536}, {14, 512},	   {15, 1},    {19, 1},	   {31, 1},
	{36, 1215000}, {37, 5120}, {38, 41943040},   {39, 2048},  {40, 2},	   {41, 1},    {51, 32},   {78, 1},
	{79, 1},       {80, 1},	   {81, 102400},     {82, 65536}, {83, 1},	   {87, 2},    {89, 1},	   {90, 1},
	{91, 1},       {92, 1},	   {94, 1},	     {95, 1},	  {97, 101376},	   {99, 1},    {106, 32},  {111, 1024},
	{115, 1},      {122, 1},   {123, 1},
};

int um_device_ok(int device)
{
	return !um_standin_devices()	    ? UM_CU_NOT_INITIALIZED
	       : !um_standin_device(device) ? UM_CUDA_INVALID_DEVICE
					    : UM_CUDA_OK;
}

static struct um_gpu *gpu_of(int device)
{
	return um_standin_device(device)->gpu;
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
	*count = um_standin_devices();
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal)
{
	int err = um_device_ok(ordinal);

	if (!err && device)
		*device = ordinal;
	return err;
}

UM_EXPORT int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device)
{
	int err = um_device_ok(device);

	if (!err && name && size > 0)
		snprintf(name, (size_t)size, "%s (simulated)", um_standin()->profile.name);
	return err;
}

UM_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	size_t unused;
	int err = um_device_ok(device);

	return err ? err : gpu_of(device)->api->cudaMemGetInfo(gpu_of(device), &unused, bytes);
}

/* The first bytes are the profile's name, so that profiles have different devices; the last one is the ordinal. */
UM_EXPORT int cuDeviceGetUuid(char *uuid, int device);
int cuDeviceGetUuid(char *uuid, int device)
{
	int err = um_device_ok(device);

	if (err)
		return err;
	memset(uuid, 0, 16);
	memcpy(uuid, um_standin()->profile.name, strnlen(um_standin()->profile.name, 16));
	if (device)
		uuid[15] = (char)device;
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	int err = um_device_ok(device);

	if (!err)
		err = um_standin_fail("cuDeviceGetAttribute");
	if (err || !value)
		return err ? err : UM_CUDA_INVALID_VALUE;
	*value = 0;
	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
		if (fixed[i].id == attribute)
			*value = fixed[i].value;
	if (attribute == 33)
		*value = device + 1;
	else if (attribute == 13)
		*value = model()->mhz * 1000;
	else if (attribute == 16)
		*value = model()->processors;
	else if (attribute == 75)
		*value = model()->sm / 10;
	else if (attribute == 76)
		*value = model()->sm % 10;
	else if (attribute == 134)
		*value = um_standin_nodes() > 1 ? device % um_standin_nodes() : -1;
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceComputeCapability(int *major, int *minor, int device);
int cuDeviceComputeCapability(int *major, int *minor, int device)
{
	int err = um_device_ok(device);

	if (err)
		return err;
	*major = model()->sm / 10;
	*minor = model()->sm % 10;
	return UM_CUDA_OK;
}

UM_EXPORT int cuDeviceGetPCIBusId(char *id, int size, int device);
int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	int err = um_device_ok(device);

	if (!err && id && size > 0)
		snprintf(id, (size_t)size, "0000:%02x:00.0", device + 1);
	return err;
}

UM_EXPORT int cuDeviceGetByPCIBusId(int *device, const char *id);
int cuDeviceGetByPCIBusId(int *device, const char *id)
{
	if (!um_standin())
		return UM_CU_NOT_INITIALIZED;
	for (int i = 0; i < um_standin_devices() && device && id; i++) {
		char own[16];

		snprintf(own, sizeof own, "%02x:00.0", i + 1);
		if (strstr(id, own)) {
			*device = i;
			return UM_CUDA_OK;
		}
	}
	return UM_CUDA_INVALID_VALUE;
}

UM_EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	int err = um_device_ok(device) ? um_device_ok(device) : um_device_ok(peer);

	if (!err)
		*can = 0;
	return err;
}

/* Of a link between devices, which they do not have: neither fast nor there. */
UM_EXPORT int cuDeviceGetP2PAttribute(int *value, int attribute, int device, int peer);
int cuDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
	int err = um_device_ok(device) ? um_device_ok(device) : um_device_ok(peer);

	if (!err && (!value || attribute < 1 || attribute > 4 || device == peer))
		err = UM_CUDA_INVALID_VALUE;
	if (!err)
		*value = 0;
	return err;
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
	UM_ENTRY(cuDeviceGetP2PAttribute, 8000, cuDeviceGetP2PAttribute),
	{NULL, 0, NULL, NULL},
};
