/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.h - the simulated GPU: the device table filled from a profile
 *
 * in    the calls of gpu.h, and um_sim_run() for a kernel
 * out   residency, faults, migrations, and their times, in integer nanoseconds
 * owns  the simulated device: memory, lists, engines, streams, events, helper threads
 *
 * Deterministic: no wall clock, no randomness, ties broken by sequence number; the same calls give the same log, byte
 * for byte. The program's threads (any thread that calls, under one internal lock) share one simulated clock: launches
 * cost it nothing until a stream holds UM_SIM_QUEUE commands, then the launch waits for room as with a real launch
 * queue. Calls that the driver serves on the calling thread (hints, frees) cost it their time. Library workers have a
 * clock each.
 *
 * Several devices of a process have one lock and one event loop, and managed and pinned memory in common. Each has a
 * clock of the program's, so that threads with a device each do not wait for one another; a thread that goes on to
 * another device takes its time along. No device reaches the memory of another: a block that another one has goes to
 * the host as a whole before it is used, and a copy between devices passes through the host.
 */
#ifndef UM_SIM_SIM_H
#define UM_SIM_SIM_H

#include "gpu/simulation.h"
#include "model/activity.h"
#include "model/profile.h"
#include "model/tally.h"

#define UM_SIM_QUEUE 1024
#define UM_SIM_DEVICES_MAX 16 /* of a process */

#define UM_SIM_QUEUES_DEFAULT 8 /* as on a GPU without CUDA_DEVICE_MAX_CONNECTIONS */
#define UM_SIM_QUEUES_MOST 32
#define UM_SIM_DEPTH_DEFAULT 1000

/* How a program can hang on a GPU. All off: streams are independent, and calls wait for the device only. */
struct um_sim_hazards {
	unsigned queues; /* hardware queues, which streams use in turn; 0: a queue for each stream */
	unsigned depth; /* commands that have not begun in a hardware queue (without `queues`: in a stream); a call for
			   one more waits. 0: UM_SIM_QUEUE in a stream, and no limit for workers */
	int locks; /* a call that waits for room or for all work of the device (frees, modules) holds the driver's lock:
		      other calls that enqueue, allocate or free wait, and workers stand still */
	int lazy; /* the first launch of each kernel waits for all work of the device, as loading a module does */
	int reuse; /* the handle of the stream destroyed last is given to the next stream */
	int defer; /* hints on idle streams are left to the driver's worker, too */
	int destroyed; /* for the stand-in driver: a call that names a destroyed stream ends the process */
	unsigned timeout_ms; /* replaces that of struct um_sim_options; 0: no */
	/* Called for a deadlock, with the calls of its cycle, and for a call that names a destroyed stream. Must not
	 * call the device. NULL: no reports. */
	void (*report)(void *user, const char *text);
	void *user;
};

/* Adds a list of `on` (8 queues, depth 1000, locks, lazy, reuse, destroyed), `queues=N`, `depth=N`, `locks`, `lazy`,
 * `reuse`, `defer`, `destroyed`, `timeout=MS`. 0, or -EINVAL: unchanged. */
int um_sim_hazards_parse(const char *text, struct um_sim_hazards *hazards);

struct um_sim_options {
	const struct um_profile *profile; /* copied */
	uint64_t capacity; /* bytes of device memory for managed data; 0: the profile's; floored to 2 MiB */
	int in_core; /* every page counts as resident all the time, as with cudaMalloc and enough memory */
	int backed; /* managed memory is real host memory (programs compute on it); otherwise only reserved addresses */
	int follow_cpu; /* backed: accesses of the program's CPU code are detected at its next call (um_sim_follows) */
	int ledger; /* keep sums per kernel and per allocation: sim_ledger.h */
	int check; /* backed, not followed: kernels with `stray` are compared with their declared ranges:
		      um_sim_checks */
	int poison; /* backed: a discard overwrites its range with 0xdb, so that a wrong discard shows */
	void (*log)(void *user, const char *line); /* event log in the driver's own terms, or NULL */
	void *log_user;
	struct um_activity_sink *watch; /* receives the events that a profiler would record, when each event ends, so
					   not in order of time; kept; must not call the device. NULL: none */
	unsigned timeout_ms; /* real time that a blocking call without a possible end waits for other threads to
			         enqueue work; 0: it fails at once with UM_CUDA_LAUNCH_TIMEOUT */
	uint64_t query_ns; /* cost of a query that returns "not ready", so that polling advances time */
	struct um_gpu
		*beside; /* one more device of the process that this one belongs to, which has no memory yet; NULL:
				  the first of another process */
	unsigned link; /* devices of a process with the same number share the link of the first of them; 0: its own */
	struct um_sim_hazards hazards;
};

/* Opens a simulated device. 0, -ENOMEM, -EINVAL. The caller closes it through its table, which also ends the memory
 * that was allocated on it. */
int um_sim_open(struct um_gpu **out, const struct um_sim_options *options);

extern const struct um_simulator um_sim_simulator; /* "sim" */

/* Enqueues a kernel. CUDA error code. */
int um_sim_run(struct um_gpu *gpu, um_stream stream, const struct um_sim_kernel *kernel);

/* --- calls for whole programs ------------------------------------------------------------------------------------- */

struct um_sim_copy {
	void *to;
	const void *from;
	uint64_t to_pitch, from_pitch; /* bytes from row to row */
	uint64_t bytes, rows; /* of a row */
};

/* Enqueues a copy between any two addresses; data moves when it executes. Managed memory is accessed from the device: a
 * copy engine faults, one block after the other. The call blocks as CUDA documents for pageable host memory; with
 * `wait`, as the calls without Async do. Returns a CUDA error code. */
int um_sim_copy(struct um_gpu *gpu, um_stream stream, const struct um_sim_copy *copy, int wait);

struct um_sim_set {
	void *at;
	uint64_t pitch, width, rows; /* width: elements in a row */
	uint32_t value;
	unsigned size; /* bytes of an element: 1, 2, 4 */
};

/* Enqueues a fill. CUDA error code. */
int um_sim_set(struct um_gpu *gpu, um_stream stream, const struct um_sim_set *set);

/* Enqueues a host function that runs when simulated time reaches it. It must not call the simulator. */
int um_sim_call(struct um_gpu *gpu, um_stream stream, void (*fn)(void *arg), void *arg);

/* cuStreamWriteValue32, and cuStreamWaitValue32 until (int32_t)(*addr - value) >= 0. The library does not call them:
 * programs do, and their streams then stand still until the host writes. */
int um_sim_write_value(struct um_gpu *gpu, um_stream stream, uint32_t *addr, uint32_t value);
int um_sim_wait_value(struct um_gpu *gpu, um_stream stream, uint32_t *addr, uint32_t value);

/* UM_CUDA_OK if all work of the stream has finished, otherwise UM_CUDA_NOT_READY. */
int um_sim_stream_query(struct um_gpu *gpu, um_stream stream);

/* Frees device or managed memory when the stream reaches the command. */
int um_sim_free_async(struct um_gpu *gpu, um_stream stream, void *ptr);

/* Registers memory of the program as pinned; unregisters it. */
int um_sim_host_register(struct um_gpu *gpu, void *ptr, uint64_t bytes);
int um_sim_host_unregister(struct um_gpu *gpu, void *ptr);

enum um_sim_kind { UM_SIM_MANAGED, UM_SIM_DEVICE, UM_SIM_PINNED, UM_SIM_REGISTERED };

struct um_sim_memory {
	enum um_sim_kind kind;
	uint32_t serial; /* unique */
	uint64_t addr, bytes; /* of the allocation */
	int device; /* that allocated it */
	uint64_t used; /* bytes that kernels use, from `addr` */
};

/* The allocation of an address: 0, or -ENOENT if it is not memory of the process's devices. */
int um_sim_memory(struct um_gpu *gpu, const void *ptr, struct um_sim_memory *out);
/* Kernels use only the first `bytes` of the allocation, for callers that ask um_sim_memory what they use. */
void um_sim_use_memory(struct um_gpu *gpu, const void *ptr, uint64_t bytes);

/* Attributes of a managed range. Locations: a device's ordinal, -1 the host, -2 none or mixed. */
struct um_sim_range_attributes {
	int read_mostly, accessed_cpu; /* for the whole range */
	uint32_t accessed_gpu; /* likewise: a bit per device */
	int preferred, prefetched;
};

/* CUDA error code. */
int um_sim_range_attributes(struct um_gpu *gpu, const void *ptr, uint64_t bytes, struct um_sim_range_attributes *out);

/* The program's CPU code reads (or writes) a managed range: waits only for its own faults. Returns a CUDA error
 * code. */
int um_sim_host_touch(struct um_gpu *gpu, void *ptr, uint64_t bytes, uint32_t access);

/* Are CPU accesses detected? Not if the system hides a process's page tables. */
int um_sim_follows(struct um_gpu *gpu);
int um_sim_checks(struct um_gpu *gpu); /* `check` was requested, and the process can read its page tables */

/* Advances simulated time until all enqueued work, workers included, has finished; the program's clock is then there.
 * CUDA error code: UM_CUDA_LAUNCH_TIMEOUT if a stream waits for a value that no command will write. */
int um_sim_sync(struct um_gpu *gpu);

/* Number of reports to hazards.report so far; `text` (unless `size` is 0) receives the first. */
unsigned um_sim_hangs(struct um_gpu *gpu, char *text, size_t size);

/* A module is loaded or unloaded by this call: with hazards.locks it waits for all work of the device. CUDA error
 * code. */
int um_sim_module(struct um_gpu *gpu, const char *call);

/* The program's clock. */
uint64_t um_sim_now(struct um_gpu *gpu);

/* For additional events of the watcher: the program's clock, which then advances by 1 ns, so that consecutive events
 * differ; and the address by which the watcher knows this one, 0 if it is not memory of the device. */
uint64_t um_sim_watch_tick(struct um_gpu *gpu);
uint64_t um_sim_watch_address(struct um_gpu *gpu, uint64_t addr);

/* From now on `sink` (borrowed; NULL: none) receives migrations and faults only, with real addresses, at no cost in
 * time. Called with the simulator locked: must not call the device. */
void um_sim_count_moves(struct um_gpu *gpu, struct um_activity_sink *sink);

/* Marks a point in each of the `n` streams: when the device has reached it in all of them, the sums are saved (peak
 * since the mark reached before). No stream waits for another one. After an error the mark is never reached.
 * um_sim_mark_at reads mark number k; -EAGAIN if it was not reached yet. */
int um_sim_mark(struct um_gpu *gpu, const um_stream *streams, unsigned n);
int um_sim_mark_at(struct um_gpu *gpu, unsigned k, struct um_tally *out);

/* Current sums. */
void um_sim_tally(struct um_gpu *gpu, struct um_tally *out);

/* Several programs in one process, each with a device: from now on, until the device is closed, the calls of its
 * program are made in the order of time with those of the others. Where another one has to go first, `yield` is called
 * with the simulator locked: it lets each of the others make calls, from the same thread, and returns. */
struct um_sim_turns {
	void (*yield)(void *user);
	void *user;
};
void um_sim_take_turns(struct um_gpu *gpu, const struct um_sim_turns *turns);

/* --- extended drivers, for comparison ----------------------------------------------------------------------------- */

/* A listener inside the driver: called at simulated time with the simulator locked; may poke a worker and must not call
 * anything else. */
struct um_sim_listener {
	void (*kernel)(void *user, uint64_t id); /* begins; the same name and operands give the same id */
	void (*fault)(void *user, uint64_t addr); /* the handler visits this block */
	void *user;
};

void um_sim_listen(struct um_gpu *gpu, const struct um_sim_listener *listener); /* borrowed; NULL: none */

/* Number of blocks available without an eviction. */
uint64_t um_sim_room(struct um_gpu *gpu);

/* For a worker: the driver fetches the block around an address, at the cost of a prefetch, when time has reached
 * `after`. `*end`: time of arrival. 0; -ENOENT: no such memory; -EALREADY: resident; -ENOMEM: no room, and no
 * victim. */
int um_sim_pull(struct um_gpu *gpu, uint64_t addr, uint64_t after, uint64_t *end);

/* For a worker: evicts the least recently served block that `may` allows; dead content without a copy. Does not wait
 * for the copy. 0, or -ENOENT: none. */
enum um_sim_verdict { UM_SIM_STAYS, UM_SIM_GOES, UM_SIM_IS_DEAD };
int um_sim_evict(struct um_gpu *gpu, enum um_sim_verdict (*may)(void *user, uint64_t addr), void *user);

/* An extended driver: opened on a simulated device, and closed before it. */
struct um_sim_driver {
	const char *name;
	int (*open)(void **driver, struct um_gpu *gpu); /* 0 or -ENOMEM */
	/* A tensor exists from now on (`there`), or not any more, after this many kernels have run. 0 or -ENOMEM. */
	int (*tensor)(void *driver, uint64_t kernels, const void *ptr, uint64_t bytes, int there);
	void (*close)(void *driver);
};

/* State of one 2 MiB block, for tests and reports: its list and masks over its 32 pages of 64 KiB. */
enum um_sim_list { UM_SIM_NONE, UM_SIM_UNUSED, UM_SIM_DISCARDED, UM_SIM_USED };

struct um_sim_block_state {
	enum um_sim_list list;
	int chunk; /* a GPU root chunk is attached */
	int cpu_chunk; /* a CPU chunk is cached */
	uint32_t gpu, cpu; /* resident, fully, by 64 KiB page */
	uint32_t prefetched; /* of gpu: made resident by a prefetch, not by a fault */
	uint32_t discarded;
	uint32_t mapped; /* mapped on the GPU */
	uint32_t remote; /* mapped on the GPU, resident on the host */
};

/* 0, or -ENOENT if it is not managed memory. */
int um_sim_block(struct um_gpu *gpu, const void *ptr, struct um_sim_block_state *out);

#endif
