/* SPDX-License-Identifier: Apache-2.0
 *
 * state.h - internal state of the simulated device, shared by the files of lib/sim
 *
 * Memory is cut into blocks of 2 MiB with 32 pages of 64 KiB; page sets are 32-bit masks. A block has at most one root
 * chunk on the device. Time is a discrete-event loop over streams and workers (loop.c); engines, the fault worker, the
 * prefetch worker and the VA-space lock are represented by the time until which they are busy.
 *
 * Invariants of every block, outside the functions that change it:
 *     map and prefetched are subsets of gpu, rw and late of map; remote and cmap are subsets of cpu; remote is disjoint
 *     from gpu
 *     a page is in both gpu and cpu only if it is read-mostly
 *     a page in both disc and cmap is mapped read-only on the CPU
 *     gpu != 0 implies a chunk; list != NONE if and only if there is a chunk
 */
#ifndef UM_SIM_STATE_H
#define UM_SIM_STATE_H

#include "base/vec.h"
#include "sim/node.h"
#include "sim/sim.h"
#include "sim/thrash.h"

#include <pthread.h>

#define UM_SIM_PAGE 65536u /* bytes of a page here: the driver's big page */
#define UM_SIM_PAGES 32u /* in a block */
#define UM_SIM_SUBPAGES 16u /* 4 KiB pages in a page: a page whose 4 KiB pages fault one by one has this many faults */
#define UM_SIM_BATCH 256u /* fault entries of a batch: uvm_perf_fault_batch_count */
#define UM_SIM_FOREVER UINT64_MAX
#define UM_SIM_HANG_TEXT 1500

struct um_sim_mem;
struct um_ledger; /* ledger.h */

/* Cause of a migration, in the driver's terms. */
enum um_sim_cause { UM_SIM_USER, UM_SIM_COHERENCE, UM_SIM_EVICTION };

/* The pages of a fault: the first 4 KiB of each, or all of it. The driver adds the rest to the fault. */
struct um_sim_faulted {
	uint32_t pages, each; /* each: of them, faulted for each of their 4 KiB */
};

/* One copy: contiguous, and of one cause. */
struct um_sim_segment {
	uint32_t off, bytes; /* in its block */
	int added; /* by the driver to a fault */
};

struct um_sim_block {
	struct um_sim_block *prev, *next; /* on its list, oldest first */
	struct um_sim_mem *mem;
	struct um_sim_thrash *thrash; /* NULL until two processors have alternated on it */
	uint64_t tracker; /* ns: end of its last queued device work */
	uint64_t remote_at; /* ns: from then on `remote` is in effect */
	uint64_t late_until; /* ns: from then on the mapping of `late` pages is in effect */
	uint64_t moved_at; /* ns: last event of thrash.c */
	uint64_t evicted_at; /* ns: last eviction */
	uint32_t all; /* pages that the allocation has here */
	uint32_t gpu, cpu; /* resident */
	uint32_t prefetched; /* of gpu: made resident by a prefetch, not by a fault */
	uint32_t map, rw; /* mapped on the GPU, writable there */
	uint32_t remote; /* mapped on the GPU, resident on the host */
	uint32_t evicted; /* mapped on the GPU when it was last evicted */
	uint32_t late; /* of map: in flight; cleared at the next access after arrival */
	uint32_t cmap, cro; /* mapped on the CPU; of these, read-only since they were duplicated */
	uint32_t stale; /* unmapped on the CPU, but not yet in the process's page tables (cpu_access.c) */
	uint32_t disc; /* discarded */
	uint32_t read_mostly, accessed_by, pref_gpu, pref_cpu; /* advice */
	uint32_t cuts; /* a piece begins at each of these pages: cut by advice, permanently; 0: full-size */
	uint32_t accessed_cpu, sent_gpu, sent_cpu; /* recorded, without effect: see range_attributes.c */
	uint8_t list; /* enum um_sim_list */
	uint8_t chunk; /* a root chunk is attached */
	uint8_t cpu_chunk; /* a host chunk is cached: until the memory is freed */
	uint8_t dma; /* the host chunk is mapped for the device */
	uint8_t clean; /* the chunk came scrubbed */
	uint8_t whole_once; /* was fully resident in this chunk */
	uint8_t moved_by; /* its processor, as thrash.c names it; 0: none */
};

struct um_sim_mem {
	enum um_sim_kind kind;
	uint32_t serial; /* its name in the log */
	uint64_t addr, bytes, used; /* as returned to the program; um_sim_use_memory */
	void *span; /* the mapping; NULL: memory of the program */
	size_t span_bytes;
	uint64_t chunks; /* DEVICE: root chunks taken */
	struct um_sim_shared_chunk *shared_chunk; /* DEVICE: the one that it lies in; NULL: it has chunks of its own */
	uint32_t row; /* of the ledger */
	uint64_t watch_addr; /* the address that the watcher sees: the same in every run */
	uint32_t n; /* MANAGED: blocks */
	struct um_sim_block *block;
	uint64_t *seen; /* a hash of each system page, when it was last known; NULL: kernels are not checked */
	uint64_t *odd; /* a bit per block: not completely mapped and writable on the GPU, or late */
	struct um_sim_share *share; /* NULL: of this device alone */
	int borrowed; /* `span` and `seen` are those of its twin on the device that allocated it */
};

struct um_sim_ring { /* a list of chunks in order of last service */
	struct um_sim_block *head, *tail;
};

struct um_sim_span {
	uint64_t from, to;
	int evicts; /* the copy of an eviction */
};

enum um_sim_engine_id { UM_SIM_H2D, UM_SIM_D2H, UM_SIM_MEMSET, UM_SIM_ENGINES };

struct um_sim_engine {
	uint64_t free_at; /* ns; other devices of the link move it on */
	UM_VEC(struct um_sim_span) busy; /* copies booked, ascending, disjoint */
	size_t first; /* spans before it have ended */
};

/* --- streams ---------------------------------------------------------------------------------------------------- */

struct um_sim_record {
	uint64_t at; /* ns: when the device reached it */
	int done; /* reached */
	int hint; /* it comes after a hint */
	unsigned refs; /* references of the event, and of commands and workers that wait */
};

struct um_sim_event {
	struct um_sim_record *last; /* NULL: never recorded */
	unsigned flags;
};

enum um_sim_cmd_kind {
	UM_SIM_CMD_KERNEL, /* copies and fills, too */
	UM_SIM_CMD_HINT,
	UM_SIM_CMD_RECORD,
	UM_SIM_CMD_WAIT_EVENT,
	UM_SIM_CMD_WRITE_VALUE,
	UM_SIM_CMD_WAIT_VALUE,
	UM_SIM_CMD_MARK,
	UM_SIM_CMD_CALL,
	UM_SIM_CMD_FREE
};

struct um_sim_cmd {
	enum um_sim_cmd_kind kind;
	int running; /* KERNEL: begun */
	uint64_t seq; /* order among equal times */
	uint64_t at; /* ns: enqueued */
	union {
		struct um_sim_walk *kernel;
		struct um_sim_hint *hint;
		struct um_sim_record *record;
		struct {
			uint32_t *addr;
			uint32_t value;
		} v;
		struct {
			void (*fn)(void *arg);
			void *arg;
		} call;
		uint64_t addr; /* FREE */
		size_t mark; /* index */
	};
};

/* A point in several streams. */
struct um_sim_mark {
	struct um_tally tally; /* when it was reached */
	unsigned streams; /* that have not reached it */
};

struct um_sim_stream {
	struct um_sim_stream *next; /* in order of creation */
	UM_VEC(struct um_sim_cmd) queue;
	size_t first; /* of the queue */
	uint64_t ready; /* ns: end of the last begun command */
	uint64_t popped; /* sequence number of the last finished command */
	uint64_t thread; /* the thread whose default stream it is; 0: none */
	unsigned waiters; /* threads that hold a pointer to it while others run */
	uint64_t gate_ns; /* time waited for values and for prefetches since the last kernel */
	int hinted; /* its last command, but for records and waits, is a hint */
	UM_VEC(struct um_touch) touches; /* announced; see gpu.h */
	uint64_t announced_ns; /* for the next kernel */
	enum um_pattern announced_pattern;
	int announced;
	uint32_t serial;
	void *handle; /* what the program knows it by; NULL: destroyed */
	int alone; /* non-blocking: not ordered with the default stream */
	int gone; /* destroyed, ends when its queue is empty */
};

/* A simulated helper thread. */
enum um_sim_lane_state {
	UM_SIM_ASLEEP,
	UM_SIM_WATCHING, /* asleep until a stream writes a number */
	UM_SIM_READY,
	UM_SIM_WAITING,
	UM_SIM_STEPPING,
	UM_SIM_STOPPED
};

/* A call that does not return yet. */
enum um_sim_waits {
	UM_SIM_WAITS_LOCK, /* of the driver */
	UM_SIM_WAITS_FINISHED, /* for all work of the device, holding that lock */
	UM_SIM_WAITS_ROOM, /* in a queue, holding the lock */
	UM_SIM_WAITS_DEVICE,
	UM_SIM_WAITS_STREAM,
	UM_SIM_WAITS_EVENT
};

struct um_sim_lane;
struct um_sim_waiter {
	struct um_sim_waiter *next;
	const char *call;
	long thread;
	enum um_sim_waits waits;
	const struct um_sim_stream *stream; /* or NULL */
	const struct um_sim_record *record; /* EVENT */
	const struct um_sim_lane *lane; /* the worker that calls, or NULL */
};

struct um_sim_lane {
	struct um_sim_lane *next; /* in order of start */
	struct um_worker *worker;
	enum um_sim_lane_state state;
	int poked; /* while stepping */
	uint64_t at; /* ns: its clock */
	uint64_t seq;
	struct um_sim_record *record; /* WAITING: for this record */
	struct um_sim_stream *full; /* its last call waits for room there; NULL: no */
	struct um_sim_waiter waiter; /* then */
};

/* --- hints -------------------------------------------------------------------------------------------------------- */

enum um_sim_hint_kind { UM_SIM_PREFETCH = 1, UM_SIM_DISCARD = 2, UM_SIM_RENEW = 3 /* discard and prefetch */ };

struct um_sim_range {
	uint64_t addr, bytes;
	int to_cpu;
	unsigned device; /* else */
};

struct um_sim_hint {
	enum um_sim_hint_kind kind;
	size_t n;
	struct um_sim_range *range;
};

/* --- the device --------------------------------------------------------------------------------------------------- */

struct um_sim {
	struct um_gpu gpu; /* first */
	struct um_sim_node *node;
	struct um_profile profile;
	struct um_sim_options opt;
	uint64_t kappa, kappa_evict; /* millionths */

	struct um_sim_program program;
	uint64_t now; /* ns: all earlier events have happened */
	uint64_t app; /* ns: the program's clock */
	struct um_sim_lane *lanes;
	struct um_sim_stream *next_op; /* the stream with the latest announcement, while it exists; or NULL */
	struct um_sim_stream *streams; /* the first is the default stream */
	uint64_t destroyed_until; /* ns: end of destroyed streams' work */
	uint64_t destroyed_order; /* the same for those that the default stream is ordered with */
	uint32_t stream_serial;

	uint64_t *hardware; /* [queues] ns: when its last command began; NULL: no hardware queues */
	struct um_sim_waiter *waiters; /* the latest first */
	struct um_sim_waiter *holder; /* of the driver's lock: one that waits */
	unsigned lanes_full; /* workers that wait for room */
	UM_VEC(char *) loaded; /* names of kernels */
	UM_VEC(void *) handles; /* all that were given to streams; used again: handles_free */
	UM_VEC(void *) handles_free;
	unsigned hangs; /* reported */
	struct {
		size_t n;
		char text[UM_SIM_HANG_TEXT];
	} hang; /* the first */
	int error; /* sticky CUDA error */

	UM_VEC(struct um_sim_mem *) mem; /* by address */
	UM_VEC(struct um_sim_mem *) mem_order; /* by serial */
	uint64_t chunks, chunks_free; /* all root chunks, and the free ones */
	struct um_sim_shared_chunk *filling; /* by small allocations of device memory; NULL: none */
	struct um_sim_ring list[UM_SIM_USED + 1];
	uint64_t resident; /* blocks with a page on the GPU */
	uint64_t prefetched; /* of these, with a prefetched page */
	uint64_t resident_data; /* bytes of allocations in resident blocks */

	struct um_sim_engine engine[UM_SIM_ENGINES];
	uint64_t fault_free, worker_free; /* ns: fault worker, prefetch worker */
	uint64_t host_from, host_until; /* ns: a prefetch to the host keeps other calls waiting (profile.serial_host) */
	uint64_t readers_until, writer_until; /* ns: the VA-space lock is held for reading, for writing */
	UM_VEC(struct um_sim_pin) pins; /* oldest first */
	uint64_t unpin_at; /* ns: next run of the worker that unpins */
	uint64_t lapse; /* ns between events of thrashing */
	int8_t lapse_votes; /* for a longer or a shorter one */

	int follow; /* CPU accesses are detected: cpu_access.c */
	int check; /* kernels are compared with their declared ranges: check.c */

	struct um_ledger *ledger; /* or NULL */
	uint64_t correlation; /* of the last call reported to the watcher */
	uint64_t watch_end; /* addresses reported to the watcher are below it */
	const struct um_sim_listener *listener; /* or NULL */
	struct um_activity_sink *counting; /* um_sim_count_moves; or NULL */
	struct um_tally tally; /* ns, resident_bytes filled when taken */
	uint64_t peak, prefetched_peak; /* blocks, since the last mark */
	UM_VEC(struct um_sim_mark) marks;
};

static inline struct um_sim *um_sim_of(struct um_gpu *gpu)
{
	return (struct um_sim *)gpu;
}

static inline uint64_t um_sim_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline unsigned um_sim_count(uint32_t pages)
{
	return (unsigned)__builtin_popcount(pages);
}

/* The stream's next command, or NULL. */
static inline struct um_sim_cmd *um_sim_head(const struct um_sim_stream *s)
{
	return s->first < s->queue.n ? &s->queue.at[s->first] : NULL;
}

/* The clock of the caller. */
static inline uint64_t *um_sim_clock(struct um_sim *sim)
{
	return sim->node->lane ? &sim->node->lane->at : &sim->app;
}

static inline unsigned um_sim_device(const struct um_sim *sim)
{
	return (unsigned)sim->gpu.caps.device;
}

/* engine.c: books a copy or memset; returns its end. */
uint64_t um_sim_engine_book(struct um_sim *sim, enum um_sim_engine_id id, uint64_t from, uint64_t work);
uint64_t um_sim_engine_evict(struct um_sim *sim, uint64_t from, uint64_t work); /* likewise, an eviction's copy */
/* Duration of a copy: of `segments` contiguous runs, or in pieces of 4 KiB. */
uint64_t um_sim_copy_ns(const struct um_sim *sim, enum um_sim_engine_id id, uint64_t bytes, uint64_t segments,
			int pieces);

/* log.c: one line; nothing without a log function. */
void um_sim_log(struct um_sim *sim, uint64_t at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void um_sim_log_block(struct um_sim *sim, uint64_t at, const char *what, const struct um_sim_block *b, uint64_t n);

/* allocations.c */
struct um_sim_mem *um_sim_mem_find(struct um_sim *sim, uint64_t addr);
void um_sim_mem_release(struct um_sim *sim, struct um_sim_mem *m);
int um_sim_malloc_managed(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags);
int um_sim_malloc(struct um_gpu *gpu, void **ptr, size_t bytes);
int um_sim_free(struct um_gpu *gpu, void *ptr);
void um_sim_free_now(struct um_sim *sim, uint64_t addr);
int um_sim_mem_info(struct um_gpu *gpu, size_t *free_bytes, size_t *total_bytes);
int um_sim_host_alloc(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags);
int um_sim_host_free(struct um_gpu *gpu, void *ptr);
/* Pages of block `i` inside [off, off + bytes) of `m`, rounded outward; or inward. */
uint32_t um_sim_pages_out(const struct um_sim_mem *m, uint32_t i, uint64_t off, uint64_t bytes);
uint32_t um_sim_pages_in(const struct um_sim_mem *m, uint32_t i, uint64_t off, uint64_t bytes);

/* residency.c. `*t` is the CPU time of the caller, and advances. */
void um_sim_block_changed(struct um_sim_block *b); /* after map or rw changed */
void um_sim_gpu_set(struct um_sim *sim, struct um_sim_block *b, uint32_t pages);
void um_sim_list_put(struct um_sim *sim, struct um_sim_block *b, enum um_sim_list list);
void um_sim_used(struct um_sim *sim, struct um_sim_block *b); /* a service with the GPU as destination has ended */
/* Pages left the GPU, which had the pages `had`: a block whose last page left is unused. It keeps its place in the list
 * if it was unused before. */
void um_sim_emptied(struct um_sim *sim, struct um_sim_block *b, uint32_t had);
/* Takes a root chunk, evicting if necessary: 0 or UM_CUDA_NO_MEMORY. `*ready`: when the device may write it.
 * `*clean`. */
int um_sim_chunk_take(struct um_sim *sim, uint64_t *t, uint64_t *ready, int *clean);
void um_sim_block_drop(struct um_sim *sim, struct um_sim_block *b); /* memory is freed */
/* `f`: the fault that causes it; NULL: not a fault. */
int um_sim_to_gpu(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, enum um_sim_cause cause,
		  const struct um_sim_faulted *f, uint64_t *t);
void um_sim_to_cpu(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, enum um_sim_cause cause,
		   const struct um_sim_faulted *f, uint64_t *t);
/* The copies that move `pages`: a new one begins after a gap, and where the cause changes. Returns their number. */
unsigned um_sim_segments(uint32_t pages, const struct um_sim_faulted *f, struct um_sim_segment out[2 * UM_SIM_PAGES]);
void um_sim_cpu_unmap(struct um_sim *sim, struct um_sim_block *b, uint32_t pages);

/* fault.c */
/* The density prefetcher: pages of `all` (adjacent, the last one has `last` of UM_SIM_SUBPAGES) to serve with
 * `faulted`, given those resident at the destination. */
uint32_t um_sim_density(uint32_t all, uint32_t resident, uint32_t faulted, unsigned last);
/* The piece of the block that has the lowest of `pages`: to the driver a block of its own. */
uint32_t um_sim_piece(const struct um_sim_block *b, uint32_t pages);
uint32_t um_sim_stay_away(const struct um_sim_block *b, uint32_t pages); /* those that a fault leaves on the host */
/* Pages that a fault on `faulted`, all in one piece, brings to the GPU; that a fault on `page` brings to the CPU. */
uint32_t um_sim_grow_gpu(const struct um_sim *sim, const struct um_sim_block *b, uint32_t faulted);
uint32_t um_sim_grow_cpu(const struct um_sim *sim, const struct um_sim_block *b, uint32_t faulted);
int um_sim_adds_away(const struct um_sim *sim); /* does a fault away from the preferred location bring more pages? */
void um_sim_map(struct um_sim_block *b, uint32_t pages); /* in effect when the block's queued work is complete */
void um_sim_arrive(struct um_sim_block *b, uint64_t t); /* at time `t`: late pages may have arrived */
/* The pages of `want` (of those, `write` to be written) that need a fault at time `t`. */
uint32_t um_sim_need(const struct um_sim_block *b, uint32_t want, uint32_t write, uint64_t t);
/* Of `need`, the lowest pages that one visit of up to `k` faulting pages serves, and their fault entries, at most
 * `room`: one for a page, UM_SIM_SUBPAGES for pages in `each`. */
uint32_t um_sim_visit_pages(const struct um_sim_block *b, uint32_t need, uint32_t write, unsigned k, unsigned room,
			    unsigned *entries, uint32_t *each);
int um_sim_visit(struct um_sim *sim, struct um_sim_block *b, const struct um_sim_faulted *f, uint32_t write,
		 uint64_t *t);

/* copy.c: the end of a walk of a copy or a fill; returns when that has finished. */
struct um_sim_xfer;
uint64_t um_sim_xfer_run(struct um_sim *sim, const struct um_sim_xfer *x, uint64_t t, uint64_t remote_ns);
void um_sim_xfer_watch(struct um_sim *sim, const struct um_sim_stream *s, const struct um_sim_xfer *x,
		       uint64_t correlation, uint64_t begin, uint64_t end);

/* order.c */
/* Time at which the streams that the command is ordered with let it begin; UM_SIM_FOREVER: blocked. */
uint64_t um_sim_order_due(const struct um_sim *sim, const struct um_sim_stream *s, const struct um_sim_cmd *c);
/* The first of them that blocks it, or NULL. */
const struct um_sim_stream *um_sim_order_blocker(const struct um_sim *sim, const struct um_sim_stream *s,
						 const struct um_sim_cmd *c);
/* At time `t`, is there unfinished work in the stream, or in one that it is ordered with? */
int um_sim_busy(const struct um_sim *sim, const struct um_sim_stream *s, uint64_t t);
/* Is any command up to sequence number `seq` still to begin there? End of begun work? */
int um_sim_behind(const struct um_sim *sim, const struct um_sim_stream *s, uint64_t seq);
uint64_t um_sim_order_ready(const struct um_sim *sim, const struct um_sim_stream *s);
struct um_sim_stream *um_sim_thread_stream(struct um_sim *sim); /* the calling thread's default stream, or NULL */

/* wait.c: lets something happen, if necessary by a call of another thread: 1; 0: nothing will. The caller holds no
 * pointer that another thread may free. */
int um_sim_progress(struct um_sim *sim);
void um_sim_notify(struct um_sim *sim);

/* hazards.c */
int um_sim_hazards_open(struct um_sim *sim); /* 0, -ENOMEM, -EINVAL */
void um_sim_hazards_close(struct um_sim *sim);
int um_sim_hazards_on(const struct um_sim *sim);
unsigned um_sim_queue_of(const struct um_sim *sim, const struct um_sim_stream *s); /* its hardware queue */
/* The stream of the oldest command on the stream's hardware queue that has not begun, if it is older than `c`. */
const struct um_sim_stream *um_sim_queue_blocker(const struct um_sim *sim, const struct um_sim_stream *s,
						 const struct um_sim_cmd *c);
/* Time at which the hardware queue lets a command begin; UM_SIM_FOREVER: blocked. */
uint64_t um_sim_queue_due(const struct um_sim *sim, const struct um_sim_stream *s, const struct um_sim_cmd *c);
void um_sim_queue_begun(struct um_sim *sim, const struct um_sim_stream *s, uint64_t t);
int um_sim_queue_is_full(const struct um_sim *sim, const struct um_sim_stream *s);
int um_sim_load_kernel(struct um_sim *sim, const char *name); /* before its first launch. CUDA error code */
int um_sim_handle_take(struct um_sim *sim, struct um_sim_stream *s); /* for a new stream: 0 or -ENOMEM */
void um_sim_handle_give(struct um_sim *sim, struct um_sim_stream *s);

/* hazard_lock.c. As um_sim_enter, with the call's name for reports. */
void um_sim_enter_call(struct um_sim *sim, const char *call); /* needs the driver's lock: waits for it */
void um_sim_enter_free(struct um_sim *sim, const char *call); /* does not need it */
const char *um_sim_call_name(void); /* the thread's latest */
/* While a call waits. What `stream` and `record` point to must stay. */
void um_sim_waiter_add(struct um_sim *sim, struct um_sim_waiter *w, enum um_sim_waits waits,
		       const struct um_sim_stream *stream, const struct um_sim_record *record);
void um_sim_waiter_remove(struct um_sim *sim, struct um_sim_waiter *w);
int um_sim_finish_locked(struct um_sim *sim); /* um_sim_finish, holding the driver's lock */
void um_sim_lane_fill(struct um_sim *sim, struct um_sim_lane *l, struct um_sim_stream *s); /* it enqueued there */
void um_sim_lane_release(struct um_sim *sim, struct um_sim_lane *l);
void um_sim_lanes_resume(struct um_sim *sim);
int um_sim_lane_stands(const struct um_sim *sim, const struct um_sim_lane *l); /* still: until a call returns */

/* hazard_report.c: without hazards these do nothing. */
void um_sim_report_deadlock(struct um_sim *sim); /* names the calls of the cycle */
void um_sim_report_handle(struct um_sim *sim); /* the current call names no stream */

/* kernel.c */
struct um_sim_walk *um_sim_walk_new(const struct um_sim_kernel *kernel);
void um_sim_walk_xfer(struct um_sim_walk *w, struct um_sim_xfer *x); /* takes ownership */
void um_sim_walk_called(struct um_sim_walk *w, uint64_t correlation);
/* The memory is being freed. */
void um_sim_walk_forget(struct um_sim_walk *w, const struct um_sim_mem *m);
void um_sim_walk_free(struct um_sim_walk *w);
/* Continues a kernel at time `t`; begins it if it has not begun. Returns the time of its next step; *done: it ended. */
uint64_t um_sim_walk_step(struct um_sim *sim, struct um_sim_stream *s, struct um_sim_cmd *c, uint64_t t, int *done);

/* hint.c */
int um_sim_prefetch(struct um_gpu *gpu, const void *ptr, size_t bytes, struct um_location to, unsigned flags,
		    um_stream stream);
int um_sim_prefetch_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, struct um_location *locs,
			  size_t *loc_idxs, size_t n_locs, unsigned long long flags, um_stream stream);
int um_sim_discard_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, unsigned long long flags,
			 um_stream stream);
int um_sim_renew_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, struct um_location *locs,
		       size_t *loc_idxs, size_t n_locs, unsigned long long flags, um_stream stream);
int um_sim_advise(struct um_gpu *gpu, const void *ptr, size_t bytes, int advice, struct um_location where);
/* Does the per-block work of a hint from time `t`; `*cpu`: end for its thread, `*end`: end for its stream. */
int um_sim_hint_run(struct um_sim *sim, const struct um_sim_hint *h, uint64_t t, uint64_t *cpu, uint64_t *end);
void um_sim_hint_free(struct um_sim_hint *h);

/* range_attributes.c: a managed range was prefetched. */
void um_sim_record_prefetch(struct um_sim *sim, const struct um_sim_range *r);

/* host.c: the CPU accesses pages, beginning at that offset of the memory. */
void um_sim_cpu_touch(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, uint64_t from, int write,
		      uint64_t *t);

/* ledger.c: without a ledger all but the first, the second, and the step do nothing. */
struct um_ledger *um_sim_ledger_new(void);
void um_sim_ledger_free(struct um_ledger *l);
struct um_sim_ledger_entry {
	const char *name;
	int xfer, begun, computes;
};
/* A step of a kernel took `ns`, and made this difference to the sums. */
void um_sim_ledger_step(struct um_sim *sim, const struct um_sim_ledger_entry *e, const struct um_tally *before,
			uint64_t ns);
void um_sim_ledger_call(struct um_sim *sim);
void um_sim_ledger_born(struct um_sim *sim, struct um_sim_mem *m);
void um_sim_ledger_gone(struct um_sim *sim, const struct um_sim_mem *m);
void um_sim_ledger_moved(struct um_sim *sim, const struct um_sim_mem *m, int to_device, uint64_t bytes);
void um_sim_ledger_evicted(struct um_sim *sim, const struct um_sim_mem *m);
void um_sim_ledger_faulted(struct um_sim *sim, const struct um_sim_mem *m, uint64_t faults, uint64_t stall_ns);
void um_sim_ledger_cpu_fault(struct um_sim *sim, const struct um_sim_mem *m, uint64_t faults);

/* watch.c: without a watcher these do nothing. Times in ns. */
int um_sim_is_watched(const struct um_sim *sim); /* migrations and faults have a receiver */
/* Reports a call that ended on the caller's clock, which advances a little. Returns its correlation id. */
uint64_t um_sim_watch_call(struct um_sim *sim, const char *name, uint64_t begin);
void um_sim_watch_kernel(struct um_sim *sim, const struct um_sim_stream *s, const char *name, uint64_t correlation,
			 uint64_t begin, uint64_t end);
void um_sim_watch_copy(struct um_sim *sim, const struct um_sim_stream *s, enum um_activity_kind kind,
		       enum um_activity_dir dir, uint64_t bytes, uint64_t correlation, uint64_t begin, uint64_t end);
void um_sim_watch_moved(struct um_sim *sim, const struct um_sim_block *b, const struct um_sim_segment *seg, unsigned n,
			int to_device, enum um_sim_cause cause, uint64_t begin, uint64_t end);
/* A group of faults: pages of a block, the first at that offset of the memory. */
void um_sim_watch_faults(struct um_sim *sim, const struct um_sim_mem *m, uint64_t off, int write, unsigned entries,
			 uint64_t begin, uint64_t end);
/* Faults on a page, one for it or for each of its 4 KiB, not below that offset. */
void um_sim_watch_cpu_faults(struct um_sim *sim, const struct um_sim_block *b, uint32_t page, uint64_t from, unsigned n,
			     uint64_t at);
void um_sim_watch_memory(struct um_sim *sim, struct um_sim_mem *m, int born, uint64_t at);

/* cpu_access.c: detects accesses of the program's CPU code. */
int um_sim_cpu_access_supported(void); /* does this system support it? */
uint64_t um_sim_os_page(void);
/* The page table of the process. Opened each time, because a program may close unknown descriptors. */
#define UM_SIM_ENTRY_PRESENT (1ull << 63)
int um_sim_entries_open(void);
int um_sim_entries_read(int fd, uint64_t addr, uint64_t *entry, size_t n);
void um_sim_cpu_access_prepare(void *span, size_t bytes); /* for newly backed memory */
/* Serves accesses since the last call; `*t` advances. */
void um_sim_cpu_access_serve(struct um_sim *sim, uint64_t *t);
void um_sim_cpu_access_rearm(struct um_sim *sim); /* makes pages that the CPU has not mapped detectable again */

/* loop.c */
void um_sim_enter(struct um_sim *sim); /* locks; processes CPU accesses, and events due by the program's clock */
int um_sim_leave(struct um_sim *sim, int error); /* the same, and unlocks; returns `error` */
int um_sim_process_event(struct um_sim *sim,
			 uint64_t limit); /* processes one event at or before `limit`: 1, or 0 if there is
						        none */
void um_sim_settle(struct um_sim *sim, struct um_sim_stream *s, uint64_t t); /* processes commands that take no time,
									        due by t */
int um_sim_deadlock(struct um_sim *sim, const struct um_sim_stream *s); /* logs it (NULL: of calls); returns
									         UM_CUDA_LAUNCH_TIMEOUT */
int um_sim_finish(struct um_sim *sim); /* runs everything; the program's clock is then at the end. 0 or
				          UM_CUDA_LAUNCH_TIMEOUT */
int um_sim_worker_start(struct um_gpu *gpu, struct um_worker *worker);
void um_sim_worker_stop(struct um_gpu *gpu, struct um_worker *worker);
void um_sim_worker_poke(struct um_gpu *gpu, struct um_worker *worker);
int um_sim_worker_wait(struct um_gpu *gpu, int (*done)(void *arg), void *arg);

/* stream.c */
struct um_sim_stream *um_sim_stream_of(struct um_sim *sim, um_stream stream); /* NULL: no such stream */
struct um_sim_stream *um_sim_stream_new(struct um_sim *sim);
void um_sim_stream_end(struct um_sim_stream *s); /* with its commands */
int um_sim_stream_push(struct um_sim *sim, struct um_sim_stream *s, const struct um_sim_cmd *cmd); /* CUDA error */
void um_sim_cmd_end(struct um_sim_cmd *c);
void um_sim_stream_forget(struct um_sim *sim, struct um_sim_stream *s);
int um_sim_stream_create(struct um_gpu *gpu, um_stream *stream, unsigned flags);
int um_sim_stream_destroy(struct um_gpu *gpu, um_stream stream);
int um_sim_stream_sync(struct um_gpu *gpu, um_stream stream);
int um_sim_stream_await(struct um_sim *sim, struct um_sim_stream *s, uint64_t seq);
int um_sim_stream_wait(struct um_gpu *gpu, um_stream stream, um_event_handle event, unsigned flags);
int um_sim_announce(struct um_gpu *gpu, um_stream stream, const struct um_announcement *next);
int um_sim_stream_capturing(struct um_gpu *gpu, um_stream stream, int *status);
int um_sim_stream_id(struct um_gpu *gpu, um_stream stream, unsigned long long *id);

/* event.c */
void um_sim_record_put(struct um_sim_record *r);
int um_sim_event_create(struct um_gpu *gpu, um_event_handle *event, unsigned flags);
int um_sim_event_destroy(struct um_gpu *gpu, um_event_handle event);
int um_sim_event_record(struct um_gpu *gpu, um_event_handle event, um_stream stream);
int um_sim_event_query(struct um_gpu *gpu, um_event_handle event);
int um_sim_event_sync(struct um_gpu *gpu, um_event_handle event);
int um_sim_event_elapsed(struct um_gpu *gpu, float *ms, um_event_handle start, um_event_handle end);

/* sim.c: the sums at time `t`. */
void um_sim_tally_at(struct um_sim *sim, uint64_t t, struct um_tally *out);

#endif
