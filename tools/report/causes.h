/* SPDX-License-Identifier: Apache-2.0
 *
 * causes.h - why pages moved and faults happened, in plain words, by tensor, operation and iteration
 *
 * in    what the report makes of activities, in order of time: which kernel runs, in which iteration
 * out   sums by reason, tensor, operation and iteration; what became of hints
 * owns  the state of each page (report/pages.h), what programs say of their kernels (report/said.h), its sums
 *
 * Each byte that a migration brings or takes, and each fault, is counted under one reason (of those up to
 * UM_REASON_SENT; those behind count what was counted before, seen from another side). Where programs say what their
 * kernels use (UM_ACT_USE), a page is known to have been used or written; where they do not, a reason that depends on
 * it is given only where no kernel can have used the page.
 */
#ifndef UM_REPORT_CAUSES_H
#define UM_REPORT_CAUSES_H

#include "model/activity.h"
#include "model/capture.h"
#include "report/hints.h"
#include "report/pages.h"
#include "report/declared_uses.h"

enum um_reason {
	UM_REASON_PREFETCH, /* brought as asked */
	UM_REASON_DEMAND, /* faulted on: nobody had asked for it */
	UM_REASON_LATE, /* faulted on while its prefetch was under way, or before it */
	UM_REASON_EARLY, /* asked for, evicted before it was used, and brought again */
	UM_REASON_CPU, /* the CPU touched what the GPU uses: taken away, and fetched back */
	UM_REASON_PING_PONG, /* the same, twice and more in an iteration */
	UM_REASON_SHARED, /* moved for a tensor that lies in the same block */
	UM_REASON_OVERSHOOT, /* evicted unused: it came with what was faulted on */
	UM_REASON_COLLAPSE, /* faults on what is there: written in spite of read-mostly */
	UM_REASON_DISCARDED, /* faults on what was discarded and not prefetched */
	UM_REASON_FRESH, /* faults on what the iteration has allocated */
	UM_REASON_CLEAN, /* written back unchanged */
	UM_REASON_EVICTION, /* written back, changed or not known to be unchanged */
	UM_REASON_SENT, /* taken home as asked */
	UM_REASON_DEAD, /* written back for nothing: overwritten before it was read */
	UM_REASON_REDUNDANT, /* asked for though it was there */
	UM_REASON_REFUSED, /* hints that failed */
	UM_REASON_WAITED, /* the device stood still until its prefetch had come */
	UM_REASONS
};

#define UM_CAUSES_NONE UINT32_MAX /* no tensor, op or iteration */
#define UM_CAUSES_ROWS 1048576u /* then by tensor and reason alone */
#define UM_CAUSES_CALLERS 1024u

struct um_cause_row {
	enum um_reason reason;
	uint32_t tensor, iteration; /* rows of the report */
	uint32_t op; /* of what the CPU faulted on: of callers */
	int by_cpu;
	uint64_t n, bytes, faults;
	uint64_t ns; /* faults, waits: so long; write-backs: copied while faults were served; hints: calls took */
	uint64_t spare_ns; /* waits: of that, it could have come while the link was idle */
	uint32_t earlier; /* waits: so many kernels earlier, at most */
	int full; /* waits: the driver had to make room */
};

/* Where in the run something happens on a device. */
struct um_cause_site {
	uint32_t process, op, iteration, lane;
	uint64_t kernel; /* 0: none runs, and `iteration` will be told by um_causes_settle */
	uint64_t said; /* the op that it is of, or UM_ACT_NO_OP */
	int known; /* it is known what the kernel uses */
	int serving; /* faults are being served */
};

/* When a kernel ran, and when its launch was over; INT64_MIN: that is not known. */
struct um_kernel_span {
	int64_t begin, end, launched;
};

#define UM_WAIT_KERNELS 256u /* that are looked back */

struct um_cause_pending;
struct um_cause_lane;

/* Which tensor lies at an address, as the device (`gpu`) or the CPU sees it, and up to where that holds;
 * UM_CAUSES_NONE: none is known. */
typedef uint32_t um_causes_tensor_at(const void *user, uint32_t process, int gpu, uint64_t address, uint64_t *until);

struct um_causes {
	um_causes_tensor_at *tensor_at;
	const void *user;
	const struct um_capture *capture; /* of the file that is fed, or NULL; borrowed */
	struct um_pages pages;
	struct um_declared_uses said;
	struct um_hints hints;
	UM_VEC(struct um_cause_row) rows;
	UM_VEC(struct um_cause_lane) lanes; /* devices, as each process uses it: what is on its way */
	UM_VEC(struct um_cause_pending) pending; /* of moves between kernels: whose iteration is not known yet */
	UM_VEC(char *) callers; /* functions of the program, where the CPU faulted */
	UM_VEC(uint32_t) neighbour; /* by tensor: the last that it was moved for */
	struct um_index row_index;
	uint32_t last_row;
	struct { /* the row of a redundant prefetch whose call comes next, and when; its time is counted there */
		uint32_t row, process;
		int64_t begin;
	} call;
	int64_t busy_until; /* a kernel runs, of all that have begun */
	uint64_t kernels, blind; /* that have begun; those of which nobody said what they use */
	int guessed; /* a wait of a kernel of which nobody said what it uses */
	int saw_faults; /* of the GPU. Else what kernels waited is not known: at least the copies on demand count */
	int doubtful; /* what was written back unchanged is a guess from the kinds of faults */
};

void um_causes_init(struct um_causes *c, um_causes_tensor_at *tensor_at, const void *user);
void um_causes_fini(struct um_causes *c);

/* All: 0 or -ENOMEM. */

/* ALLOC, FREE, OP, USE, HINT, CALL, CPU_FAULT. `iteration`: that the CPU is in. */
int um_causes_on_host(struct um_causes *c, uint32_t process, uint32_t iteration, const struct um_activity *a);

/* A kernel begins, of the op `site->said`: fills the site's kernel and known, and how long its device had stood still
 * until what it uses had come. */
int um_causes_on_kernel(struct um_causes *c, struct um_cause_site *site, const struct um_kernel_span *span,
			uint64_t *waited_ns);

/* The program copies or fills something: COPY, FILL. */
int um_causes_on_copy(struct um_causes *c, uint32_t process, uint32_t lane, const struct um_activity *a);

/* `ns`: of the kernel's time, these faults were being served. */
int um_causes_on_fault(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a, uint64_t ns);

int um_causes_on_migration(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a);

/* What happened between the kernels of a lane belongs to this iteration. */
int um_causes_settle(struct um_causes *c, uint32_t lane, uint32_t iteration);

int um_causes_finish(struct um_causes *c);

/* What comes is of other processes, on another clock. */
int um_causes_next_file(struct um_causes *c);

const char *um_reason_name(enum um_reason reason);

#endif
