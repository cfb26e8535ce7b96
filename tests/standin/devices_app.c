/* SPDX-License-Identifier: Apache-2.0
 *
 * devices_app.c - a program that uses all devices that the driver has, by the driver API
 *
 *     devices_app facts           prints what tells the devices apart
 *     devices_app share           managed memory that the devices use in turn, copies between them, refused calls
 *     devices_app steps N [threads]   N iterations on each device, over device memory of 24 MiB, by one thread or by
 *                                 one for each device; prints a sum for each
 *
 * Kernels have host functions: the results are real.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <umadvise_dryrun.h>

#define DEVICES_MAX 16
#define TENSORS 12
#define N (512u << 10) /* floats of a tensor */
#define HANDLE 400 /* CUDA_ERROR_INVALID_HANDLE */
#define NO_PEER 217 /* CUDA_ERROR_PEER_ACCESS_UNSUPPORTED */

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n\tret;\n}\n";

#define CALLS(X)                                                                                                       \
	X(cuInit, cuInit, (unsigned flags))                                                                            \
	X(cuDeviceGetCount, cuDeviceGetCount, (int *n))                                                                \
	X(cuDeviceGet, cuDeviceGet, (int *device, int ordinal))                                                        \
	X(cuDeviceGetUuid, cuDeviceGetUuid, (char *uuid, int device))                                                  \
	X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *id, int size, int device))                                  \
	X(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, (int *device, const char *id))                                 \
	X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, int device))                         \
	X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, (int *can, int device, int peer))                              \
	X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (void **context, int device))                            \
	X(cuCtxSetCurrent, cuCtxSetCurrent, (void *context))                                                           \
	X(cuCtxGetDevice, cuCtxGetDevice, (int *device))                                                               \
	X(cuCtxSynchronize, cuCtxSynchronize, (void))                                                                  \
	X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, (void *context, unsigned flags))                               \
	X(cuModuleLoadData, cuModuleLoadData, (void **module, const void *image))                                      \
	X(cuModuleGetFunction, cuModuleGetFunction, (void **function, void *module, const char *name))                 \
	X(cuStreamCreate, cuStreamCreate, (void **stream, unsigned flags))                                             \
	X(cuStreamGetDevice, cuStreamGetDevice, (void *stream, int *device))                                           \
	X(cuStreamWaitEvent, cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                           \
	X(cuEventCreate, cuEventCreate, (void **event, unsigned flags))                                                \
	X(cuEventRecord, cuEventRecord, (void *event, void *stream))                                                   \
	X(cuMemAlloc, cuMemAlloc_v2, (uint64_t * at, size_t bytes))                                                    \
	X(cuMemAllocManaged, cuMemAllocManaged, (uint64_t * at, size_t bytes, unsigned flags))                         \
	X(cuMemFree, cuMemFree_v2, (uint64_t at))                                                                      \
	X(cuMemGetInfo, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total))                                        \
	X(cuMemcpyHtoD, cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))                                \
	X(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))                                      \
	X(cuMemcpyPeer, cuMemcpyPeer,                                                                                  \
	  (uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes))                            \
	X(cuPointerGetAttribute, cuPointerGetAttribute, (void *out, int attribute, uint64_t at))                       \
	X(cuLaunchKernel, cuLaunchKernel,                                                                              \
	  (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,     \
	   void *stream, void **params, void **extra))

static struct {
#define MEMBER(name, symbol, params) int(*name) params;
	CALLS(MEMBER)
} cu;

static struct device {
	int ordinal;
	void *context, *function, *stream;
	unsigned steps;
	double sum;
} devices[DEVICES_MAX];
static int n_devices;

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %d\n", what, err);
		exit(9);
	}
}

static void is(int got, int want, const char *what)
{
	if (got != want) {
		fprintf(stderr, "%s: %d instead of %d\n", what, got, want);
		exit(9);
	}
}

#define DO(name, ...) must(cu.name(__VA_ARGS__), #name)

/* y += x + 1 */
static void add(void **args, const unsigned grid[3], const unsigned block[3])
{
	const float *x = *(float **)args[0];
	float *y = *(float **)args[1];

	(void)grid;
	(void)block;
	for (unsigned i = 0, n = *(unsigned *)args[2]; i < n; i++)
		y[i] += x[i] + 1;
}

static void launch(const struct device *d, uint64_t x, uint64_t y)
{
	unsigned n = N;
	void *args[] = {&x, &y, &n};

	DO(cuLaunchKernel, d->function, N / 256, 1, 1, 256, 1, 1, 0, d->stream, args, NULL);
}

static void use(const struct device *d)
{
	DO(cuCtxSetCurrent, d->context);
}

static void start(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *module;

#define FIND(name, symbol, params) *(void **)&cu.name = driver ? dlsym(driver, #symbol) : NULL;
	CALLS(FIND)
	must(!driver || !cu.cuInit || !cu.cuLaunchKernel || !cu.cuCtxEnablePeerAccess, "libcuda.so.1");
	DO(cuInit, 0);
	DO(cuDeviceGetCount, &n_devices);
	for (int i = 0; i < n_devices; i++) {
		struct device *d = &devices[i];

		DO(cuDeviceGet, &d->ordinal, i);
		DO(cuDevicePrimaryCtxRetain, &d->context, d->ordinal);
		use(d);
		DO(cuStreamCreate, &d->stream, 1);
		DO(cuModuleLoadData, &module, ptx);
		DO(cuModuleGetFunction, &d->function, module, "add");
		must(umadv_dryrun_function(d->function, add) != 1, "umadv_dryrun_function");
	}
}

static void facts(void)
{
	char id[32], uuid[16];

	for (int i = 0; i < n_devices; i++) {
		int bus = 0, back = -1, can = -1, on = -1, of = -1;
		size_t free_bytes, total;

		use(&devices[i]);
		DO(cuCtxGetDevice, &on);
		DO(cuStreamGetDevice, devices[i].stream, &of);
		DO(cuDeviceGetPCIBusId, id, sizeof id, i);
		DO(cuDeviceGetByPCIBusId, &back, id);
		DO(cuDeviceGetUuid, uuid, i);
		DO(cuDeviceGetAttribute, &bus, 33, i);
		DO(cuDeviceCanAccessPeer, &can, i, (i + 1) % n_devices);
		DO(cuMemGetInfo, &free_bytes, &total);
		printf("%d%d%d %s bus %d uuid %.4s%d peer %d free %zu\n", on, of, back, id, bus, uuid, uuid[15], can,
		       free_bytes >> 20);
	}
	is(cu.cuDeviceGet(&n_devices, n_devices), 101, "a device too many");
}

static void share(void)
{
	uint64_t x, y, on[2];
	void *event;
	float *host;
	int of = -1;

	must(n_devices < 2, "two devices");
	use(&devices[0]);
	DO(cuMemAllocManaged, &x, N * sizeof *host, 1);
	DO(cuMemAllocManaged, &y, N * sizeof *host, 1);
	host = (float *)(uintptr_t)y;
	for (int i = 0; i < 6; i++) { /* y = 2 y + 1, on one device after the other */
		use(&devices[i % 2]);
		launch(&devices[i % 2], y, y);
		DO(cuCtxSynchronize);
	}
	printf("managed %.0f\n", (double)host[N - 1]);
	for (int i = 0; i < 2; i++) {
		use(&devices[i]);
		DO(cuMemAlloc, &on[i], N * sizeof *host);
	}
	DO(cuMemcpyHtoD, on[0], host, N * sizeof *host);
	DO(cuMemcpyPeer, on[1], devices[1].context, on[0], devices[0].context, N * sizeof *host);
	DO(cuPointerGetAttribute, &of, 9, on[1]);
	launch(&devices[1], on[1], on[1]);
	DO(cuCtxSynchronize);
	DO(cuMemcpyDtoH, (void *)(uintptr_t)x, on[1], N * sizeof *host);
	DO(cuCtxSynchronize); /* the target is managed memory */
	printf("copied %.0f on %d\n", (double)*(float *)(uintptr_t)x, of);
	DO(cuEventCreate, &event, 0);
	is(cu.cuEventRecord(event, devices[0].stream), HANDLE, "an event of another device");
	DO(cuEventRecord, event, devices[1].stream);
	DO(cuStreamWaitEvent, devices[0].stream, event, 0);
	is(cu.cuCtxEnablePeerAccess(devices[0].context, 0), NO_PEER, "peer access");
	use(&devices[0]);
	DO(cuMemFree, on[1]);
	DO(cuMemFree, on[0]);
	DO(cuMemFree, x);
}

/* Each tensor is added to the next. */
static void *steps(void *arg)
{
	struct device *d = arg;
	static const float zero[N];
	uint64_t t[TENSORS];
	float *host;

	use(d);
	for (int i = 0; i < TENSORS; i++) {
		DO(cuMemAlloc, &t[i], N * sizeof *host);
		DO(cuMemcpyHtoD, t[i], zero, sizeof zero);
	}
	for (unsigned s = 0; s < d->steps; s++) {
		for (int i = 0; i < TENSORS; i++)
			launch(d, t[i], t[(i + 1) % TENSORS]);
		DO(cuCtxSynchronize);
	}
	host = malloc(N * sizeof *host);
	must(!host, "malloc");
	for (int i = 0; i < TENSORS; i++) {
		DO(cuMemcpyDtoH, host, t[i], N * sizeof *host);
		d->sum += (double)host[i];
		DO(cuMemFree, t[i]);
	}
	free(host);
	return NULL;
}

static void all_steps(unsigned n, int threads)
{
	pthread_t thread[DEVICES_MAX];

	for (int i = 0; i < n_devices; i++) {
		devices[i].steps = n;
		if (!threads)
			steps(&devices[i]);
		else
			must(pthread_create(&thread[i], NULL, steps, &devices[i]), "pthread_create");
	}
	for (int i = 0; i < n_devices && threads; i++)
		must(pthread_join(thread[i], NULL), "pthread_join");
	for (int i = 0; i < n_devices; i++)
		printf("device %d %.6g\n", i, devices[i].sum);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	start();
	if (*what == 'f')
		facts();
	else if (*what == 's' && what[1] == 'h')
		share();
	else
		all_steps(argc > 2 ? (unsigned)atoi(argv[2]) : 1, argc > 3);
	return 0;
}
