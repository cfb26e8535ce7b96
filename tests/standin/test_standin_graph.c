/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures and graphs of the stand-in driver: what is recorded, what breaks a capture, what a launched graph does.
 */
#include "standin_calls.h"

#include <pthread.h>

#define LEGACY ((void *)1)
#define GLOBAL 0
#define RELAXED 2

enum { UNSUPPORTED = 900, INVALIDATED, MERGE, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED_EVENT, WRONG_THREAD };

static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
			  ".visible .entry add(.param .u64 add_param_0, .param .u32 add_param_1)\n{\n\tret;\n}\n";

static void *stream, *other, *add;
static int *pinned;
static uint64_t device, managed;

/* Stands for the kernel: every word of 16 grows. */
static void add_host(void **args, const unsigned grid[3], const unsigned block[3])
{
	int *at = *(int **)args[0], by = *(int *)args[1];

	for (unsigned i = 0; i < grid[0] * block[0]; i++)
		at[i] += by;
}

static int launch(void *s, uint64_t at, int by)
{
	void *args[] = {&at, &by};

	return CALL(cuLaunchKernel, 4000, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		    void *, void **, void **)(add, 2, 1, 1, 8, 1, 1, 0, s, args, NULL);
}

static int begin(void *s, int mode)
{
	return CALL(cuStreamBeginCapture, 10010, void *, int)(s, mode);
}

static int finish(void *s, void **graph)
{
	return CALL(cuStreamEndCapture, 10000, void *, void **)(s, graph);
}

static int status(void *s)
{
	int v = -1;

	CALL(cuStreamIsCapturing, 10000, void *, int *)(s, &v);
	return v;
}

static int synchronize(void *s)
{
	return CALL(cuStreamSynchronize, 2000, void *)(s);
}

static int record(void *event, void *s)
{
	return CALL(cuEventRecord, 2000, void *, void *)(event, s);
}

static int wait_for(void *s, void *event)
{
	return CALL(cuStreamWaitEvent, 3020, void *, void *, unsigned)(s, event, 0);
}

static int set_async(uint64_t at, unsigned v, size_t n, void *s)
{
	return CALL(cuMemsetD32Async, 3020, uint64_t, unsigned, size_t, void *)(at, v, n, s);
}

static int read_async(uint64_t at, size_t n, void *s)
{
	return CALL(cuMemcpyDtoHAsync, 3020, void *, uint64_t, size_t, void *)(pinned, at, n, s);
}

static void *event_new(void)
{
	void *e = NULL;

	CALL(cuEventCreate, 2000, void **, unsigned)(&e, 0);
	return e;
}

static void *instantiate(void *graph)
{
	void *exec = NULL;

	is_int(CALL(cuGraphInstantiateWithFlags, 11040, void **, void *, unsigned long long)(&exec, graph, 0), 0,
	       "a graph is made ready");
	return exec;
}

static int run(void *exec, void *s)
{
	return CALL(cuGraphLaunch, 10000, void *, void *)(exec, s);
}

static void drop(void *graph, void *exec)
{
	if (exec)
		CALL(cuGraphExecDestroy, 10000, void *)(exec);
	if (graph)
		CALL(cuGraphDestroy, 10000, void *)(graph);
}

static size_t nodes(void *graph)
{
	size_t n = 0;

	CALL(cuGraphGetNodes, 10000, void *, void **, size_t *)(graph, NULL, &n);
	return n;
}

static void count(void *arg)
{
	++*(int *)arg;
}

static void captured(void)
{
	void *graph = NULL, *exec, *all[8], *root[8], *from[8], *to[8];
	size_t n = 8, n_root = 8, n_edges = 8;
	unsigned long long id = 0;
	int calls = 0, type[4] = {-1, -1, -1, -1};

	set_async(device, 5, 64, stream);
	set_async(managed, 5, 64, stream);
	synchronize(stream);
	is_int(begin(stream, GLOBAL), 0, "a stream captures");
	is_int(begin(stream, GLOBAL), 401, "a second capture of a stream is refused");
	is_int(status(stream), 1, "the status of the stream is capturing");
	is_int(status(other), 0, "others do not");
	is_int(set_async(device, 1, 16, stream), 0, "a fill is captured");
	is_int(launch(stream, device, 10), 0, "a kernel is captured");
	is_int(CALL(cuLaunchHostFunc, 10000, void *, void (*)(void *), void *)(stream, count, &calls), 0,
	       "a host function is captured");
	is_int(read_async(device, 256, stream), 0, "a copy is captured");
	CALL(cuStreamGetCaptureInfo, 11030, void *, int *, unsigned long long *, void **, void *const **, size_t *)
	(stream, &type[0], &id, &graph, NULL, &n);
	ok(type[0] == 1 && id && graph && n == 1, "a capture has its properties");
	is_int(finish(other, &graph), 401, "it ends where it began");
	is_int(finish(stream, &graph), 0, "the capture ends with a graph");
	is_int(status(stream), 0, "the stream is not capturing after the end");
	is_int(calls, 0, "nothing was executed during the capture");
	n = 8;
	CALL(cuGraphGetNodes, 10000, void *, void **, size_t *)(graph, all, &n);
	CALL(cuGraphGetRootNodes, 10000, void *, void **, size_t *)(graph, root, &n_root);
	CALL(cuGraphGetEdges, 10000, void *, void **, void **, size_t *)(graph, from, to, &n_edges);
	ok(n == 4 && n_root == 1 && n_edges == 3 && root[0] == all[0] && from[0] == all[0] && to[2] == all[3],
	   "the graph has four nodes in a row");
	for (int i = 0; i < 4; i++)
		CALL(cuGraphNodeGetType, 10000, void *, int *)(all[i], &type[i]);
	ok(type[0] == 2 && type[1] == 0 && type[2] == 3 && type[3] == 1,
	   "the nodes have the types of the captured work");
	exec = instantiate(graph);
	is_int(run(exec, stream), 0, "it is launched");
	run(exec, stream);
	synchronize(stream);
	ok(pinned[0] == 11 && pinned[15] == 11 && pinned[16] == 5, "the launched graph does what was captured");
	is_int(calls, 2, "each launch calls the host function");

	CALL(cuGraphDestroy, 10000, void *)(graph);
	is_int(run(exec, other), 0, "an executable graph runs after its graph was destroyed");
	synchronize(other);
	is_int(calls, 3, "the graph runs on another stream");
	drop(NULL, exec);
}

static void forked(void)
{
	void *fork = event_new(), *join = event_new(), *graph = NULL, *exec, *begun = event_new(), *ended = event_new();
	float one = 0, both = 0;

	record(begun, stream);
	set_async(device, 1, 1 << 20, stream);
	record(ended, stream);
	synchronize(stream);
	CALL(cuEventElapsedTime, 2000, float *, void *, void *)(&one, begun, ended);

	begin(stream, GLOBAL);
	record(fork, stream);
	is_int(wait_for(other, fork), 0, "a stream that waits for a capturing one");
	is_int(status(other), 1, "the stream captures with it");
	set_async(device, 1, 1 << 20, stream);
	for (int i = 0; i < 3; i++)
		set_async(device + (4 << 20), 2, 1 << 20, other);
	set_async(managed, 2, 16, other);
	record(join, other);
	is_int(CALL(cuEventQuery, 2000, void *)(join), CAPTURED_EVENT, "such an event is no time");
	is_int(wait_for(stream, join), 0, "the capture joins the first stream again");
	read_async(managed, 64, stream);
	is_int(finish(stream, &graph), 0, "all joined, the capture ends");
	is_u64(nodes(graph), 6, "events are no nodes");
	is_int(wait_for(stream, join), CAPTURED_EVENT, "an event of an ended capture cannot be waited for");
	exec = instantiate(graph);
	record(begun, stream);
	run(exec, stream);
	record(ended, stream);
	synchronize(stream);
	is_int(pinned[3], 2, "joined work runs before");
	record(begun, stream);
	run(exec, stream);
	record(ended, stream);
	synchronize(stream);
	CALL(cuEventElapsedTime, 2000, float *, void *, void *)(&both, begun, ended);
	ok(both < 3.7f * one, "both branches run at the same time as the rest");
	is_int(record(join, stream), 0, "recorded anew, an event is one again");
	synchronize(stream);
	is_int(CALL(cuEventQuery, 2000, void *)(join), 0, "the event that was recorded anew is complete");
	drop(graph, exec);
}

/* Begins a capture, does one thing that must not be done, and looks at what is left of it. */
static void breaks(int got, int want, const char *what)
{
	void *graph = &graph;

	is_int(got, want, "%s", what);
	is_int(status(stream), 2, "the refused call breaks the capture");
	is_int(launch(stream, device, 1), INVALIDATED, "a broken capture refuses further work");
	is_int(finish(stream, &graph), INVALIDATED, "a broken capture can only be ended");
	ok(!graph && status(stream) == 0, "the broken capture ends without a graph");
}

static void broken(void)
{
	const struct um_location here = {UM_LOC_DEVICE, 0};
	void *e = event_new(), *plain = event_new(), *graph = NULL;
	uint64_t p = managed;
	size_t n = 4096, zero = 0;
	int mode = RELAXED;

	begin(stream, GLOBAL);
	breaks(CALL(cuMemPrefetchAsync, 12020, uint64_t, size_t, struct um_location, unsigned, void *)(managed, 4096,
												       here, 0, stream),
	       UNSUPPORTED, "a prefetch cannot be captured");
	begin(stream, GLOBAL);
	breaks(CALL(cuMemDiscardBatchAsync, 13000, uint64_t *, size_t *, size_t, unsigned long long, void *)(&p, &n, 1,
													     0, stream),
	       UNSUPPORTED, "nor a discard");
	begin(stream, GLOBAL);
	breaks(synchronize(stream), UNSUPPORTED, "a stream that captures cannot be waited for");
	begin(stream, GLOBAL);
	breaks(CALL(cuStreamQuery, 2000, void *)(stream), UNSUPPORTED, "nor asked");
	begin(stream, RELAXED);
	breaks(CALL(cuCtxSynchronize, 2000, void)(), UNSUPPORTED, "nor all of the device");
	begin(stream, GLOBAL);
	breaks(set_async(device, 1, 1, NULL), IMPLICIT, "the default stream is not used meanwhile");
	begin(stream, GLOBAL);
	breaks(CALL(cuMemAlloc, 3020, uint64_t *, size_t)(&p, 4096), UNSUPPORTED, "nor memory allocated");
	record(plain, other);
	begin(stream, GLOBAL);
	breaks(wait_for(stream, plain), ISOLATION, "nor waited for what is outside");

	begin(stream, GLOBAL);
	is_int(CALL(cuThreadExchangeStreamCaptureMode, 10010, int *)(&mode), 0, "a thread may say");
	is_int(CALL(cuMemAlloc, 3020, uint64_t *, size_t)(&p, 4096), 0,
	       "memory is allocated in relaxed mode during the capture");
	CALL(cuMemFree, 3020, uint64_t)(p);
	CALL(cuThreadExchangeStreamCaptureMode, 10010, int *)(&mode);
	is_int(mode, RELAXED, "exchanging the mode again returns the relaxed one");
	record(e, stream);
	wait_for(other, e);
	launch(other, device, 1);
	is_int(finish(stream, &graph), UNJOINED, "forked streams must join");
	is_int(status(other), 0, "the other stream is not capturing any more");

	begin(stream, GLOBAL);
	begin(other, GLOBAL);
	record(e, other);
	is_int(wait_for(stream, e), MERGE, "two captures are two");
	finish(stream, &graph);
	finish(other, &graph);
	is_int(begin(LEGACY, GLOBAL), UNSUPPORTED, "the default stream does not capture");
	is_int(begin((void *)2, GLOBAL), 0, "a thread's own does");
	launch((void *)2, device, 1);
	is_int(finish((void *)2, &graph), 0, "the capture of a thread's own stream ends");
	is_u64(nodes(graph), 1, "the captured graph has the one node");
	drop(graph, NULL);
	(void)zero;
}

static void *end_elsewhere(void *arg)
{
	void *graph = NULL;

	*(int *)arg = finish(stream, &graph);
	drop(graph, NULL);
	return NULL;
}

static void on_threads(void)
{
	void *graph = NULL;
	int err = 0;
	pthread_t t;

	begin(stream, GLOBAL);
	pthread_create(&t, NULL, end_elsewhere, &err);
	pthread_join(t, NULL);
	is_int(err, WRONG_THREAD, "a capture ends on its thread");
	is_int(finish(stream, &graph), INVALIDATED, "the capture is broken at its end");
	begin(stream, RELAXED);
	pthread_create(&t, NULL, end_elsewhere, &err);
	pthread_join(t, NULL);
	is_int(err, 0, "unless it is relaxed");
}

#define ADD void **, void *, void *const *, size_t

struct kernel_params {
	void *function;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	void *kernel, *context;
};

static void questions(void)
{
	int by = 3, wrong;
	uint64_t at = device, copy[25] = {0}, from = managed;
	void *args[] = {&at, &by}, *graph = NULL, *set = NULL, *kernel = NULL, *moved = NULL;
	struct kernel_params k = {add, {2, 1, 1}, {8, 1, 1}, 0, args, NULL, NULL, NULL}, got = {0};
	struct fill {
		uint64_t at;
		size_t pitch;
		unsigned value, size;
		size_t width, rows;
	} fill = {device, 0, 100, 4, 16, 1}, was = {0};

	copy[4] = copy[15] = 4; /* CUDA_MEMCPY3D: unified addresses */
	copy[6] = from;
	copy[17] = device;
	copy[22] = 64;
	copy[23] = copy[24] = 1;
	CALL(cuGraphCreate, 10000, void **, unsigned)(&graph, 0);
	CALL(cuGraphAddKernelNode, 12000, ADD, void *)(&kernel, graph, NULL, 0, &k);
	CALL(cuGraphAddMemsetNode, 10000, ADD, void *, void *)(&set, graph, NULL, 0, &fill, NULL);
	CALL(cuGraphAddMemcpyNode, 10000, ADD, void *, void *)(&moved, graph, NULL, 0, copy, NULL);
	at = by = 0;
	is_int(CALL(cuGraphKernelNodeGetParams, 12000, void *, void *)(kernel, &got), 0,
	       "cuGraphKernelNodeGetParams succeeds");
	ok(got.function == add && got.grid[0] == 2 && got.block[0] == 8 && *(uint64_t *)got.params[0] == device &&
		   *(int *)got.params[1] == 3,
	   "a kernel node has the parameters that it was added with");
	is_int(CALL(cuGraphMemsetNodeGetParams, 10000, void *, void *)(set, &was), 0,
	       "cuGraphMemsetNodeGetParams succeeds");
	ok(was.at == device && was.value == 100 && was.size == 4 && was.width == 16 && was.rows == 1,
	   "a fill node has the parameters that it was added with");
	memset(copy, 0, sizeof copy);
	is_int(CALL(cuGraphMemcpyNodeGetParams, 10000, void *, void *)(moved, copy), 0,
	       "cuGraphMemcpyNodeGetParams succeeds");
	ok(copy[6] == from && copy[17] == device && copy[22] == 64 && copy[23] == 1 && copy[24] == 1,
	   "a copy node has the addresses and the size that it was added with");
	wrong = CALL(cuGraphMemsetNodeGetParams, 10000, void *, void *)(kernel, &was);
	is_int(wrong, 1, "a kernel node has no parameters of a fill");
	CALL(cuGraphDestroy, 10000, void *)(graph);
}

/* `exec` has `graph` twice, of which `child` is the second: a fill with 100 and a kernel that adds 3. `set` is the fill
 * in `graph`. */
static void nested_changes(void *exec, void *graph, void *set, void *child)
{
	void *inner = NULL, *all[4], *kernel = NULL, *empty = NULL;
	size_t n = 4;
	unsigned on = 7;
	int type = -1;

	CALL(cuGraphChildGraphNodeGetGraph, 10000, void *, void **)(child, &inner);
	CALL(cuGraphGetNodes, 10000, void *, void **, size_t *)(inner, all, &n);
	for (size_t i = 0; i < n; i++)
		if (!CALL(cuGraphNodeGetType, 10000, void *, int *)(all[i], &type) && type == 0)
			kernel = all[i];
	is_int(CALL(cuGraphNodeSetEnabled, 11060, void *, void *, unsigned)(exec, kernel, 0), 0,
	       "a kernel of a child graph is disabled");
	CALL(cuGraphNodeGetEnabled, 11060, void *, void *, unsigned *)(exec, kernel, &on);
	is_int((int)on, 0, "the node is disabled");
	is_int(CALL(cuGraphNodeSetEnabled, 11060, void *, void *, unsigned)(exec, child, 0), 1,
	       "a child graph cannot be disabled");
	run(exec, stream);
	read_async(device, 64, stream);
	synchronize(stream);
	is_int(pinned[7], 100, "a disabled kernel does nothing");
	CALL(cuGraphAddEmptyNode, 10000, void **, void *, void *const *, size_t)(&empty, graph, &set, 1);
	is_int(CALL(cuGraphExecChildGraphNodeSetParams, 11010, void *, void *, void *)(exec, child, graph), 1,
	       "a child graph is not replaced by one with more nodes");
	CALL(cuGraphDestroyNode, 10000, void *)(empty);
}

static void by_hand(void)
{
	int by = 3, calls = 0, info[8];
	uint64_t at = device;
	void *args[] = {&at, &by}, *graph = NULL, *outer = NULL, *exec, *set = NULL, *kernel = NULL, *child = NULL,
	     *second = NULL, *host = NULL, *empty = NULL;
	struct kernel_params k = {add, {2, 1, 1}, {8, 1, 1}, 0, args, NULL, NULL, NULL};
	struct {
		uint64_t at;
		size_t pitch;
		unsigned value, size;
		size_t width, rows;
	} fill = {device, 0, 100, 4, 16, 1};
	struct {
		void (*fn)(void *);
		void *arg;
	} call = {count, &calls};

	CALL(cuGraphCreate, 10000, void **, unsigned)(&graph, 0);
	CALL(cuGraphCreate, 10000, void **, unsigned)(&outer, 0);
	/* The kernel is added first, and comes last. */
	is_int(CALL(cuGraphAddKernelNode, 12000, ADD, void *)(&kernel, graph, NULL, 0, &k), 0,
	       "a kernel node is added");
	is_int(CALL(cuGraphAddMemsetNode, 10000, ADD, void *, void *)(&set, graph, NULL, 0, &fill, NULL), 0,
	       "a fill node is added");
	is_int(CALL(cuGraphAddEmptyNode, 10000, ADD)(&empty, graph, &set, 1), 0, "an empty node is added after it");
	is_int(CALL(cuGraphAddDependencies, 10000, void *, void **, void **, size_t)(graph, &empty, &kernel, 1), 0,
	       "the kernel depends on the empty node");
	is_int(CALL(cuGraphAddChildGraphNode, 10000, ADD, void *)(&child, outer, NULL, 0, graph), 0,
	       "a graph is added to a graph");
	CALL(cuGraphAddChildGraphNode, 10000, ADD, void *)(&second, outer, &child, 1, graph);
	is_int(CALL(cuGraphAddHostNode, 10000, ADD, void *)(&host, outer, &second, 1, &call), 0,
	       "a host function node is added");
	exec = instantiate(outer);
	run(exec, stream);
	read_async(device, 64, stream);
	synchronize(stream);
	is_int(pinned[7], 103, "nodes run in the order of their edges");
	is_int(calls, 1, "the host function is called once");
	nested_changes(exec, graph, set, second);
	drop(outer, exec);

	exec = instantiate(graph);
	by = 30;
	is_int(CALL(cuGraphExecKernelNodeSetParams, 12000, void *, void *, void *)(exec, kernel, &k), 0,
	       "other parameters are set in the executable graph");
	by = 0;
	run(exec, stream);
	read_async(device, 64, stream);
	synchronize(stream);
	is_int(pinned[7], 130, "parameters have the values they had when given");
	by = 300;
	CALL(cuGraphKernelNodeSetParams, 12000, void *, void *)(kernel, &k);
	is_int(CALL(cuGraphExecUpdate, 12000, void *, void *, void *)(exec, graph, info), 0,
	       "a changed graph updates its instance");
	run(exec, stream);
	read_async(device, 64, stream);
	synchronize(stream);
	is_int(pinned[7], 400, "the change is taken over");
	CALL(cuGraphDestroyNode, 10000, void *)(empty);
	is_int(CALL(cuGraphExecUpdate, 12000, void *, void *, void *)(exec, graph, info), 910,
	       "an update from a different graph is refused");
	is_int(info[0], 2, "the refused update names its reason");
	is_int(CALL(cuGraphAddDependencies, 10000, void *, void **, void **, size_t)(graph, &set, &kernel, 1), 0,
	       "a dependency that closes a circle is refused");
	CALL(cuGraphAddDependencies, 10000, void *, void **, void **, size_t)(graph, &kernel, &set, 1);
	second = NULL;
	is_int(CALL(cuGraphInstantiateWithFlags, 11040, void **, void *, unsigned long long)(&second, graph, 0), 1,
	       "cannot be run");
	drop(graph, exec);
}

static void nested(void)
{
	void *graph = NULL, *outer = NULL, *exec, *outer_exec;

	begin(stream, GLOBAL);
	launch(stream, device, 1);
	finish(stream, &graph);
	exec = instantiate(graph);
	begin(stream, GLOBAL);
	set_async(device, 0, 16, stream);
	is_int(run(exec, stream), 0, "a launch can be captured");
	run(exec, stream);
	read_async(device, 64, stream);
	finish(stream, &outer);
	is_u64(nodes(outer), 4, "the child graph is one node");
	drop(graph, exec);
	outer_exec = instantiate(outer);
	run(outer_exec, stream);
	synchronize(stream);
	is_int(pinned[9], 2, "the child graph does what it did before");
	drop(outer, outer_exec);
}

int main(void)
{
	void *module = NULL;

	calls_open("13.0");
	if (CALL(cuModuleLoadData, 2000, void **, const void *)(&module, ptx) ||
	    CALL(cuModuleGetFunction, 2000, void **, void *, const char *)(&add, module, "add") ||
	    calls_table()->register_kernel(add, add_host) ||
	    CALL(cuStreamCreate, 2000, void **, unsigned)(&stream, 0) ||
	    CALL(cuStreamCreate, 2000, void **, unsigned)(&other, 1) ||
	    CALL(cuMemAlloc, 3020, uint64_t *, size_t)(&device, 8 << 20) ||
	    CALL(cuMemAllocManaged, 6000, uint64_t *, size_t, unsigned)(&managed, 4 << 20, 1) ||
	    CALL(cuMemAllocHost, 3020, void **, size_t)((void **)&pinned, 1 << 20))
		tap_bail("cannot begin");
	captured();
	forked();
	broken();
	on_threads();
	questions();
	by_hand();
	nested();
	return tap_done();
}
