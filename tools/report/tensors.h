/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.h - what each tensor cost, in all and by iteration; and what was announced for which kernel
 *
 * in    tensors and allocations as they come and go, faults and migrations with the iteration that they belong to
 * out   a row for each tensor, and one for each of its iterations
 * owns  its rows and names; part of a report (report.h)
 *
 * A row is a name. Tensors that come again under their name, be it in every iteration, are one row. Those without a
 * name are called after their bytes and the order in which they come: in their iteration, or outside of iterations in
 * the run. So are allocations, which stand for what no tensor has taken there.
 *
 * The GPU is behind the CPU, which may long since have given an address to another tensor. So the GPU has a map of its
 * own: a change in it comes with the first kernel whose launch was after it.
 */
#ifndef UM_REPORT_TENSORS_H
#define UM_REPORT_TENSORS_H

#include "base/vec.h"
#include "model/activity.h"
#include "report/index.h"
#include "report/address_map.h"

struct um_report;

struct um_report_tensor_sums {
	uint64_t faults, cpu_faults;
	uint64_t fault_ns; /* kernels' time in which its faults were served */
	uint64_t evictions; /* migrations for room, with a part of it */
	uint64_t h2d_bytes[UM_CAUSES], d2h_bytes[UM_CAUSES];
	uint64_t d2d_bytes;
};

struct um_report_tensor {
	char *name;
	char *first_op; /* that used it, where uses are told; or NULL */
	uint64_t bytes; /* the most that one of this name had */
	uint64_t lives; /* how often one began */
	int named; /* the program said so; else it is made up */
	uint32_t iteration, cell; /* looked up last */
	uint32_t rank; /* place in by_cost */
	struct um_report_tensor_sums sums;
};

struct um_report_tensor_cell { /* a tensor in an iteration */
	uint32_t tensor, iteration; /* rows; UM_REPORT_NONE: outside of all */
	struct um_report_tensor_sums sums;
};

/* Something that happened to addresses, of which the iteration is not known yet. */
struct um_report_event {
	uint64_t address, bytes;
	uint64_t faults;
	enum um_activity_dir dir; /* of the bytes */
	enum um_activity_cause cause;
};

/* Faults that the driver began to serve at one moment, and how long that took. */
struct um_report_served {
	uint32_t tensor, iteration;
	uint64_t faults;
};

/* A process: what lies where. */
struct um_report_space;

struct um_report_tensors {
	UM_VEC(struct um_report_tensor) rows;
	UM_VEC(struct um_report_tensor_cell) cells;
	/* After um_report_finish: rows, the most expensive first; cells, in the order of their rows. */
	UM_VEC(uint32_t) by_cost;
	UM_VEC(uint32_t) cell_order;
	struct um_index row_index, cell_index;
	UM_VEC(struct um_report_space *) spaces;
	uint32_t last_space;
	uint64_t cells_skipped; /* things that there was no cell for */
};

/* Hears of every activity that says what lies where, or is called; also of those that are filtered out. `process`: its
 * row, or UM_REPORT_NONE where it has none yet. 0 or -ENOMEM. */
int um_report_tensors_feed(struct um_report *r, uint32_t process, const struct um_activity *a);

/* The GPU begins what was enqueued by that call. */
int um_report_tensors_begin(struct um_report *r, uint64_t process, uint64_t correlation);

/* Charges what an event says, on the GPU's map, or, for a fault of the CPU, on the CPU's. `row`: of its address; may be
 * NULL. 0 or -ENOMEM. */
int um_report_tensors_charge(struct um_report *r, uint64_t process, uint32_t iteration, const struct um_report_event *e,
			     uint32_t *row);
/* So many at once, all of what lies at the address; 0: of no tensor. */
int um_report_tensors_charge_sum(struct um_report *r, uint64_t process, uint32_t iteration,
				 const struct um_report_event *e, uint64_t records);
int um_report_tensors_cpu_fault(struct um_report *r, uint64_t process, uint32_t iteration, const struct um_activity *a);

/* The name of what lies at an address: on the GPU's map, or on the CPU's. NULL: that is not known. */
const char *um_report_tensor_at(struct um_report *r, uint64_t process, uint64_t address, int on_gpu);

/* The row of the tensor at an address, as the GPU or the CPU has it, and up to where; UM_REPORT_NONE: none is known.
 * `report`: a struct um_report. */
uint32_t um_report_tensor_row_at(const void *report, uint32_t process, int gpu, uint64_t address, uint64_t *until);
const char *um_report_tensor_name(const struct um_report *r, uint32_t row); /* of UM_REPORT_NONE: "(unknown)" */

/* Kernels waited so long for all of these: each has its share by its faults. 0 or -ENOMEM. */
int um_report_tensors_waited(struct um_report *r, const struct um_report_served *served, size_t n, uint64_t ns);

struct um_launch;

/* When a kernel was launched, and what was announced for it; NULL: not known. Valid until the next call. */
const struct um_launch *um_report_launch_of(const struct um_report *r, uint64_t process, uint64_t correlation);

/* The number of that op; UM_ACT_NO_OP: none. */
uint64_t um_report_op_of(const struct um_report *r, uint64_t process, uint64_t correlation);

/* Once nothing more comes: what no kernel begins after; and, when all is charged, the order. 0 or -ENOMEM. */
int um_report_tensors_last(struct um_report *r);
int um_report_tensors_sort(struct um_report *r);

/* Nothing more comes of the processes there are: what lies where is given up. */
void um_report_tensors_next_file(struct um_report_tensors *t);
void um_report_tensors_fini(struct um_report_tensors *t);

/* Of h2d_bytes or d2h_bytes, whatever the cause. */
uint64_t um_report_tensor_moved(const uint64_t *bytes);

#endif
