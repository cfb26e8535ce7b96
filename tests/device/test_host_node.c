/* SPDX-License-Identifier: Apache-2.0
 *
 * The NUMA node of evicted data: which nodes there are is read from a made-up /sys, and hints to the host name the node
 * to a driver that does as told (tests/device/fake_cuda.c).
 */
#include "gpu/host_node.h"

#include "fake_cuda.h"
#include "gpu/device.h"
#include "gpu/device_calls.h"
#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[200];
static struct fake *fake;

/* --- the nodes of the host ---------------------------------------------------------------------------------------- */

#define FOLDER "/sys/devices/system/node"

static void put_nodes(const char *list)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s" FOLDER, root);
	for (char *p = path + strlen(root) + 1; p; *p = '/') {
		p = strchr(p + 1, '/');
		if (p)
			*p = '\0';
		if (mkdir(path, 0700) && errno != EEXIST)
			tap_bail("no directory");
		if (!p)
			break;
	}
	strcat(path, "/has_memory");
	f = fopen(path, "w");
	if (!f || fputs(list, f) < 0 || fclose(f))
		tap_bail("no file");
}

static void lists(void)
{
	static const struct {
		const char *list;
		int node, matters;
	} cases[] = {
		{"0\n", 0, 0},	   {"0-1\n", 0, 1},    {"0-1\n", 1, 1},	      {"0-1\n", 2, 0},
		{"0-1\n", -1, 0},  {"0,2\n", 1, 0},    {"0,2\n", 2, 1},	      {"0-1,4-6,9\n", 5, 1},
		{"3\n", 3, 0},	   {"\n", 0, 0},       {"0-1,4-6,9\n", 3, 0}, {"0-1,4-6,9\n", 9, 1},
		{"1,3-4\n", 3, 1}, {"1,3-4\n", 10, 0}, {"10-11\n", 1, 0},
	};

	is_int(um_host_node_matters(root, 0), 0, "without a list of nodes none matters");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		put_nodes(cases[i].list);
		is_int(um_host_node_matters(root, cases[i].node), cases[i].matters, "node %d of %.*s %s", cases[i].node,
		       (int)strcspn(cases[i].list, "\n"), cases[i].list,
		       cases[i].matters ? "has memory, and so have others" : "is not one of several with memory");
	}
}

/* --- destinations of hints ---------------------------------------------------------------------------------------- */

static void load(void)
{
	const char *top = getenv("top_builddir");
	struct fake *(*state)(void);
	char path[4096];
	void *lib, *fn;

	snprintf(path, sizeof path, "%s/tests/device/fake/libcuda.so.1", top ? top : ".");
	if (access(path, R_OK))
		tap_skip_all("no fake CUDA libraries were built");
	lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	fn = lib ? dlsym(lib, "fake_state") : NULL;
	if (!fn)
		tap_bail("no fake driver");
	memcpy(&state, &fn, sizeof fn);
	fake = state();
	fake->attributes[0][UM_AT_MANAGED_MEMORY] = 1;
	fake->attributes[0][UM_AT_CONCURRENT_MANAGED_ACCESS] = 1;
}

static struct um_gpu *open_node(int node)
{
	struct um_device_options o = {.ordinal = -1, .host_node = node, .root = root};
	struct um_gpu *gpu = NULL;
	char why[200];

	if (um_device_open(&gpu, &o, why, sizeof why))
		tap_bail("no device");
	return gpu;
}

/* The location of a prefetch to the host; *refused: the node that the driver refused at opening, plus 1. */
static struct um_location evicted_to(int node, int *refused)
{
	struct um_gpu *gpu = open_node(node);
	struct um_device_info info;
	char data[8];

	is_int(gpu->api->cudaMemPrefetchAsync(gpu, data, sizeof data, um_on_host(), 0, NULL), 0,
	       "an eviction succeeds");
	um_device_info(gpu, &info);
	*refused = info.node_refused;
	gpu->api->close(gpu);
	return (struct um_location){fake->type, fake->id};
}

static void is_place(int node, int type, int id, int refused, const char *what)
{
	int got;
	struct um_location at = evicted_to(node, &got);

	ok(at.type == type && at.id == id, "%s: type %d, id %d", what, at.type, at.id);
	is_int(got, refused, refused ? "the driver's refusal is known" : "the driver has refused no node");
}

static void evictions(void)
{
	put_nodes("0-1\n");
	fake->nodes = 2;
	fake->attributes[0][UM_AT_HOST_NUMA_ID] = 1;
	is_place(0, UM_LOC_HOST_NUMA, 1, 0, "evicted data go to the device's node");
	is_place(1, UM_LOC_HOST_NUMA, 0, 0, "they go to another node that the option names");
	is_place(-1, UM_LOC_HOST, 0, 0, "they go to any node where the option says so");
	is_place(6, UM_LOC_HOST, 0, 6, "they go to any node if the driver refuses the one of the option");
	put_nodes("1\n");
	is_place(0, UM_LOC_HOST, 0, 0, "they go to any node of a host that has one");
	put_nodes("0,2\n");
	is_place(0, UM_LOC_HOST, 0, 0, "they go to any node if the device's has no memory");
	put_nodes("0-1\n");
	fake->attributes[0][UM_AT_HOST_NUMA_ID] = -1;
	is_place(0, UM_LOC_HOST, 0, 0, "they go to any node if the driver knows none");
	fake->version = 12010;
	is_place(2, -1, -1, 0, "with a driver of CUDA 12.1, hints name the host without a node");
	fake->version = 13000;
}

static void other_hints(void)
{
	struct um_gpu *gpu = open_node(2);
	char data[8];

	gpu->api->cudaMemPrefetchAsync(gpu, data, sizeof data, um_on_device(0), 0, NULL);
	ok(fake->type == UM_LOC_DEVICE && fake->id == 0, "prefetches to the device stay as they are");
	gpu->api->cudaMemAdvise(gpu, data, sizeof data, UM_ADV_SET_PREFERRED, um_on_host());
	ok(fake->type == UM_LOC_HOST_NUMA && fake->id == 1,
	   "what shall stay on the host is advised to stay on the node");
	gpu->api->cudaMemAdvise(gpu, data, sizeof data, UM_ADV_SET_ACCESSED_BY, um_on_host());
	ok(fake->type == UM_LOC_HOST, "other advice about the host names no node");
	gpu->api->close(gpu);
	fake->fails = "cuMemAdvise_v2";
	fake->code = UM_CUDA_INVALID_DEVICE;
	is_place(2, UM_LOC_HOST, 0, 2, "a driver that refuses the advice alone gets no node either");
	is_int(fake->violations, 0, "every call has its context");
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	char command[300];

	load();
	snprintf(root, sizeof root, "%s/host_node.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(root))
		tap_bail("no directory");
	lists();
	evictions();
	other_hints();
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	if (system(command))
		diag("%s is left", root);
	return tap_done();
}
