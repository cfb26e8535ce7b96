/* SPDX-License-Identifier: Apache-2.0
 *
 * dryrun_app.c - a program for tests of `umadvise dryrun`: CUDA by the driver API, looked up when it runs
 *
 *     dryrun_app WHAT...      each in its turn: init, two, compute, launch, read, advise, sync, free, pinned, copy;
 *                             then exit=N, _exit=N, raise=N, wait, fork, or the end
 *
 * Managed memory of 4 MiB is initialised by the CPU (init), doubled by a kernel (launch), and read back (read).
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <umadvise_dryrun.h>
#include <unistd.h>

#ifndef N
#define N (1u << 20) /* floats */
#endif

#ifndef KERNEL
#define KERNEL "twice"
#endif

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry " KERNEL "(.param .u64 x, .param .u32 n)\n{\n\tret;\n}\n";

static struct {
	int (*cuInit)(unsigned flags);
	int (*cuDevicePrimaryCtxRetain)(void **context, int device);
	int (*cuCtxSetCurrent)(void *context);
	int (*cuCtxSynchronize)(void);
	int (*cuModuleLoadData)(void **module, const void *image);
	int (*cuModuleGetFunction)(void **function, void *module, const char *name);
	int (*cuLaunchKernel)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			      unsigned shared, void *stream, void **params, void **extra);
	int (*cuMemAllocManaged)(uint64_t *at, size_t bytes, unsigned flags);
	int (*cuMemFree)(uint64_t at);
	int (*cuMemAlloc)(uint64_t *at, size_t bytes);
	int (*cuMemAllocHost)(void **at, size_t bytes);
	int (*cuMemcpyHtoD)(uint64_t to, const void *from, size_t bytes);
	int (*cuMemPrefetchAsync)(uint64_t at, size_t bytes, int device, void *stream);
} cu;

static float *x;
static void *function;

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %d\n", what, err);
		exit(9);
	}
}

static void find(void *driver, const char *name, void *out)
{
	void *p = dlsym(driver, name);

	if (!p) {
		fprintf(stderr, "no %s\n", name);
		exit(9);
	}
	memcpy(out, &p, sizeof p);
}

static void start(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *module;

	if (!driver) {
		fprintf(stderr, "%s\n", dlerror());
		exit(9);
	}
	find(driver, "cuInit", &cu.cuInit);
	find(driver, "cuDevicePrimaryCtxRetain", &cu.cuDevicePrimaryCtxRetain);
	find(driver, "cuCtxSetCurrent", &cu.cuCtxSetCurrent);
	find(driver, "cuCtxSynchronize", &cu.cuCtxSynchronize);
	find(driver, "cuModuleLoadData", &cu.cuModuleLoadData);
	find(driver, "cuModuleGetFunction", &cu.cuModuleGetFunction);
	find(driver, "cuLaunchKernel", &cu.cuLaunchKernel);
	find(driver, "cuMemAllocManaged", &cu.cuMemAllocManaged);
	find(driver, "cuMemFree_v2", &cu.cuMemFree);
	find(driver, "cuMemAlloc_v2", &cu.cuMemAlloc);
	find(driver, "cuMemAllocHost_v2", &cu.cuMemAllocHost);
	find(driver, "cuMemcpyHtoD_v2", &cu.cuMemcpyHtoD);
	find(driver, "cuMemPrefetchAsync", &cu.cuMemPrefetchAsync);
	must(cu.cuInit(0), "cuInit");
	must(cu.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cu.cuModuleGetFunction(&function, module, KERNEL), "cuModuleGetFunction");
}

static void twice(void **args, const unsigned grid[3], const unsigned block[3])
{
	float *at = *(float **)args[0];

	(void)grid;
	(void)block;
	for (unsigned i = 0, n = *(unsigned *)args[1]; i < n; i++)
		at[i] *= 2;
}

static void allocate(void)
{
	uint64_t at;

	must(cu.cuMemAllocManaged(&at, N * sizeof *x, 1), "cuMemAllocManaged");
	x = (float *)(uintptr_t)at;
}

static void launch(void)
{
	unsigned n = N;
	void *args[] = {&x, &n};

	must(cu.cuLaunchKernel(function, N / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL), "cuLaunchKernel");
}

static void read_back(void)
{
	double sum = 0;

	for (unsigned i = 0; i < N; i++)
		sum += (double)x[i];
	printf("sum %.0f\n", sum / N);
	fflush(stdout);
}

static void copy(void)
{
	static char from[1 << 20];
	uint64_t at;

	must(cu.cuMemAlloc(&at, sizeof from), "cuMemAlloc");
	must(cu.cuMemcpyHtoD(at, from, sizeof from), "cuMemcpyHtoD");
}

static void pinned(void)
{
	void *p;

	must(cu.cuMemAllocHost(&p, 1 << 20), "cuMemAllocHost");
}

/* A child that ends as any process does. */
static void child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		exit(0);
	waitpid(pid, NULL, 0);
}

static void end(const char *what)
{
	const char *n = strchr(what, '=');
	int code = n ? atoi(n + 1) : 0;

	if (!strncmp(what, "exit=", 5))
		exit(code);
	if (!strncmp(what, "_exit=", 6))
		_exit(code);
	if (!strncmp(what, "raise=", 6)) {
		raise(code);
		exit(7);
	}
	if (!strcmp(what, "wait")) {
		puts("waiting");
		fflush(stdout);
		for (;;)
			pause();
	}
	fprintf(stderr, "no such thing: %s\n", what);
	exit(8);
}

static void do_one(const char *what)
{
	if (!strcmp(what, "start"))
		start();
	else if (!strcmp(what, "load"))
		dlopen("libcuda.so.1", RTLD_NOW);
	else if (!strcmp(what, "compute"))
		must(umadv_dryrun_function(function, twice) != 1, "umadv_dryrun_function");
	else if (!strcmp(what, "alloc"))
		allocate();
	else if (!strcmp(what, "init"))
		for (unsigned i = 0; i < N; i++)
			x[i] = 1;
	else if (!strcmp(what, "launch"))
		launch();
	else if (!strcmp(what, "sync"))
		must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
	else if (!strcmp(what, "read"))
		read_back();
	else if (!strcmp(what, "prefetch"))
		must(cu.cuMemPrefetchAsync((uint64_t)(uintptr_t)x, N * sizeof *x, 0, NULL), "cuMemPrefetchAsync");
	else if (!strcmp(what, "refused"))
		cu.cuMemPrefetchAsync((uint64_t)(uintptr_t)x, N * sizeof *x, 77, NULL);
	else if (!strcmp(what, "free"))
		must(cu.cuMemFree((uint64_t)(uintptr_t)x), "cuMemFree");
	else if (!strcmp(what, "copy"))
		copy();
	else if (!strcmp(what, "pinned"))
		pinned();
	else if (!strcmp(what, "fork"))
		child();
	else
		end(what);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		do_one(argv[i]);
	return 0;
}
