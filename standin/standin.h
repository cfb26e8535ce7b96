/* SPDX-License-Identifier: Apache-2.0
 *
 * standin.h - a libcuda.so.1 over the simulated GPU: shared by the files of standin/
 *
 * in    calls of the CUDA driver API, made by a program or by the CUDA runtime inside it
 * out   the same calls on the simulated device (sim/sim.h), whose memory is host memory
 * owns  the one simulated device of the process; contexts, modules, launches, captures and graphs
 *
 *     entry.c     functions by name and version; unknown ones return "not supported" and are named
 *     fail.c      injected faults; messages about unknown calls
 *     state.c     opening, settings from the environment
 *     report.c    the report
 *     device.c    devices, attributes
 *     context.c   contexts
 *     export.c    why NVIDIA's own runtime does not start on this driver
 *     module.c    modules, libraries, functions, globals
 *     var_room.c  device memory for the variables of modules
 *     launch.c    launches: copies of parameters, touched ranges, host functions for kernels
 *     function.c  attributes and names of functions, occupancy
 *     memory.c    allocations, pools, pinned memory; attributes of pointers
 *     copy.c      copies, memsets
 *     hint.c      prefetch, advise, discard; attributes of ranges
 *     stream.c    streams, values, host functions
 *     event.c     events
 *     capture.c   capture
 *     graph.c     graphs: nodes, an order; graph_node.c builds and queries them, graph_exec.c runs them,
 *                 graph_change.c changes what is run
 *     host_call.c host functions in stream order
 *     worker.c    helper threads of the program, run in simulated time
 *
 * Settings come from the environment, as `umadvise dryrun` sets it:
 *     UMADVISE_DRYRUN_PROFILE   built-in name or file (default v100)
 *     UMADVISE_DRYRUN_MEMORY    bytes of device memory (default: the profile's)
 *     UMADVISE_DRYRUN_DEVICES   number of devices (default 1)
 *     UMADVISE_DRYRUN_LINK      number of successive devices that share a link (default: the profile's)
 *     UMADVISE_DRYRUN_NODES     number of NUMA nodes of the host (default 1)
 *     UMADVISE_DRYRUN_CUDA      driver version to imitate: 12.4 or 13.0 (default)
 *     UMADVISE_DRYRUN_OUT       file for the report (json); %p in it becomes the process id: report.h
 *     UMADVISE_DRYRUN_LOG       file for the event log
 *     UMADVISE_DRYRUN_FAIL      NAME:N[:CODE],...: the N-th call of NAME (0: every one) returns CODE (default 1)
 *     UMADVISE_DRYRUN_MISSING   NAME,...: functions that this driver does not have
 *     UMADVISE_DRYRUN_CPU       off: accesses of the CPU to managed memory are not tracked
 *     UMADVISE_DRYRUN_HAZARDS   how a program can hang: um_sim_hazards_parse; reported on standard error
 *
 * Errors are CUresult codes, the same numbers as cudaError_t in gpu.h. The simulator has its own lock; other data
 * shared between threads are guarded by um_standin_lock(), which is never held during a call that advances time.
 */
#ifndef UM_STANDIN_STANDIN_H
#define UM_STANDIN_STANDIN_H

#include "base/vec.h"
#include "sim/sim.h"

#define UM_EXPORT __attribute__((visibility("default")))

/* A function that programs see, declared and begun. */
#define UM_CALL(name, ...)                                                                                             \
	UM_EXPORT int name(__VA_ARGS__);                                                                               \
	int name(__VA_ARGS__)

/* An alias: the form for per-thread default streams, or an older name. */
#define UM_FORWARD(name, params, call)                                                                                 \
	UM_EXPORT int name params;                                                                                     \
	int name params                                                                                                \
	{                                                                                                              \
		return call;                                                                                           \
	}

/* One device. */
struct um_standin {
	struct um_gpu *gpu; /* the simulated device */
	int ordinal;
	struct um_profile profile;
	int version; /* 12040, 13000 */
	int reuse, destroyed; /* as in um_sim_hazards */
};

/* CUresult values without a name in gpu.h. */
enum um_standin_error {
	UM_CU_NOT_INITIALIZED = 3,
	UM_CU_NO_DEVICE = 100,
	UM_CU_INVALID_IMAGE = 200,
	UM_CU_INVALID_CONTEXT = 201,
	UM_CU_PEER_UNSUPPORTED = 217,
	UM_CU_PEER_NOT_ENABLED = 705,
	UM_CU_FILE_NOT_FOUND = 301,
	UM_CU_INVALID_HANDLE = 400,
	UM_CU_ILLEGAL_STATE = 401,
	UM_CU_NOT_FOUND = 500,
	UM_CU_CAPTURE_UNSUPPORTED = 900,
	UM_CU_CAPTURE_INVALIDATED = 901,
	UM_CU_CAPTURE_MERGE = 902,
	UM_CU_CAPTURE_UNMATCHED = 903,
	UM_CU_CAPTURE_UNJOINED = 904,
	UM_CU_CAPTURE_ISOLATION = 905,
	UM_CU_CAPTURE_IMPLICIT = 906,
	UM_CU_CAPTURED_EVENT = 907,
	UM_CU_CAPTURE_WRONG_THREAD = 908,
	UM_CU_GRAPH_UPDATE_FAILURE = 910
};

/* The imitated driver version: known before cuInit. */
int um_standin_version(void);

/* Number of NUMA nodes of the host, over which the devices are spread. */
int um_standin_nodes(void);

/* The device that the thread's current call is about: that of its context, device 0 without one, or that of a stream or
 * an event that the call names. NULL before cuInit has succeeded. */
struct um_standin *um_standin(void);
void um_standin_on(struct um_standin *s); /* until the next call: the call is about this device; NULL: the context's */
struct um_standin *um_standin_device(int ordinal); /* NULL: there is none */
int um_standin_devices(void); /* their number; 0 before cuInit */
int um_standin_open(int *fresh); /* cuInit: CUDA error code; *fresh: it was not open before */

void um_standin_lock(void); /* recursive */
void um_standin_unlock(void);

/* --- entry.c ---------------------------------------------------------------------------------------------------- */

/* One form of a driver function, as cuGetProcAddress knows it. A name may have several rows: the one with the highest
 * `since` that is neither above the version asked for nor above the driver's is meant. */
struct um_entry {
	const char *name; /* base name: "cuMemPrefetchAsync" */
	int since; /* 2000, 12020, ... */
	void *fn;
	void *ptsz; /* for per-thread default streams, or NULL: the same function */
};

/* Tables end with a row without a name. */
extern const struct um_entry um_device_entries[], um_context_entries[], um_export_entries[], um_module_entries[],
	um_function_entries[], um_launch_entries[], um_memory_entries[], um_copy_entries[], um_hint_entries[],
	um_stream_entries[], um_event_entries[], um_capture_entries[], um_graph_entries[], um_exec_entries[],
	um_change_entries[];

/* A row of a table: the exported function, under its base name; with a form for per-thread default streams. */
#define UM_ENTRY(base, since, fn)                                                                                      \
	{                                                                                                              \
#base, since, (void *)fn, NULL                                                                         \
	}
#define UM_ENTRY_PTSZ(base, since, fn)                                                                                 \
	{                                                                                                              \
#base, since, (void *)fn, (void *)fn##_ptsz                                                            \
	}

/* --- fail.c ------------------------------------------------------------------------------------------------------- */

/* Injected faults: called first by every entry that may be made to fail; 0 or the code to return. `name` is the
 * exported symbol. */
int um_standin_fail(const char *name);
/* Is `name` an item of a comma-separated list? The text after its name, a colon or the end of the item; or NULL. */
const char *um_item_find(const char *list, const char *name);

/* First in every entry: an injected error, or the lack of a device. CUDA error code. */
int um_standin_enter(const char *name);
uint64_t um_standin_calls(void); /* so far, of all threads */

/* A call names a stream that does not exist: with that hazard, reports it and ends the process. */
void um_standin_no_stream(void);

/* Reports an unsupported feature on stderr, once per text. Returns 801. */
int um_standin_unsupported(const char *what);

/* --- device.c, context.c, module.c -------------------------------------------------------------------------------- */

int um_standin_sm(void); /* compute capability: 90 */
int um_device_ok(int device); /* is it one? CUDA error code */
int um_standin_context_device(void); /* of the thread's current context; without one 0 */

/* A kernel: CUfunction and CUkernel alike. */
struct um_image_kernel; /* standin/image.h */
struct um_function {
	const struct um_image_kernel *kernel; /* name and parameters; the module's */
	struct um_module *module;
	uint32_t bytes; /* of all parameters */
	int shared; /* bytes of dynamic shared memory allowed */
	void (*host)(void **args, const unsigned grid[3], const unsigned block[3]); /* stands for it, or NULL */
};

/* --- host_call.c -------------------------------------------------------------------------------------------------- */

/* Enqueues a host function. CUDA error code. */
int um_standin_call(um_stream stream, void (*fn)(void *arg), void *arg);

/* --- workers of the program (worker.c): as in standin_table.h ----------------------------------------------------- */

int um_standin_worker_start(struct um_worker *worker);
void um_standin_worker_stop(struct um_worker *worker);
void um_standin_worker_poke(struct um_worker *worker);

/* --- work on streams (stream.c, graph.c) ------------------------------------------------------------------------- */

struct um_launch; /* launch.c: one kernel launch with copies of its parameters; counted references */

enum um_work_kind { UM_WORK_KERNEL, UM_WORK_COPY, UM_WORK_SET, UM_WORK_HOST, UM_WORK_RECORD, UM_WORK_WAIT };

/* Work of a stream as a value: captured into a graph, or executed. */
struct um_work {
	enum um_work_kind kind;
	union {
		struct um_launch *launch; /* KERNEL: a reference */
		struct {
			void *to;
			const void *from;
			size_t to_pitch, from_pitch; /* bytes from row to row */
			size_t bytes, rows; /* of a row */
		} copy;
		struct {
			void *at;
			size_t pitch, width, rows; /* width: elements in a row */
			unsigned value, size; /* 1, 2 or 4 bytes each */
		} set;
		struct {
			void (*fn)(void *arg);
			void *arg;
		} host;
		void *event; /* RECORD, WAIT */
	};
};

/* A driver stream handle (NULL, 1, 2 or one of ours). Captures it, or passes it to the simulator. CUDA error code. The
 * reference to a launch is taken, also on failure. */
int um_work_submit(void *stream, const struct um_work *work);

/* Waits for all work of the device; breaks captures under way. CUDA error code. */
int um_context_sync(struct um_standin *s);

/* The simulator's stream for a handle, or NULL: there is no such stream. */
um_stream um_standin_stream(void *stream, int *ok);

/* --- launches (launch.c) ------------------------------------------------------------------------------------------ */

/* Puts the launch on a stream of the simulator. CUDA error code. */
int um_launch_run(struct um_launch *launch, um_stream stream);
/* CUDA error code. */
int um_launch_new(struct um_launch **out, void *function, const unsigned grid[3], const unsigned block[3],
		  void **params, void **extra);
/* What it was made from: the parameters are the launch's own copies. A library's kernel has no function; the addresses
 * that it touches are in `extra`. */
struct um_launch_description {
	void *function;
	unsigned grid[3], block[3];
	void **params, **extra; /* one of them is NULL */
};
void um_launch_describe(struct um_launch *launch, struct um_launch_description *out);
int um_launch_is_cooperative(const struct um_launch *launch);
struct um_launch *um_launch_get(struct um_launch *launch); /* one more reference */
void um_launch_put(struct um_launch *launch);
/* As in standin_table.h. */
int um_launch_host(um_stream stream, const char *name, const struct um_announcement *what, void (*fn)(void *arg),
		   void *arg, void (*free_arg)(void *arg));

#endif
