/* SPDX-License-Identifier: Apache-2.0
 *
 * inject_app.c - a program of the driver API with unusual habits, for inject.sh; no header of CUDA
 *
 *     inject_app resolve           which of its functions come from the preloaded library, by way of finding them
 *     inject_app compute WAY [SUM] a computation that outgrows the device; WAY: how launches are made and found, or
 *                                  where its arrays are. With SUM, 9 is the exit status if the result is another one
 *     inject_app beyond            writes a little beyond an allocation, and asks for its size
 *
 * Built with -DLINKED it is linked with the driver, with -DOWN_DLSYM it has a dlsym of its own, with -DRANGES its steps
 * are NVTX ranges.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <umadvise_dryrun.h>
#include <unistd.h>

#ifdef RANGES
#include <nvtx3/nvToolsExt.h>
#endif

typedef int (*resolver)(const char *, void **, int, unsigned long long, int *);

static const char *way = "";
static resolver find;

static int is(const char *name)
{
	return strcmp(way, name) == 0;
}

#ifdef OWN_DLSYM
/* As tools do that look for dlsym by its version. */
void *dlsym(void *handle, const char *name)
{
	void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	void *(*next)(void *, const char *);

	if (!found)
		found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	memcpy(&next, &found, sizeof next);
	return next(handle, name);
}
#endif

#ifdef LINKED
int cuMemAlloc_v2(uint64_t *out, size_t bytes);
#endif

static void *need(const char *name, int version)
{
	void *p = NULL;

	find(name, &p, version, 0, NULL);
	if (!p) {
		printf("no %s\n", name);
		exit(1);
	}
	return p;
}
#define CALL(name, version, params) (*(int(*) params)need(name, version))

static void must(int err, const char *what)
{
	if (!err)
		return;
	printf("%s: %d\n", what, err);
	exit(3);
}

/* --- resolve ------------------------------------------------------------------------------------------------------ */

static void from(const char *how, void *fn)
{
	Dl_info in;
	int known = fn && dladdr(fn, &in) && in.dli_fname;

	printf("%s %s\n", how, !known ? "none" : strstr(in.dli_fname, "preload") ? "library" : "driver");
}

static void *ask(const char *name, int version, unsigned long long flags)
{
	void *p = NULL;

	find(name, &p, version, flags, NULL);
	return p;
}

static void resolve(void *driver)
{
	void *(*other)(void *, const char *), *found;
	resolver again;

	from("handle", dlsym(driver, "cuMemAlloc_v2"));
	from("default", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	from("next", dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
	from("unhooked", dlsym(driver, "cuMemAllocHost_v2"));
	from("asked", ask("cuMemAlloc", 12000, 0));
	from("asked, per thread", ask("cuLaunchKernel", 12000, 2));
	from("asked, unhooked", ask("cuMemAllocHost", 12000, 0));
	from("missing", ask("cuNobody", 12000, 0));
	found = ask("cuGetProcAddress", 12000, 0);
	from("resolver", found);
	memcpy(&again, &found, sizeof again);
	found = NULL;
	again("cuMemFree", &found, 12000, 0, NULL);
	from("by that", found);
	found = dlsym(dlopen("libc.so.6", RTLD_NOW), "dlsym");
	memcpy(&other, &found, sizeof other);
	from("other dlsym", other(driver, "cuMemFree_v2"));
	printf("forms differ %d\n", ask("cuLaunchKernel", 12000, 0) != ask("cuLaunchKernel", 12000, 2));
#ifdef LINKED
	from("linked", (void *)cuMemAlloc_v2);
#endif
}

/* --- compute ------------------------------------------------------------------------------------------------------ */

#define BLOCKS 12 /* arrays of 8 MiB */
#define BYTES ((size_t)8 << 20)

static int (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
			    void **, void **);

static void add_host(void **args, const unsigned grid[3], const unsigned block[3])
{
	uint64_t *to = *(uint64_t **)args[0];
	const uint64_t *from_array = *(uint64_t *const *)args[1];

	(void)grid;
	(void)block;
	for (size_t i = 0; i < BYTES / 8; i += 4096)
		to[i] = to[i] * 3 + from_array[i] + *(uint32_t *)args[2];
}

static void *load(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry add(.param .u64 to, .param .u64 from, .param .u32 n) {\n"
				  "\t.reg .b64 %rd<4>;\n\tld.param.u64 %rd1, [to];\n\tld.param.u64 %rd2, [from];\n"
				  "\tld.global.u64 %rd3, [%rd2];\n\tst.global.u64 [%rd1], %rd3;\n\tret;\n}\n";
	void *module = NULL, *function = NULL;

	must(CALL("cuModuleLoadData", 2000, (void **, const void *))(&module, ptx), "load");
	must(CALL("cuModuleGetFunction", 2000, (void **, void *, const char *))(&function, module, "add"), "function");
	umadv_dryrun_function(function, add_host);
	return function;
}

static int launch(void *function, uint64_t to, uint64_t of, uint32_t n, void *stream)
{
	struct {
		uint64_t to, of;
		uint32_t n;
	} all = {to, of, n};
	size_t bytes = 20;
	void *params[] = {&to, &of, &n}, *extra[] = {(void *)1, &all, (void *)2, &bytes, NULL};

	return is("extra") ? launch_kernel(function, 64, 1, 1, 256, 1, 1, 0, stream, NULL, extra)
			   : launch_kernel(function, 64, 1, 1, 256, 1, 1, 0, stream, params, NULL);
}

struct job {
	void *context;
	unsigned arrays, steps;
	uint64_t sum;
};

static void steps(struct job *j, void *function, const uint64_t *at, void *stream)
{
	for (unsigned s = 0; s < j->steps; s++) {
#ifdef RANGES
		char name[20];

		snprintf(name, sizeof name, "step %u", s);
		nvtxRangePushA(name);
#endif
		for (unsigned i = 0; i < j->arrays; i++)
			must(launch(function, at[i], at[(i + 1) % j->arrays], i, stream), "launch");
#ifdef RANGES
		nvtxRangePop();
#endif
	}
}

/* The pool of the arrays: one of the program, the device's, or none. */
static void *pool_of_way(void)
{
	struct {
		int type, handles, location, device;
		char rest[128];
	} properties = {.type = 1, .location = 1};
	void *pool = NULL;

	if (is("pool"))
		must(CALL("cuMemPoolCreate", 11020, (void **, const void *))(&pool, &properties), "pool");
	else if (is("default-pool"))
		must(CALL("cuDeviceGetDefaultMemPool", 11020, (void **, int))(&pool, 0), "pool");
	return pool;
}

static uint64_t array_of(void *pool, void *stream)
{
	uint64_t at = 0;

	if (pool)
		must(CALL("cuMemAllocFromPoolAsync", 11020, (uint64_t *, size_t, void *, void *))(&at, BYTES, pool,
												  stream),
		     "alloc");
	else
		must(CALL("cuMemAlloc", 3020, (uint64_t *, size_t))(&at, BYTES), "alloc");
	return at;
}

static void free_array(uint64_t at, void *pool, void *stream)
{
	if (pool || is("free-async"))
		must(CALL("cuMemFreeAsync", 11020, (uint64_t, void *))(at, stream), "free");
	else
		must(CALL("cuMemFree", 3020, (uint64_t))(at), "free");
}

static void *compute(void *arg)
{
	struct job *j = arg;
	uint64_t at[BLOCKS], *host = calloc(1, BYTES);
	void *stream = NULL, *pool, *function;

	must(CALL("cuCtxSetCurrent", 4000, (void *))(j->context), "context");
	function = load();
	must(CALL("cuStreamCreate", 2000, (void **, unsigned))(&stream, 1), "stream");
	pool = pool_of_way();
	for (unsigned i = 0; i < j->arrays; i++) {
		at[i] = array_of(pool, stream);
		must(CALL("cuMemsetD32Async", 3020, (uint64_t, unsigned, size_t, void *))(at[i], i + 1, BYTES / 4,
											  stream),
		     "set");
	}
	steps(j, function, at, stream);
	must(CALL("cuStreamSynchronize", 2000, (void *))(stream), "wait");
	for (unsigned i = 0; i < j->arrays; i++) {
		must(CALL("cuMemcpyDtoH", 3020, (void *, uint64_t, size_t))(host, at[i], BYTES), "copy");
		for (size_t k = 0; k < BYTES / 8; k += 4096)
			j->sum = j->sum * 31 + host[k];
		free_array(at[i], pool, stream);
	}
	if (is("pool"))
		must(CALL("cuMemPoolDestroy", 11020, (void *))(pool), "destroy");
	must(CALL("cuStreamDestroy", 4000, (void *))(stream), "destroy");
	free(host);
	return NULL;
}

/* Many graphs are captured and launched. */
static void *capture(void *arg)
{
	struct job *j = arg;
	void *stream = NULL, *graph = NULL, *exec = NULL, *function;
	uint64_t at[2], word = 0;
	int mode = 1; /* of this thread only */

	must(CALL("cuCtxSetCurrent", 4000, (void *))(j->context), "context");
	function = load();
	must(CALL("cuStreamCreate", 2000, (void **, unsigned))(&stream, 1), "stream");
	for (int i = 0; i < 2; i++) {
		must(CALL("cuMemAlloc", 3020, (uint64_t *, size_t))(&at[i], BYTES), "alloc");
		must(CALL("cuMemsetD32Async", 3020, (uint64_t, unsigned, size_t, void *))(at[i], 1, BYTES / 4, stream),
		     "set");
	}
	for (unsigned s = 0; s < j->steps; s++) {
		must(CALL("cuStreamBeginCapture", 10010, (void *, int))(stream, mode), "begin");
		must(launch(function, at[0], at[1], s, stream), "launch");
		must(CALL("cuStreamEndCapture", 10000, (void *, void **))(stream, &graph), "end");
		must(CALL("cuGraphInstantiateWithFlags", 11040, (void **, void *, unsigned long long))(&exec, graph, 0),
		     "instantiate");
		must(CALL("cuGraphLaunch", 10000, (void *, void *))(exec, stream), "launch of a graph");
		must(CALL("cuStreamSynchronize", 2000, (void *))(stream), "wait");
		must(CALL("cuGraphExecDestroy", 10000, (void *))(exec), "destroy");
		must(CALL("cuGraphDestroy", 10000, (void *))(graph), "destroy");
	}
	must(CALL("cuMemcpyDtoH", 3020, (void *, uint64_t, size_t))(&word, at[0], 8), "copy");
	j->sum = word;
	return NULL;
}

struct kernel_node { /* CUDA_KERNEL_NODE_PARAMS_v2 */
	void *function;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	void *kernel, *context;
};

/* A graph of two kernels that use other arrays at each launch, as XLA's do. Ends as it began. */
static void *change(void *arg)
{
	struct job *j = arg;
	void *stream = NULL, *graph = NULL, *exec = NULL, *node[2], *function;
	uint64_t at[6], word = 0;
	size_t n = 2;

	must(CALL("cuCtxSetCurrent", 4000, (void *))(j->context), "context");
	function = load();
	must(CALL("cuStreamCreate", 2000, (void **, unsigned))(&stream, 1), "stream");
	for (int i = 0; i < 6; i++) {
		must(CALL("cuMemAlloc", 3020, (uint64_t *, size_t))(&at[i], BYTES), "alloc");
		must(CALL("cuMemsetD32Async", 3020, (uint64_t, unsigned, size_t, void *))(at[i], 1, BYTES / 4, stream),
		     "set");
	}
	must(CALL("cuStreamBeginCapture", 10010, (void *, int))(stream, 1), "begin");
	must(launch(function, at[0], at[1], 0, stream), "launch");
	must(launch(function, at[1], at[2], 0, stream), "launch");
	must(CALL("cuStreamEndCapture", 10000, (void *, void **))(stream, &graph), "end");
	must(CALL("cuGraphGetNodes", 10000, (void *, void **, size_t *))(graph, node, &n), "nodes");
	must(CALL("cuGraphInstantiateWithFlags", 11040, (void **, void *, unsigned long long))(&exec, graph, 0),
	     "instantiate");
	for (unsigned s = 0; s < j->steps; s++) {
		for (unsigned k = 0; k < 2; k++) {
			void *params[] = {&at[(s + k) % 6], &at[(s + k + 1) % 6], &s};
			struct kernel_node p = {function, {64, 1, 1}, {256, 1, 1}, 0, params, NULL, NULL, NULL};

			must(CALL("cuGraphExecKernelNodeSetParams", 12000, (void *, void *, const void *))(exec,
													   node[k], &p),
			     "change");
		}
		must(CALL("cuGraphLaunch", 10000, (void *, void *))(exec, stream), "launch of a graph");
	}
	must(CALL("cuStreamSynchronize", 2000, (void *))(stream), "wait");
	for (int i = 0; i < 6; i++) {
		must(CALL("cuMemcpyDtoH", 3020, (void *, uint64_t, size_t))(&word, at[i], 8), "copy");
		j->sum = j->sum * 7 + word;
		must(CALL("cuMemFree", 3020, (uint64_t))(at[i]), "free");
	}
	must(CALL("cuGraphExecDestroy", 10000, (void *))(exec), "end of an instance");
	must(CALL("cuGraphDestroy", 10000, (void *))(graph), "end of a graph");
	must(CALL("cuStreamDestroy", 4000, (void *))(stream), "end of a stream");
	return NULL;
}

static void *allocate(void *arg)
{
	struct job *j = arg;
	uint64_t p;

	must(CALL("cuCtxSetCurrent", 4000, (void *))(j->context), "context");
	for (unsigned i = 0; i < j->steps; i++) {
		must(CALL("cuMemAlloc", 3020, (uint64_t *, size_t))(&p, BYTES), "alloc");
		must(CALL("cuMemFree", 3020, (uint64_t))(p), "free");
	}
	return NULL;
}

static void in_threads(void *context, unsigned n, void *(*run)(void *), void *(*other)(void *))
{
	struct job job[64];
	pthread_t thread[64];

	for (unsigned i = 0; i < n; i++) {
		job[i] = (struct job){context, 2, 8, 0};
		if (pthread_create(&thread[i], NULL, i % 2 && other ? other : run, &job[i]))
			exit(4);
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(thread[i], NULL);
		printf("%llu\n", (unsigned long long)job[i].sum);
	}
}

/* A child that starts another program, or that ends. */
static void child(int starts)
{
	uint64_t p;
	pid_t pid = starts ? vfork() : fork();
	int status = 0;

	if (pid == 0 && starts) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	if (pid == 0) {
		/* CUDA does not work here; nothing may hang */
		CALL("cuMemAlloc", 3020, (uint64_t *, size_t))(&p, 4096);
		_exit(5);
	}
	waitpid(pid, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
}

static void beyond(void)
{
	const size_t bytes = ((size_t)3 << 20) + 4096;
	uint64_t at = 0, base = 0, size = 0;

	must(CALL("cuMemAlloc", 3020, (uint64_t *, size_t))(&at, bytes), "alloc");
	must(CALL("cuMemsetD32Async", 3020, (uint64_t, unsigned, size_t, void *))(at + bytes, 1, 4096, NULL), "set");
	must(CALL("cuMemGetAddressRange", 3020, (uint64_t *, size_t *, uint64_t))(&base, &size, at + 8192), "range");
	printf("%d %d\n", base == at, size == bytes);
	must(CALL("cuPointerGetAttribute", 4000, (void *, int, uint64_t))(&size, 12, at), "size");
	printf("%d\n", size == bytes);
}

static int work(void *context, const char *want)
{
	struct job j = {context, BLOCKS, is("brief") ? 5 : is("short") ? 6 : is("long") ? 220 : 20, 0};

	if (is("threads")) {
		in_threads(context, 64, compute, NULL);
	} else if (is("graph")) {
		in_threads(context, 1, capture, NULL);
	} else if (is("change")) {
		in_threads(context, 1, change, NULL);
	} else if (is("capture")) {
		in_threads(context, 8, capture, allocate);
	} else {
		if (is("vfork") || is("fork"))
			compute(&j);
		if (is("vfork") || is("fork"))
			child(is("vfork"));
		compute(&j);
		printf("%llu\n", (unsigned long long)j.sum);
		return want && j.sum != strtoull(want, NULL, 10) ? 9 : 0;
	}
	return 0;
}

int main(int argc, char **argv)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *fn, *context = NULL;

	fn = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;
	if (!fn || argc < 2)
		return 2;
	memcpy(&find, &fn, sizeof find);
	way = argc > 2 ? argv[2] : "";
	if (strcmp(argv[1], "resolve") == 0) {
		resolve(driver);
		return 0;
	}
	need("cuMemRelease", 12000); /* the stand-in has no such function, and answers with one that refuses */
	must(CALL("cuInit", 2000, (unsigned))(0), "init");
	must(CALL("cuDevicePrimaryCtxRetain", 7000, (void **, int))(&context, 0), "retain");
	must(CALL("cuCtxSetCurrent", 4000, (void *))(context), "context");
	fn = is("next") ? dlsym(RTLD_NEXT, "cuLaunchKernel") : need("cuLaunchKernel", 4000);
	fn = fn ? fn : need("cuLaunchKernel", 4000);
	memcpy(&launch_kernel, &fn, sizeof launch_kernel);
	if (is("dlclose"))
		dlclose(driver);
	if (strcmp(argv[1], "beyond") == 0) {
		beyond();
		return 0;
	}
	return work(context, argc > 3 ? argv[3] : NULL);
}
