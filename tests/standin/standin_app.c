/* SPDX-License-Identifier: Apache-2.0
 *
 * standin_app.c - a program of the driver API, for standin_runtime.sh: no header of CUDA, everything by name
 *
 *     standin_app ask NAME@VERSION...     how each name is answered
 *     standin_app call NAME N             calls an unknown function N times
 *     standin_app run                     loads PTX and runs a kernel
 *     standin_app wait                    makes no call until a host function has run
 *     standin_app image FILE KERNEL VAR   what is in an image
 */
#include <dlfcn.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <umadvise_dryrun.h>

static int (*find)(const char *, void **, int, unsigned long long, int *);

static void *get(const char *name, int version)
{
	void *p = NULL;

	find(name, &p, version, 0, NULL);
	return p;
}

/* A function by name; nothing to call is the end. */
#define CALL(name, version, params) (*(int(*) params)need(name, version))
static void *need(const char *name, int version)
{
	void *p = get(name, version);

	if (!p) {
		printf("no %s\n", name);
		exit(1);
	}
	return p;
}

static int begin(void)
{
	void *context = NULL;
	int err = CALL("cuInit", 2000, (unsigned))(0);

	if (!err)
		err = CALL("cuDevicePrimaryCtxRetain", 7000, (void **, int))(&context, 0);
	return err ? err : CALL("cuCtxSetCurrent", 4000, (void *))(context);
}

static void post(void *sem)
{
	sem_post(sem);
}

/* The program waits for a host function that follows a fill, then for a second one. It makes no call meanwhile. */
static int wait_for_host(void)
{
	void *stream = NULL;
	uint64_t p;
	sem_t sem;

	sem_init(&sem, 0, 0);
	printf("begin %d\n", begin());
	if (CALL("cuStreamCreate", 2000, (void **, unsigned))(&stream, 1) ||
	    CALL("cuMemAlloc", 3020, (uint64_t *, size_t))(&p, 1 << 20))
		return 1;
	for (int i = 0; i < 2; i++) {
		struct timespec until;

		CALL("cuMemsetD8Async", 3020, (uint64_t, unsigned char, size_t, void *))(p, 1, 1 << 20, stream);
		if (CALL("cuLaunchHostFunc", 10000, (void *, void (*)(void *), void *))(stream, post, &sem))
			return 1;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 20;
		puts(sem_timedwait(&sem, &until) ? "waited in vain" : "called");
	}
	return 0;
}

static void ask(const char *what)
{
	char name[64];
	int version, status = -1, err;
	void *p = (void *)&p;

	if (sscanf(what, "%63[^@]@%d", name, &version) != 2)
		return;
	err = find(name, &p, version, 0, &status);
	printf("%s %d %s %d\n", what, err, p ? "there" : "NULL", status);
}

static void host(void **args, const unsigned grid[3], const unsigned block[3])
{
	int *at = *(int **)args[0];

	at[0] = *(int *)args[1] + (int)(grid[0] * block[0]);
}

static int run(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry set(.param .u64 at, .param .u32 n) { ret; }\n";
	static const char damaged[64] = "\177ELF no more"; /* as long as the header that says how long it is */
	void *module = NULL, *function = NULL, *at = NULL, *extra[5];
	int n = 5, err;
	size_t bytes = 12, offset = 0, size = 0;
	void *params[2] = {&at, &n};
	struct {
		void *at;
		int n;
	} buffer;

	printf("load %d\n", CALL("cuModuleLoadData", 2000, (void **, const void *))(&module, ptx));
	printf("no such kernel %d\n",
	       CALL("cuModuleGetFunction", 2000, (void **, void *, const char *))(&function, module, "nobody"));
	printf("kernel %d\n",
	       CALL("cuModuleGetFunction", 2000, (void **, void *, const char *))(&function, module, "set"));
	CALL("cuFuncGetParamInfo", 12040, (void *, size_t, size_t *, size_t *))(function, 1, &offset, &size);
	printf("parameter %zu+%zu\n", offset, size);
	err = CALL("cuMemAllocManaged", 6000, (void **, size_t, unsigned))(&at, 4 << 20, 1);
	printf("alloc %d\n", err);
	if (err)
		return 1;
	printf("stands for it %d\n", umadv_dryrun_function(function, host));
#define LAUNCH                                                                                                         \
	CALL("cuLaunchKernel", 4000,                                                                                   \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
	err = LAUNCH(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL); /* the next one has to wait */
	err = err ? err : LAUNCH(function, 10, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
	n = 77; /* the launch has its own copy */
	printf("launch %d sync %d\n", err, CALL("cuCtxSynchronize", 2000, (void))());
	printf("computed %d\n", *(int *)at);
	buffer.at = at;
	buffer.n = 6;
	extra[0] = (void *)1;
	extra[1] = &buffer;
	extra[2] = (void *)2;
	extra[3] = &bytes;
	extra[4] = NULL;
	err = LAUNCH(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
	CALL("cuCtxSynchronize", 2000, (void))();
	printf("in a buffer %d computed %d\n", err, *(int *)at);
	printf("no parameters %d\n", LAUNCH(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	bytes = 11;
	printf("too few %d\n", LAUNCH(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	printf("no blocks %d\n", LAUNCH(function, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	printf("unload %d\n", CALL("cuModuleUnload", 2000, (void *))(module));
	printf("unload again %d\n", CALL("cuModuleUnload", 2000, (void *))(module));
	printf("damaged %d\n", CALL("cuModuleLoadData", 2000, (void **, const void *))(&module, damaged));
	return 0;
}

static int image(const char *file, const char *kernel, const char *var)
{
	void *library = NULL, *k = NULL, *at = NULL;
	size_t offset, size, bytes = 0;
	int err = CALL("cuLibraryLoadFromFile", 12000,
		       (void **, const char *, int *, void **, unsigned, int *, void **, unsigned))(
		&library, file, NULL, NULL, 0, NULL, NULL, 0);

	printf("load %d", err);
	if (err)
		return 1;
	printf(" kernel %d:", CALL("cuLibraryGetKernel", 12000, (void **, void *, const char *))(&k, library, kernel));
	for (size_t i = 0;
	     k && !CALL("cuKernelGetParamInfo", 12040, (void *, size_t, size_t *, size_t *))(k, i, &offset, &size); i++)
		printf(" %zu+%zu", offset, size);
	err = CALL("cuLibraryGetGlobal", 12000, (void **, size_t *, void *, const char *))(&at, &bytes, library, var);
	printf(" variable %d: %zu bytes, %g\n", err, bytes, err ? 0 : (double)*(float *)at);
	return 0;
}

int main(int argc, char **argv)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *p = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;
	int err;

	if (!p || argc < 2) {
		printf("no driver\n");
		return 1;
	}
	memcpy(&find, &p, sizeof p);
	if (!strcmp(argv[1], "ask")) {
		for (int i = 2; i < argc; i++)
			ask(argv[i]);
		return 0;
	}
	err = begin();
	if (err)
		printf("begin %d\n", err);
	if (err)
		return 1;
	if (!strcmp(argv[1], "wait"))
		return wait_for_host();
	if (!strcmp(argv[1], "run"))
		return run();
	if (!strcmp(argv[1], "image") && argc == 5)
		return image(argv[2], argv[3], argv[4]);
	for (int i = 0; argc == 4 && i < atoi(argv[3]); i++)
		printf("%d\n", CALL(argv[2], 12040, (void))());
	return 0;
}
