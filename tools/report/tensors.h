/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.h - costs of each tensor, in all and by iteration; and the announced op of each kernel
 *
 * in    births and ends of tensors and allocations; faults and migrations with their iteration
 * out   a row for each tensor, and one for each of its iterations
 * owns  its rows and names; part of a report (report.h)
 *
 * A row is a name. All tensors of a name share a row, also in different iterations. Unnamed tensors are named after
 * their bytes and their order in the iteration or, outside of iterations, in the run. So are allocations, which stand
 * for memory without a tensor.
 *
 * The GPU lags behind the CPU, which may already have given an address to another tensor. So the GPU has its own map: a
 * change takes effect with the first kernel that was launched after it.
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
	uint64_t fault_ns; /* kernel time while its faults were served */
	uint64_t evictions; /* evictions with a part of it */
	uint64_t h2d_bytes[UM_CAUSES], d2h_bytes[UM_CAUSES];
	uint64_t d2d_bytes;
};

struct um_report_tensor {
	char *name;
	char *first_op; /* kernel that first used it, if uses are declared; or NULL */
	uint64_t bytes; /* largest size of this name */
	uint64_t lives; /* number of births */
	int named; /* named by the program; else generated */
	uint32_t iteration, cell; /* looked up last */
	uint32_t rank; /* place in by_cost */
	struct um_report_tensor_sums sums;
};

struct um_report_tensor_cell { /* a tensor in an iteration */
	uint32_t tensor, iteration; /* rows; UM_REPORT_NONE: outside of all */
	struct um_report_tensor_sums sums;
};

/* An event at addresses with a yet unknown iteration. */
struct um_report_event {
	uint64_t address, bytes;
	uint64_t faults;
	enum um_activity_dir dir; /* of the bytes */
	enum um_activity_cause cause;
};

/* Faults that the driver began to serve at one moment, and the duration. */
struct um_report_served {
	uint32_t tensor, iteration;
	uint64_t faults;
};

/* A process's maps of addresses. */
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
	uint64_t cells_skipped; /* events beyond the limit of cells */
};

/* Feeds activities that define addresses or names, including filtered ones. `process`: its row, or UM_REPORT_NONE if it
 * has none yet. 0 or -ENOMEM. */
int um_report_tensors_feed(struct um_report *r, uint32_t process, const struct um_activity *a);

/* The GPU begins the work of that call. */
int um_report_tensors_begin(struct um_report *r, uint64_t process, uint64_t correlation);

/* Charges an event by the GPU's map, or, for a fault of the CPU, by the CPU's. `row`: of its address; may be NULL. 0 or
 * -ENOMEM. */
int um_report_tensors_charge(struct um_report *r, uint64_t process, uint32_t iteration, const struct um_report_event *e,
			     uint32_t *row);
/* Charges several records at once to the tensor at the address; 0: no tensor. */
int um_report_tensors_charge_sum(struct um_report *r, uint64_t process, uint32_t iteration,
				 const struct um_report_event *e, uint64_t records);
int um_report_tensors_cpu_fault(struct um_report *r, uint64_t process, uint32_t iteration, const struct um_activity *a);

/* The name of the tensor at an address on the GPU's or the CPU's map. NULL: unknown. */
const char *um_report_tensor_at(struct um_report *r, uint64_t process, uint64_t address, int on_gpu);

/* The row of the tensor at an address on the GPU's or the CPU's map, and the end of its range; UM_REPORT_NONE: none is
 * known. `report`: a struct um_report. */
uint32_t um_report_tensor_row_at(const void *report, uint32_t process, int gpu, uint64_t address, uint64_t *until);
const char *um_report_tensor_name(const struct um_report *r, uint32_t row); /* of UM_REPORT_NONE: "(unknown)" */

/* Divides a stall of kernels among these by their faults. 0 or -ENOMEM. */
int um_report_tensors_waited(struct um_report *r, const struct um_report_served *served, size_t n, uint64_t ns);

struct um_launch;

/* Launch time and announced op of a kernel; NULL: unknown. Valid until the next call. */
const struct um_launch *um_report_launch_of(const struct um_report *r, uint64_t process, uint64_t correlation);

/* The number of that op; UM_ACT_NO_OP: none. */
uint64_t um_report_op_of(const struct um_report *r, uint64_t process, uint64_t correlation);

/* After the last activity: applies the remaining changes; after all charges: sorts. 0 or -ENOMEM. */
int um_report_tensors_last(struct um_report *r);
int um_report_tensors_sort(struct um_report *r);

/* Ends all current processes and drops their maps. */
void um_report_tensors_next_file(struct um_report_tensors *t);
void um_report_tensors_fini(struct um_report_tensors *t);

/* Of h2d_bytes or d2h_bytes, whatever the cause. */
uint64_t um_report_tensor_moved(const uint64_t *bytes);

#endif
