/* SPDX-License-Identifier: Apache-2.0
 *
 * counters_app.c - a program that uses libumadvise on a CUDA device, which is the stand-in's: six arrays of its own,
 * each adds its neighbour, in every iteration; the CPU writes all of them first, and two of them in each iteration
 *
 *     counters_app ITERATIONS [fork|two|keep]
 *
 * fork: a child that does nothing else opens a context, iterates and closes; two: a second context is opened while the
 * first is; keep: the context is left open.
 */
#include "gpu/standin_table.h"
#include "umadvise.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAYS 6
#define BYTES (4u << 20)

typedef int find_fn(const char *name, void **fn, int version, unsigned long long flags, int *status);

static find_fn *find;
static struct umadv *adv;
static char *array[ARRAYS];

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "counters_app: %s: %d\n", what, err);
	exit(1);
}

static void *call(const char *name, int version)
{
	void *fn = NULL;

	must(find(name, &fn, version, 0, NULL) || !fn, name);
	return fn;
}

static void driver_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *fn = lib ? dlsym(lib, "cuGetProcAddress_v2") : NULL;
	void *context = NULL;

	must(!fn, "no driver");
	memcpy(&find, &fn, sizeof fn);
	must(((int (*)(unsigned))call("cuInit", 2000))(0), "cuInit");
	must(((int (*)(void **, int))call("cuDevicePrimaryCtxRetain", 7000))(&context, 0), "cuDevicePrimaryCtxRetain");
	must(((int (*)(void *))call("cuCtxSetCurrent", 4000))(context), "cuCtxSetCurrent");
}

static void sync_device(void)
{
	must(((int (*)(void))call("cuCtxSynchronize", 2000))(), "cuCtxSynchronize");
}

static void add(const struct um_standin_table *device, unsigned i)
{
	void *from = array[(i + 1) % ARRAYS];

	must(umadv_op(adv, NULL, "add", UMADV_USES(UMADV_READ(from), UMADV_READ(array[i]), UMADV_WRITE(array[i]))),
	     "umadv_op");
	must(device->launch_host(NULL, "add", &(struct um_announcement){.ns = 1000}, NULL, NULL, NULL), "launch");
}

static void run(unsigned iterations)
{
	const struct um_standin_table *device = call(UM_STANDIN_NAME, 12000);
	char name[16];

	for (unsigned i = 0; i < ARRAYS; i++) {
		void *p = NULL;

		must(((int (*)(void **, size_t, unsigned))call("cuMemAllocManaged", 6000))(&p, BYTES, 1), "allocate");
		array[i] = p;
		snprintf(name, sizeof name, "array %u", i + 1);
		must(umadv_adopt(adv, array[i], BYTES, name, UMADV_PARAM), "umadv_adopt");
		memset(array[i], 1, BYTES);
	}
	for (unsigned n = 0; n < iterations; n++) {
		must(umadv_iter(adv, NULL), "umadv_iter");
		for (unsigned i = 0; i < ARRAYS; i++)
			add(device, i);
		sync_device();
		array[0][n] = array[1][BYTES / 2 + n] = 2;
	}
	sync_device();
}

static void in_child(void)
{
	pid_t child = fork();
	int status = 1;

	if (!child) {
		struct umadv *own = NULL;

		umadv_iter(adv, NULL);
		umadv_close(adv);
		if (!umadv_open(&own, NULL)) {
			umadv_iter(own, NULL);
			umadv_close(own);
		}
		_exit(0);
	}
	waitpid(child, &status, 0);
	must(status, "the child");
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	struct umadv *other = NULL;
	struct umadv_stats s = {.struct_size = sizeof s};

	driver_open();
	must(umadv_open(&adv, NULL), "umadv_open");
	if (strcmp(how, "two") == 0)
		must(umadv_open(&other, NULL), "umadv_open");
	run(argc > 1 ? (unsigned)atoi(argv[1]) : 4);
	if (strcmp(how, "fork") == 0)
		in_child();
	umadv_stats_get(adv, &s);
	printf("errors %llu\n", (unsigned long long)s.errors);
	umadv_close(other);
	if (strcmp(how, "keep") != 0)
		umadv_close(adv);
	return 0;
}
