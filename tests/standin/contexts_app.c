/* SPDX-License-Identifier: Apache-2.0
 *
 * contexts_app.c - a program with a context for each device that the driver has, and 80 MiB of tensors in each
 *
 *     contexts_app turns      one thread: an operation on each device in its turn
 *     contexts_app threads    a thread for each device
 *     contexts_app joint      as turns; all devices also read tensors of managed memory, and all update another one
 *     contexts_app readers    as threads; all devices also read tensors of managed memory
 *     contexts_app mistakes   tensors of another device's context are named, freed, and declared dead
 *
 * Prints a line for each device: sum of what was computed, whether hints were issued, errors.
 */
#include "umadvise.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <umadvise_dryrun.h>

#define DEVICES_MAX 16
#define ITERATIONS 8
#define TENSORS 20
#define JOINT 4 /* tensors that all devices read; one more is updated by all */
#define N (1u << 20) /* floats of a tensor */

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n\tret;\n}\n";

static struct {
	int (*cuInit)(unsigned flags);
	int (*cuDeviceGetCount)(int *n);
	int (*cuDevicePrimaryCtxRetain)(void **context, int device);
	int (*cuCtxSetCurrent)(void *context);
	int (*cuCtxSynchronize)(void);
	int (*cuMemAllocManaged)(float **at, size_t bytes, unsigned flags);
	int (*cuStreamCreate)(void **stream, unsigned flags);
	int (*cuModuleLoadData)(void **module, const void *image);
	int (*cuModuleGetFunction)(void **function, void *module, const char *name);
	int (*cuLaunchKernel)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			      unsigned shared, void *stream, void **params, void **extra);
} cu;

static struct device {
	struct umadv *adv;
	void *context, *function, *stream;
	float *t[TENSORS];
} devices[DEVICES_MAX];
static int n_devices;
static float *joint[JOINT + 1]; /* NULL: none */

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %d\n", what, err);
		exit(9);
	}
}

/* y += x + 1, in every 1,024th element */
static void add(void **args, const unsigned grid[3], const unsigned block[3])
{
	const float *x = *(float **)args[0];
	float *y = *(float **)args[1];

	(void)grid;
	(void)block;
	for (unsigned i = 0, n = *(unsigned *)args[2]; i < n; i += 1024)
		y[i] += x[i] + 1;
}

static void find(void *driver, const char *name, void *out)
{
	*(void **)out = driver ? dlsym(driver, name) : NULL;
	must(!*(void **)out, name);
}

static void start(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	find(driver, "cuInit", &cu.cuInit);
	find(driver, "cuDeviceGetCount", &cu.cuDeviceGetCount);
	find(driver, "cuDevicePrimaryCtxRetain", &cu.cuDevicePrimaryCtxRetain);
	find(driver, "cuCtxSetCurrent", &cu.cuCtxSetCurrent);
	find(driver, "cuCtxSynchronize", &cu.cuCtxSynchronize);
	find(driver, "cuMemAllocManaged", &cu.cuMemAllocManaged);
	find(driver, "cuStreamCreate", &cu.cuStreamCreate);
	find(driver, "cuModuleLoadData", &cu.cuModuleLoadData);
	find(driver, "cuModuleGetFunction", &cu.cuModuleGetFunction);
	find(driver, "cuLaunchKernel", &cu.cuLaunchKernel);
	must(cu.cuInit(0), "cuInit");
	must(cu.cuDeviceGetCount(&n_devices), "cuDeviceGetCount");
}

static void open_device(struct device *d, int ordinal)
{
	struct umadv_options o;
	void *module;

	must(cu.cuDevicePrimaryCtxRetain(&d->context, ordinal), "cuDevicePrimaryCtxRetain");
	must(cu.cuCtxSetCurrent(d->context), "cuCtxSetCurrent");
	must(cu.cuStreamCreate(&d->stream, 1), "cuStreamCreate");
	must(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cu.cuModuleGetFunction(&d->function, module, "add"), "cuModuleGetFunction");
	must(umadv_dryrun_function(d->function, add) != 1, "umadv_dryrun_function");
	umadv_options_init(&o);
	must(umadv_open(&d->adv, &o), "umadv_open");
	for (int i = 0; i < TENSORS; i++)
		must(umadv_alloc(d->adv, (void **)&d->t[i], N * sizeof(float), "t", UMADV_PARAM), "umadv_alloc");
	for (int i = 0; i <= JOINT && joint[0]; i++)
		must(umadv_adopt(d->adv, joint[i], N * sizeof(float), "joint", UMADV_PARAM), "umadv_adopt");
}

static void allocate_joint(void)
{
	must(cu.cuDevicePrimaryCtxRetain(&devices[0].context, 0), "cuDevicePrimaryCtxRetain");
	must(cu.cuCtxSetCurrent(devices[0].context), "cuCtxSetCurrent");
	for (int i = 0; i <= JOINT; i++) {
		must(cu.cuMemAllocManaged(&joint[i], N * sizeof(float), 1), "cuMemAllocManaged");
		for (unsigned k = 0; k < N; k += 1024)
			joint[i][k] = (float)i;
	}
}

static void begin(struct device *d)
{
	must(cu.cuCtxSetCurrent(d->context), "cuCtxSetCurrent");
	must(umadv_iter(d->adv, NULL), "umadv_iter");
}

static void add_to(struct device *d, float *x, float *y)
{
	unsigned n = N;
	void *args[] = {&x, &y, &n};

	must(cu.cuCtxSetCurrent(d->context), "cuCtxSetCurrent");
	must(umadv_op(d->adv, d->stream, "add", UMADV_USES(UMADV_READ(x), UMADV_UPDATE(y))), "umadv_op");
	must(cu.cuLaunchKernel(d->function, N / 256, 1, 1, 256, 1, 1, 0, d->stream, args, NULL), "cuLaunchKernel");
}

static void op(struct device *d, int i)
{
	add_to(d, d->t[i], d->t[(i + 1) % TENSORS]);
	if (joint[0])
		add_to(d, joint[i % JOINT], d->t[i]);
}

/* All devices update one tensor, in their order. */
static void update_joint(void)
{
	for (int k = 0; k < n_devices; k++) {
		add_to(&devices[k], devices[k].t[0], joint[JOINT]);
		must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
	}
}

static void clear(struct device *d)
{
	for (int i = 0; i < TENSORS; i++)
		for (unsigned k = 0; k < N; k += 1024)
			d->t[i][k] = 0;
}

static void show(struct device *d)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	double sum = 0;

	must(cu.cuCtxSetCurrent(d->context), "cuCtxSetCurrent");
	must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
	for (int i = 0; i < TENSORS; i++) {
		must(umadv_host(d->adv, "sum", UMADV_USES(UMADV_READ(d->t[i]))), "umadv_host");
		sum += (double)d->t[i][N - 1024];
	}
	must(umadv_stats_get(d->adv, &s), "umadv_stats_get");
	printf("%.6g %s, %llu errors\n", sum, s.hints_issued && s.hinted_iterations ? "hinted" : "no hints",
	       (unsigned long long)(s.errors + s.hints_refused));
}

static void *all(void *arg)
{
	struct device *d = arg;

	open_device(d, (int)(d - devices));
	clear(d);
	for (int it = 0; it < ITERATIONS; it++) {
		begin(d);
		for (int i = 0; i < TENSORS; i++)
			op(d, i);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[DEVICES_MAX];

	for (int i = 0; i < n_devices; i++)
		must(pthread_create(&thread[i], NULL, all, &devices[i]), "pthread_create");
	for (int i = 0; i < n_devices; i++)
		must(pthread_join(thread[i], NULL), "pthread_join");
}

static void turns(void)
{
	for (int i = 0; i < n_devices; i++) {
		open_device(&devices[i], i);
		clear(&devices[i]);
	}
	for (int it = 0; it < ITERATIONS; it++) {
		for (int k = 0; k < n_devices; k++)
			begin(&devices[k]);
		for (int i = 0; i < TENSORS; i++)
			for (int k = 0; k < n_devices; k++)
				op(&devices[k], i);
		if (joint[0])
			update_joint();
	}
}

/* The first device's context is given a tensor of the second one's. */
static void mistakes(void)
{
	struct device *a = &devices[0], *b = &devices[1];
	float *p = b->t[0];

	turns();
	p = b->t[0];
	printf("%d %d %d %d\n", umadv_op(a->adv, a->stream, "wrong", UMADV_USES(UMADV_READ(a->t[0]), UMADV_UPDATE(p))),
	       umadv_free(a->adv, p), umadv_dead(a->adv, p), umadv_host(a->adv, "wrong", UMADV_USES(UMADV_READ(p))));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "turns";

	start();
	if (*how == 'j' || *how == 'r')
		allocate_joint();
	if (*how == 'r' || (*how == 't' && how[1] == 'h'))
		threads();
	else if (*how == 't' || *how == 'j')
		turns();
	else
		mistakes();
	for (int i = 0; i < n_devices; i++)
		show(&devices[i]);
	if (joint[0]) {
		must(umadv_host(devices[0].adv, "sum", UMADV_USES(UMADV_READ(joint[JOINT]))), "umadv_host");
		printf("%.6g\n", (double)joint[JOINT][N - 1024]);
		for (int i = 0; i < n_devices - 1; i++)
			must(umadv_disown(devices[i].adv, joint[0], N * sizeof(float)), "umadv_disown");
	}
	for (int i = 0; i < n_devices; i++) /* with the last device current */
		umadv_close(devices[i].adv);
	return 0;
}
