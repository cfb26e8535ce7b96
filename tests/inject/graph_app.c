/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_app.c - a program that launches graphs, for inject_graph.sh; no header of CUDA
 *
 *     graph_app SETTER             a graph of a kernel, a copy, a fill and a graph with a kernel is launched three
 *                                  times; before the second and the third time SETTER changes one of its nodes
 *     graph_app steps WAY N        a graph that uses 96 MiB is launched N times; WAY: what is special about it
 *
 * Prints what is in its arrays.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <umadvise_dryrun.h>

#define BYTES ((size_t)8 << 20)
#define WORDS (BYTES / 8)
#define MOST 32

static int (*find)(const char *, void **, int, unsigned long long, int *);
static const char *way;
static void *function, *stream;
static uint64_t at[MOST];
static unsigned n_arrays;

static int is(const char *name)
{
	return strcmp(way, name) == 0;
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	printf("%s: %d\n", what, err);
	exit(3);
}

static void *need(const char *name, int version)
{
	void *p = NULL;

	find(name, &p, version, 0, NULL);
	must(!p, name);
	return p;
}
#define MUST(name, version, params, ...) must((*(int(*) params)need(name, version))(__VA_ARGS__), name)

/* --- nodes -------------------------------------------------------------------------------------------------------- */

struct kernel { /* CUDA_KERNEL_NODE_PARAMS_v2 */
	void *function;
	unsigned grid[3], block[3], shared;
	void **params, **extra, *kernel, *context;
};

struct fill { /* CUDA_MEMSET_NODE_PARAMS */
	uint64_t at;
	size_t pitch;
	unsigned value, size;
	size_t width, rows;
	void *context;
};

struct copy_end {
	size_t x, y, z, lod;
	int type;
	void *host;
	uint64_t device;
	void *array, *reserved;
	size_t pitch, height;
};

struct copy { /* CUDA_MEMCPY3D */
	struct copy_end from, to;
	size_t width, height, depth;
};

struct any { /* CUgraphNodeParams */
	int type, reserved[3];
	union {
		long long room[30];
		struct kernel kernel;
		struct fill fill;
		void *graph;
		struct {
			int flags, reserved;
			void *context;
			struct copy copy;
		} copy;
	} of;
};

/* The kernel: to = to * 3 + from + by, for one word of each page. */
static void add_host(void **args, const unsigned grid[3], const unsigned block[3])
{
	uint64_t *to = *(uint64_t **)args[0];
	const uint64_t *from = *(uint64_t *const *)args[1];

	(void)grid;
	(void)block;
	for (size_t i = 0; i < WORDS; i += 512)
		to[i] = to[i] * 3 + from[i] + *(uint32_t *)args[2];
}

static uint32_t by = 5;

/* Its parameters stay until the next call of params_of. */
static struct kernel kernel_of(unsigned to, unsigned from)
{
	static void *params[3];

	params[0] = &at[to];
	params[1] = &at[from];
	params[2] = &by;
	return (struct kernel){function, {64, 1, 1}, {256, 1, 1}, 0, params, NULL, NULL, NULL};
}

static struct fill fill_of(unsigned to)
{
	return (struct fill){at[to], 0, 7, 4, BYTES / 4, 1, NULL};
}

static struct copy copy_of(unsigned to, unsigned from)
{
	return (struct copy){{.type = 2, .device = at[from]}, {.type = 2, .device = at[to]}, BYTES, 1, 1};
}

#define ADD (void **, void *, void *const *, size_t, const void *)
#define ADD_IN (void **, void *, void *const *, size_t, const void *, void *)

static void *graph_new(void)
{
	void *graph = NULL;

	MUST("cuGraphCreate", 10000, (void **, unsigned), &graph, 0);
	return graph;
}

/* Adds a node after another one, or NULL. */
static void *add_kernel(void *graph, void *after, unsigned to, unsigned from)
{
	struct kernel k = kernel_of(to, from);
	void *node = NULL;

	MUST("cuGraphAddKernelNode", 12000, ADD, &node, graph, &after, after != NULL, &k);
	return node;
}

static void *add_copy(void *graph, void *after, unsigned to, unsigned from)
{
	struct copy c = copy_of(to, from);
	void *node = NULL;

	MUST("cuGraphAddMemcpyNode", 10000, ADD_IN, &node, graph, &after, after != NULL, &c, NULL);
	return node;
}

static void *add_fill(void *graph, void *after, unsigned to)
{
	struct fill f = fill_of(to);
	void *node = NULL;

	MUST("cuGraphAddMemsetNode", 10000, ADD_IN, &node, graph, &after, after != NULL, &f, NULL);
	return node;
}

/* A graph of one kernel. */
static void *inner(unsigned to, unsigned from)
{
	void *graph = graph_new();

	add_kernel(graph, NULL, to, from);
	return graph;
}

static void *add_child(void *graph, void *after, void *child)
{
	void *node = NULL;

	MUST("cuGraphAddChildGraphNode", 10000, ADD, &node, graph, &after, after != NULL, child);
	MUST("cuGraphDestroy", 10000, (void *), child);
	return node;
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

enum { KERNEL, COPY, FILL, CHILD, NODES };

/* The nodes write to arrays 0, 2, 4 and 5. */
static void build(void *graph, void **node)
{
	node[KERNEL] = add_kernel(graph, NULL, 0, 1);
	node[COPY] = add_copy(graph, node[KERNEL], 2, 3);
	node[FILL] = add_fill(graph, node[COPY], 4);
	node[CHILD] = add_child(graph, node[FILL], inner(5, 6));
}

/* From now on one node writes to the array `to`. */
static void change(void *exec, void **node, unsigned to, unsigned step)
{
	struct kernel k = kernel_of(to, 1);
	struct fill f = fill_of(to);
	struct copy c = copy_of(to, 3);
	struct any any = {0};
	void *child = inner(to, 6);
	int at_node = KERNEL;

	k.params[0] = &at[to];
	k.params[1] = &at[1];
	if (is("kernel-1")) {
		MUST("cuGraphExecKernelNodeSetParams", 11000, (void *, void *, void *), exec, node[KERNEL], &k);
	} else if (is("kernel")) {
		MUST("cuGraphExecKernelNodeSetParams", 12000, (void *, void *, void *), exec, node[KERNEL], &k);
	} else if (is("copy")) {
		MUST("cuGraphExecMemcpyNodeSetParams", 10020, (void *, void *, void *, void *), exec, node[COPY], &c,
		     NULL);
	} else if (is("fill")) {
		MUST("cuGraphExecMemsetNodeSetParams", 10020, (void *, void *, void *, void *), exec, node[FILL], &f,
		     NULL);
	} else if (is("child")) {
		MUST("cuGraphExecChildGraphNodeSetParams", 11010, (void *, void *, void *), exec, node[CHILD], child);
	} else if (is("enabled")) {
		MUST("cuGraphNodeSetEnabled", 11060, (void *, void *, unsigned), exec, node[KERNEL], step == 2);
	} else {
		any.of.kernel = k;
		if (is("any-copy")) {
			memset(&any.of, 0, sizeof any.of);
			any.type = 1;
			any.of.copy.copy = c;
			at_node = COPY;
		} else if (is("any-fill")) {
			memset(&any.of, 0, sizeof any.of);
			any.type = 2;
			any.of.fill = f;
			at_node = FILL;
		} else if (is("any-child")) {
			memset(&any.of, 0, sizeof any.of);
			any.type = 4;
			any.of.graph = child;
			at_node = CHILD;
		}
		MUST("cuGraphExecNodeSetParams", 12020, (void *, void *, void *), exec, node[at_node], &any);
	}
	MUST("cuGraphDestroy", 10000, (void *), child);
}

static void changes(void)
{
	void *graph = graph_new(), *exec = NULL, *node[NODES];

	build(graph, node);
	MUST("cuGraphInstantiateWithFlags", 11040, (void **, void *, unsigned long long), &exec, graph, 0);
	for (unsigned step = 0; step < 3; step++) {
		if (step)
			change(exec, node, 6 + step, step);
		MUST("cuGraphLaunch", 10000, (void *, void *), exec, stream);
	}
	MUST("cuStreamSynchronize", 2000, (void *), stream);
	MUST("cuGraphExecDestroy", 10000, (void *), exec);
	MUST("cuGraphDestroy", 10000, (void *), graph);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void count(void *arg)
{
	++*(int *)arg;
}

/* A node after `last` that only the driver launches as it is meant. */
static void *add_special(void *graph, void *last, int *calls)
{
	struct {
		void (*fn)(void *arg);
		void *arg;
	} call = {count, calls};
	uint64_t to = at[0], from = at[1];
	void *params[] = {&to, &from, &by}, *node = NULL, *captured = NULL;

	if (is("host")) {
		MUST("cuGraphAddHostNode", 10000, ADD, &node, graph, &last, 1, &call);
	} else if (is("cooperative")) {
		MUST("cuStreamBeginCapture", 10010, (void *, int), stream, 1);
		MUST("cuLaunchCooperativeKernel", 9000,
		     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **),
		     function, 64, 1, 1, 256, 1, 1, 0, stream, params);
		MUST("cuStreamEndCapture", 10000, (void *, void **), stream, &captured);
		node = add_child(graph, last, captured);
	}
	return node ? node : last;
}

/* Two chains of nodes, which a last one joins. */
static void *steps_graph(void **first, int *calls)
{
	void *graph = graph_new(), *last[2], *from[2], *to[2];
	void *end = is("late") ? add_kernel(graph, NULL, 0, 11) : NULL;

	for (int k = 0; k < 2; k++) {
		last[k] = add_kernel(graph, NULL, 6 * (unsigned)k, 6 * (unsigned)k + 1);
		for (unsigned i = 1; i < 3; i++)
			last[k] = add_kernel(graph, last[k], 6 * (unsigned)k + i, 6 * (unsigned)k + i + 1);
		last[k] = add_copy(graph, last[k], 6 * (unsigned)k + 4, 6 * (unsigned)k + 3);
		last[k] = add_child(graph, last[k], inner(6 * (unsigned)k + 3, 6 * (unsigned)k + 4));
		last[k] = add_fill(graph, last[k], 6 * (unsigned)k + 5);
		*first = last[k];
	}
	from[0] = add_special(graph, last[1], calls);
	from[1] = add_kernel(graph, last[0], 5, 4);
	to[0] = to[1] = end ? end : add_kernel(graph, last[0], 0, 11);
	MUST("cuGraphAddDependencies", 10000, (void *, void **, void **, size_t), graph, from, to, 2);
	return graph;
}

static void steps(unsigned n)
{
	void *exec = NULL, *fill = NULL, *other = NULL, *graph;
	int calls = 0;

	graph = steps_graph(&fill, &calls);
	MUST("cuStreamCreate", 2000, (void **, unsigned), &other, 1);
	MUST("cuStreamSynchronize", 2000, (void *), stream);
	MUST("cuGraphInstantiateWithFlags", 11040, (void **, void *, unsigned long long), &exec, graph, 0);
	if (is("disabled"))
		MUST("cuGraphNodeSetEnabled", 11060, (void *, void *, unsigned), exec, fill, 0);
	MUST("cuGraphDestroy", 10000, (void *), graph);
	for (unsigned s = 0; s < n; s++)
		MUST("cuGraphLaunch", 10000, (void *, void *), exec, is("streams") && s % 2 ? other : stream);
	MUST("cuStreamSynchronize", 2000, (void *), stream);
	MUST("cuStreamSynchronize", 2000, (void *), other);
	printf("%d calls\n", calls);
	MUST("cuGraphExecDestroy", 10000, (void *), exec);
	MUST("cuStreamDestroy", 4000, (void *), other);
}

/* --- the program -------------------------------------------------------------------------------------------------- */

static void load(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry add(.param .u64 to, .param .u64 from, .param .u32 n) {\n"
				  "\t.reg .b64 %rd<4>;\n\tld.param.u64 %rd1, [to];\n\tld.param.u64 %rd2, [from];\n"
				  "\tld.global.u64 %rd3, [%rd2];\n\tst.global.u64 [%rd1], %rd3;\n\tret;\n}\n";
	void *module = NULL;

	MUST("cuModuleLoadData", 2000, (void **, const void *), &module, ptx);
	MUST("cuModuleGetFunction", 2000, (void **, void *, const char *), &function, module, "add");
	umadv_dryrun_function(function, add_host);
	MUST("cuStreamCreate", 2000, (void **, unsigned), &stream, 1);
}

static void arrays(unsigned n)
{
	n_arrays = n;
	for (unsigned i = 0; i < n; i++) {
		MUST("cuMemAlloc", 3020, (uint64_t *, size_t), &at[i], BYTES);
		MUST("cuMemsetD32Async", 3020, (uint64_t, unsigned, size_t, void *), at[i], i + 1, BYTES / 4, stream);
	}
}

/* A sum of each array. */
static void show(void)
{
	uint64_t *host = calloc(1, BYTES), sum;

	must(!host, "memory");
	for (unsigned i = 0; i < n_arrays; i++) {
		MUST("cuMemcpyDtoH", 3020, (void *, uint64_t, size_t), host, at[i], BYTES);
		MUST("cuMemFree", 3020, (uint64_t), at[i]);
		sum = 0;
		for (size_t k = 0; k < WORDS; k += 256)
			sum = sum * 31 + host[k];
		printf("%llx\n", (unsigned long long)sum);
	}
	free(host);
}

int main(int argc, char **argv)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
	void *fn = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;

	if (!fn || argc < 2)
		return 2;
	memcpy(&find, &fn, sizeof find);
	way = argv[argc > 3 ? 2 : 1];
	MUST("cuInit", 2000, (unsigned), 0);
	MUST("cuDevicePrimaryCtxRetain", 7000, (void **, int), &context, 0);
	MUST("cuCtxSetCurrent", 4000, (void *), context);
	load();
	arrays(argc > 3 ? 12 : 9);
	if (argc > 3)
		steps((unsigned)atoi(argv[3]));
	else
		changes();
	show();
	MUST("cuStreamDestroy", 4000, (void *), stream);
	return 0;
}
