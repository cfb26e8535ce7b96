/* SPDX-License-Identifier: Apache-2.0
 *
 * log_driver_counters.h - the driver's unified-memory counter records in a part of a umlog
 *
 * in    activities that have `records`
 * out   lines, one for each record, or one for all records of a tensor, kind and cause if there are too many; totals
 * owns  the records that arrived during the part
 *
 * Times are on the log's clock: a late record is written in a later part, and belongs to the part of its time. If
 * memory is short, records become sums, which need none.
 */
#ifndef UM_IO_LOG_DRIVER_COUNTERS_H
#define UM_IO_LOG_DRIVER_COUNTERS_H

#include "base/vec.h"
#include "io/id_map.h"
#include "io/out.h"
#include "model/activity.h"
#include "model/capture.h"

enum um_log_driver_counter_kind { UM_LOG_H2D, UM_LOG_D2H, UM_LOG_GPU_FAULT, UM_LOG_CPU_FAULT, UM_LOG_DRIVER_COUNTERS };

#define UM_LOG_WHYS UM_CAUSES /* enum um_activity_cause; enum um_activity_access of GPU faults has as many */

struct um_log_driver_counter {
	enum um_log_driver_counter_kind kind;
	unsigned why;
	int64_t begin, end;
	uint64_t address, n; /* bytes, or faults; of several records: address and time of the first */
	uint64_t records; /* number of records that it sums */
};

struct um_log_counts {
	UM_VEC(struct um_log_driver_counter) at;
	size_t one_by_one; /* number of single records; the others are sums by tensor */
	struct um_id_map sum_of; /* index in `at` by tensor, kind and cause */
	struct um_log_sum {
		uint64_t records, n;
	} sums[UM_LOG_DRIVER_COUNTERS][UM_LOG_WHYS]; /* records not in `at`: without a tensor */
};

extern const char *const um_log_driver_counter_names[UM_LOG_DRIVER_COUNTERS];
const char *um_log_driver_counter_why(enum um_log_driver_counter_kind kind, unsigned why); /* NULL: unknown */
const char *um_log_driver_counter_unit(enum um_log_driver_counter_kind kind); /* the key of `n` */

void um_log_counts_clear(struct um_log_counts *c); /* keeps most of its memory */
void um_log_counts_fini(struct um_log_counts *c);
/* Converts an activity; is it a counter record? */
int um_log_driver_counter_read(struct um_log_driver_counter *c, const struct um_activity *a);
/* Keeps at most `most` single records: 1; 0: the limit is reached, or the record is a sum. */
int um_log_counts_add(struct um_log_counts *c, const struct um_log_driver_counter *x, size_t most);
/* Adds a part of a record to the sum of this tensor (UINT32_MAX: none); at most `most` such sums, then to those without
 * a tensor. */
void um_log_counts_sum(struct um_log_counts *c, const struct um_log_driver_counter *x, uint32_t def, size_t most);
void um_log_counts_fold(struct um_log_counts *c); /* turns all into sums */
void um_log_counts_total(const struct um_log_counts *c, uint64_t counts[UM_LIBRARY_COUNTS]); /* sets its own keys */
void um_log_counts_write(struct um_out *o, const struct um_log_counts *c, int64_t at); /* `at`: time of sums */
struct um_activity um_log_driver_counter_as(const struct um_log_driver_counter *c);

#endif
