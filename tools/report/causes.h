/* SPDX-License-Identifier: Apache-2.0
 *
 * causes.h - causes of migrations and faults, by tensor, operation and iteration
 *
 * in    activities in order of time, with their kernel and iteration
 * out   sums by reason, tensor, operation and iteration; outcomes of hints
 * owns  the state of each page (report/pages.h), declared uses of kernels (report/declared_uses.h), its sums
 *
 * Each migrated byte and each fault is counted under one reason up to UM_REASON_SENT; later reasons count the same
 * events by another criterion. If the program declares the uses of its kernels (UM_ACT_USE), uses and writes of a page
 * are known; otherwise a reason that depends on them is given only if no kernel can have used the page.
 */
#ifndef UM_REPORT_CAUSES_H
#define UM_REPORT_CAUSES_H

#include "model/activity.h"
#include "model/capture.h"
#include "report/hints.h"
#include "report/pages.h"
#include "report/declared_uses.h"

enum um_reason {
	UM_REASON_PREFETCH, /* migrated by a prefetch */
	UM_REASON_DEMAND, /* migrated by a fault, without a prefetch */
	UM_REASON_LATE, /* faulted before its prefetch was complete */
	UM_REASON_EARLY, /* prefetched, evicted before its use, and migrated again */
	UM_REASON_CPU, /* the CPU accessed memory that the GPU uses: migrated to the host and back */
	UM_REASON_PING_PONG, /* the same, twice or more in an iteration */
	UM_REASON_SHARED, /* moved because of another tensor in the same block */
	UM_REASON_OVERSHOOT, /* evicted unused: migrated beside faulting pages */
	UM_REASON_COLLAPSE, /* faults on resident pages: written in spite of read-mostly */
	UM_REASON_DISCARDED, /* faults on discarded pages without a prefetch */
	UM_REASON_FRESH, /* faults on memory that the iteration has allocated */
	UM_REASON_CLEAN, /* written back unchanged */
	UM_REASON_EVICTION, /* written back, changed or not known to be unchanged */
	UM_REASON_SENT, /* prefetched to the host */
	UM_REASON_DEAD, /* written back needlessly: overwritten before the next read */
	UM_REASON_REDUNDANT, /* prefetched although resident */
	UM_REASON_REFUSED, /* hints that failed */
	UM_REASON_WAITED, /* the device was idle until its prefetch was complete */
	UM_REASON_UNPLANNED, /* iterations take more than their plan predicts */
	UM_REASONS
};

#define UM_CAUSES_NONE UINT32_MAX /* no tensor, op or iteration */
#define UM_CAUSES_ROWS 1048576u /* limit; beyond it, rows by tensor and reason only */
#define UM_CAUSES_CALLERS 1024u

struct um_cause_row {
	enum um_reason reason;
	uint32_t tensor, iteration; /* rows of the report */
	uint32_t op; /* of CPU faults: row of callers */
	int by_cpu;
	uint64_t n, bytes, faults;
	uint64_t ns; /* faults, waits: duration; write-backs: copied while faults were served; hints: time of calls */
	uint64_t spare_ns; /* waits: part that fits into idle time of the link */
	uint32_t earlier; /* waits: largest number of kernels to prefetch earlier */
	int full; /* waits: the driver had to free memory */
};

/* Kernel, operation and iteration of an event on a device. */
struct um_cause_site {
	uint32_t process, op, iteration, lane;
	uint64_t kernel; /* 0: none runs; um_causes_settle sets `iteration` later */
	uint64_t op_id; /* its op, or UM_ACT_NO_OP */
	int known; /* the kernel's uses are known */
	int serving; /* faults are being served */
};

/* Times of a kernel and of the end of its launch; INT64_MIN: unknown. */
struct um_kernel_span {
	int64_t begin, end, launched;
};

#define UM_WAIT_KERNELS 256u /* kernels of history */

struct um_cause_pending;
struct um_cause_lane;

/* The tensor at an address, as the device (`gpu`) or the CPU sees it, and the end of its range; UM_CAUSES_NONE: none is
 * known. */
typedef uint32_t um_causes_tensor_at(const void *user, uint32_t process, int gpu, uint64_t address, uint64_t *until);

struct um_causes {
	um_causes_tensor_at *tensor_at;
	const void *user;
	const struct um_capture *capture; /* of the current file, or NULL; borrowed */
	struct um_pages pages;
	struct um_declared_uses declared_uses;
	struct um_hints hints;
	UM_VEC(struct um_cause_row) rows;
	UM_VEC(struct um_cause_lane) lanes; /* devices of each process: copies under way */
	UM_VEC(struct um_cause_pending) pending; /* of migrations between kernels, with a yet unknown iteration */
	UM_VEC(char *) callers; /* functions of the program in which the CPU faulted */
	UM_VEC(uint32_t) neighbour; /* by tensor: the tensor that caused its last migration */
	struct um_index row_index;
	uint32_t last_row;
	struct { /* row and time of a redundant prefetch whose call follows and counts there */
		uint32_t row, process;
		int64_t begin;
	} call;
	int64_t busy_until; /* number of the running kernel, of all that have begun */
	uint64_t kernels, undeclared; /* kernels that have begun; those with undeclared uses */
	int guessed; /* a kernel with undeclared uses waited */
	int saw_faults; /* of the GPU; otherwise stalls are unknown, and the copies on demand count as a minimum */
	int doubtful; /* unchanged write-backs are guessed from the kinds of faults */
};

void um_causes_init(struct um_causes *c, um_causes_tensor_at *tensor_at, const void *user);
void um_causes_fini(struct um_causes *c);

/* All: 0 or -ENOMEM. */

/* ALLOC, FREE, OP, USE, HINT, CALL, CPU_FAULT. `iteration`: the CPU's current one. */
int um_causes_on_host(struct um_causes *c, uint32_t process, uint32_t iteration, const struct um_activity *a);

/* A kernel of the op `site->op_id` begins: fills the site's kernel and known, and the idle time of its device until the
 * kernel's data had been copied. */
int um_causes_on_kernel(struct um_causes *c, struct um_cause_site *site, const struct um_kernel_span *span,
			uint64_t *waited_ns);

/* The program copies or fills memory: COPY, FILL. */
int um_causes_on_copy(struct um_causes *c, uint32_t process, uint32_t lane, const struct um_activity *a);

/* `ns`: of the kernel's time, these faults were being served. */
int um_causes_on_fault(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a, uint64_t ns);

int um_causes_on_migration(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a);

/* Assigns events between the kernels of a lane to this iteration. */
int um_causes_settle(struct um_causes *c, uint32_t lane, uint32_t iteration);

int um_causes_finish(struct um_causes *c);

/* Later events are of other processes, on another clock. */
int um_causes_next_file(struct um_causes *c);

const char *um_reason_name(enum um_reason reason);

#endif
