/* SPDX-License-Identifier: Apache-2.0
 *
 * log_driver_counters.h - what the driver counts of unified memory, in a part of a umlog
 *
 * in    activities that have `records`
 * out   lines, one each, or one for all of a tensor, a kind and a reason where there were too many; totals
 * owns  what came while the part lasted
 *
 * Times are the clock's own: what is told late stands in a later part, and belongs where its time says. Without memory
 * it becomes sums, which need none.
 */
#ifndef UM_IO_LOG_DRIVER_COUNTERS_H
#define UM_IO_LOG_DRIVER_COUNTERS_H

#include "base/vec.h"
#include "io/id_map.h"
#include "io/out.h"
#include "model/activity.h"
#include "model/capture.h"

enum um_log_driver_counter_kind { UM_LOG_H2D, UM_LOG_D2H, UM_LOG_GPU_FAULT, UM_LOG_CPU_FAULT, UM_LOG_DRIVER_COUNTERS };

#define UM_LOG_WHYS UM_CAUSES /* enum um_activity_cause; of GPU faults enum um_activity_access, which has as many */

struct um_log_driver_counter {
	enum um_log_driver_counter_kind kind;
	unsigned why;
	int64_t begin, end;
	uint64_t address, n; /* bytes, or faults; of many: where and when the first of them was */
	uint64_t records; /* that it stands for */
};

struct um_log_counts {
	UM_VEC(struct um_log_driver_counter) at;
	size_t one_by_one; /* of them; the others are sums by tensor */
	struct um_id_map sum_of; /* place in `at` by tensor, kind and why */
	struct um_log_sum {
		uint64_t records, n;
	} sums[UM_LOG_DRIVER_COUNTERS][UM_LOG_WHYS]; /* of what is not in `at`: of no tensor */
};

extern const char *const um_log_driver_counter_names[UM_LOG_DRIVER_COUNTERS];
const char *um_log_driver_counter_why(enum um_log_driver_counter_kind kind, unsigned why); /* NULL: not said */
const char *um_log_driver_counter_unit(enum um_log_driver_counter_kind kind); /* the key of `n` */

void um_log_counts_clear(struct um_log_counts *c); /* keeps most of its memory */
void um_log_counts_fini(struct um_log_counts *c);
/* Is it what is counted? */
int um_log_driver_counter_read(struct um_log_driver_counter *c, const struct um_activity *a);
/* At most `most` are kept one by one: 1; 0: no more are, or it is a sum. */
int um_log_counts_add(struct um_log_counts *c, const struct um_log_driver_counter *x, size_t most);
/* A part of one, of this tensor (UINT32_MAX: of none); at most `most` such sums, then those of no tensor. */
void um_log_counts_sum(struct um_log_counts *c, const struct um_log_driver_counter *x, uint32_t def, size_t most);
void um_log_counts_fold(struct um_log_counts *c); /* all become sums */
void um_log_counts_total(const struct um_log_counts *c, uint64_t counts[UM_LIBRARY_COUNTS]); /* its own keys are set */
void um_log_counts_write(struct um_out *o, const struct um_log_counts *c, int64_t at); /* `at`: of sums */
struct um_activity um_log_driver_counter_as(const struct um_log_driver_counter *c);

#endif
