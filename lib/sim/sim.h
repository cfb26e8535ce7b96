/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.h - the simulated GPU: the table filled from a profile
 *
 * in    the calls of gpu.h, and um_sim_run() for a kernel
 * out   residency, faults, migrations, and the time that all of it takes, in integer nanoseconds
 * owns  the simulated device: memory, lists, engines, streams, events, host threads
 *
 * Deterministic: no wall clock, no randomness, ties broken by sequence number; the same calls give the same log, byte
 * for byte. The app's thread (any thread that calls, under one internal lock) has one simulated clock: launches cost it
 * nothing until a stream holds UM_SIM_QUEUE commands, then it waits for room as a real launch queue makes it. Calls
 * that the driver serves on the calling thread (hints, frees) cost it their time. Library workers have a clock each.
 */
#ifndef UM_SIM_SIM_H
#define UM_SIM_SIM_H

#include "gpu/gpu.h"
#include "model/activity.h"
#include "model/profile.h"
#include "model/tally.h"

#define UM_SIM_QUEUE 1024

struct um_sim_options {
	const struct um_profile *profile; /* copied */
	uint64_t capacity; /* bytes of device memory for managed data; 0: the profile's; floored to 2 MiB */
	int in_core; /* every page counts as resident for ever: what cudaMalloc and enough memory would give */
	int backed; /* managed memory is real host memory (programs compute on it); else reserved addresses only */
	int follow_cpu; /* backed: what the app's CPU code touches is noticed, at its next call (um_sim_follows) */
	int ledger; /* keep sums per kernel and per allocation: sim_ledger.h */
	int check; /* backed, not followed: kernels with `stray` are compared with what they were told: um_sim_checks */
	int poison; /* backed: a discard overwrites its range with 0xdb: a wrong discard shows */
	void (*log)(void *user, const char *line); /* event log in the driver's own terms, or NULL */
	void *log_user;
	struct um_activity_sink *watch; /* told what a profiler would record, once it is known when a thing ends, so not
	                                   in order of time; kept; must not call the device. NULL: nobody */
	unsigned patience_ms; /* how long, in real time, a blocking call that nothing enqueued will ever end waits for
	                         other threads to enqueue more; 0: it ends at once, with UM_CUDA_LAUNCH_TIMEOUT */
	uint64_t query_ns; /* what a query that finds something not ready costs its caller: who polls sees time pass */
};

/* Pages of the system that host code in a kernel's name touched: in no range that the kernel was told to touch, or
 * written in a range that it was told to read. */
struct um_sim_stray {
	uint64_t addr, bytes;
	int declared; /* for reading */
	int written;
};

struct um_sim_kernel {
	const char *name; /* copied into the log only; may be NULL */
	uint64_t ns; /* compute time with everything resident */
	const struct um_touch *access; /* copied */
	uint32_t n_access;
	enum um_pattern pattern;
	int announced; /* where something was announced on the stream, that counts instead of ns, access and pattern */
	int timed; /* ns counts all the same: it takes longer or shorter than was said */
	void (*fn)(void *arg); /* run (on the host) when the kernel executes, or NULL: when simulated time has reached
	                          it and its faults are served. Must not call back into the simulator */
	void *arg;
	void (*stray)(void *arg, const struct um_sim_stray *s); /* with `check`: called after fn for each, and at last
	                                                           with NULL; as fn. May be NULL */
};

/* Opens a simulated device. 0, -ENOMEM, -EINVAL. The caller closes it through its table. */
int um_sim_open(struct um_gpu **out, const struct um_sim_options *options);

/* Enqueues a kernel. CUDA error code. */
int um_sim_run(struct um_gpu *gpu, um_stream stream, const struct um_sim_kernel *kernel);

/* --- what whole programs need besides ---------------------------------------------------------------------------- */

struct um_sim_copy {
	void *to;
	const void *from;
	uint64_t to_pitch, from_pitch; /* bytes from row to row */
	uint64_t bytes, rows; /* of a row */
};

/* Enqueues a copy between any two places; data moves when it executes. Managed memory is met from the device's side: a
 * copy engine faults, one block after the other. The call blocks as CUDA documents for pageable host memory; with
 * `wait`, as the calls without Async do. CUDA error code. */
int um_sim_copy(struct um_gpu *gpu, um_stream stream, const struct um_sim_copy *copy, int wait);

struct um_sim_set {
	void *at;
	uint64_t pitch, width, rows; /* width: elements in a row */
	uint32_t value;
	unsigned size; /* bytes of an element: 1, 2, 4 */
};

/* Enqueues a fill. CUDA error code. */
int um_sim_set(struct um_gpu *gpu, um_stream stream, const struct um_sim_set *set);

/* Enqueues a call of host code, run when simulated time has reached it. It must not call back into the simulator. */
int um_sim_call(struct um_gpu *gpu, um_stream stream, void (*fn)(void *arg), void *arg);

/* UM_CUDA_OK if all work of the stream is over, UM_CUDA_NOT_READY. */
int um_sim_stream_query(struct um_gpu *gpu, um_stream stream);

/* Frees device or managed memory when the stream gets there. */
int um_sim_free_async(struct um_gpu *gpu, um_stream stream, void *ptr);

/* The program's own memory becomes pinned, and is no longer. */
int um_sim_host_register(struct um_gpu *gpu, void *ptr, uint64_t bytes);
int um_sim_host_unregister(struct um_gpu *gpu, void *ptr);

enum um_sim_kind { UM_SIM_MANAGED, UM_SIM_DEVICE, UM_SIM_PINNED, UM_SIM_REGISTERED };

struct um_sim_memory {
	enum um_sim_kind kind;
	uint32_t serial; /* different for each */
	uint64_t addr, bytes; /* of the allocation */
};

/* What memory an address belongs to: 0, or -ENOENT where it is none of the device's. */
int um_sim_memory(struct um_gpu *gpu, const void *ptr, struct um_sim_memory *out);

/* What the program has said about a managed range. Places: 0 the device, -1 the host, -2 none or not one for all. */
struct um_sim_told {
	int read_mostly, accessed_gpu, accessed_cpu; /* all of it */
	int preferred, prefetched;
};

/* CUDA error code. */
int um_sim_told(struct um_gpu *gpu, const void *ptr, uint64_t bytes, struct um_sim_told *out);

/* The app's CPU code reads (or writes) a managed range: waits for nothing but its own faults. CUDA error code. */
int um_sim_host_touch(struct um_gpu *gpu, void *ptr, uint64_t bytes, uint32_t access);

/* Is the CPU followed? Not where the system keeps a process's page tables from it. */
int um_sim_follows(struct um_gpu *gpu);
int um_sim_checks(struct um_gpu *gpu); /* `check` was asked for, and this system shows a process its page tables */

/* Lets simulated time pass until all enqueued work, workers included, has finished; the app's clock then stands
 * there. CUDA error code: UM_CUDA_LAUNCH_TIMEOUT where a stream waits for a value that nobody will write. */
int um_sim_sync(struct um_gpu *gpu);

/* The app's clock. */
uint64_t um_sim_now(struct um_gpu *gpu);

/* For what the watcher is told besides: the app's clock, which then goes on by 1 ns, so that what is told in turn can
 * be told apart; and the address by which the watcher is told of this one, or 0 where no memory of the device is. */
uint64_t um_sim_watch_tick(struct um_gpu *gpu);
uint64_t um_sim_watch_address(struct um_gpu *gpu, uint64_t addr);

/* From now on `sink` (borrowed; NULL: nobody) is told of migrations and faults alone, by their real addresses, and no
 * time passes for it. Called with the simulator locked: must not call the device. */
void um_sim_count_moves(struct um_gpu *gpu, struct um_activity_sink *sink);

/* Marks a point in `stream`: when the device gets there, the sums so far are kept (peak since the mark before). The
 * k-th mark to be reached is read back by um_sim_mark_at; -EAGAIN if it was not reached yet. */
int um_sim_mark(struct um_gpu *gpu, um_stream stream);
int um_sim_mark_at(struct um_gpu *gpu, unsigned k, struct um_tally *out);

/* Sums now (after all that has been simulated so far). */
void um_sim_tally(struct um_gpu *gpu, struct um_tally *out);

/* --- a driver that does more than the real one, to compare with --------------------------------------------------- */

/* Who listens inside the driver: called at simulated time with the simulator locked, may poke a worker and must not
 * call anything else. */
struct um_sim_listener {
	void (*kernel)(void *user, uint64_t id); /* begins; the same name and operands give the same id */
	void (*fault)(void *user, uint64_t addr); /* the handler visits this block */
	void *user;
};

void um_sim_listen(struct um_gpu *gpu, const struct um_sim_listener *listener); /* borrowed; NULL: nobody */

/* Blocks that can be had without taking anything away. */
uint64_t um_sim_room(struct um_gpu *gpu);

/* For a worker: the driver fetches the block around an address, at the cost of a prefetch, when time has reached
 * `after`. `*end`: when it is there. 0; -ENOENT: no such memory; -EALREADY: it is there; -ENOMEM: no room, and nothing
 * to evict. */
int um_sim_pull(struct um_gpu *gpu, uint64_t addr, uint64_t after, uint64_t *end);

/* For a worker: evicts the block whose last service is longest ago among those that `may` go; without a copy what is
 * dead. Does not wait for the copy. 0, or -ENOENT: none. */
enum um_sim_verdict { UM_SIM_STAYS, UM_SIM_GOES, UM_SIM_IS_DEAD };
int um_sim_evict(struct um_gpu *gpu, enum um_sim_verdict (*may)(void *user, uint64_t addr), void *user);

/* One that can be opened on a simulated device, and closed before that is. */
struct um_sim_driver {
	const char *name;
	int (*open)(void **driver, struct um_gpu *gpu); /* 0 or -ENOMEM */
	/* A tensor is there from now on (`there`), or no more, once so many kernels have run. 0 or -ENOMEM. */
	int (*tensor)(void *driver, uint64_t kernels, const void *ptr, uint64_t bytes, int there);
	void (*close)(void *driver);
};

/* State of one 2 MiB block, for tests and reports: which list it is on and masks over its 32 64 KiB pages. */
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

/* 0, or -ENOENT where there is no managed memory. */
int um_sim_block(struct um_gpu *gpu, const void *ptr, struct um_sim_block_state *out);

#endif
