/* SPDX-License-Identifier: Apache-2.0
 *
 * log_reader.h - state of reading a umlog: private to log_read.c (lines and parts), log_line.c, log_recount.c and
 * log_feed.c
 */
#ifndef UM_FORMATS_LOG_READER_H
#define UM_FORMATS_LOG_READER_H

#include "base/diag.h"
#include "io/json_in.h"
#include "io/lines.h"
#include "io/log.h"
#include "io/log_part.h"

#include <errno.h>

struct um_log_reader {
	const struct um_log_read_options *o;
	struct um_activity_sink *sink;
	struct um_capture *capture;
	struct um_diag *diag;
	const char *path;
	struct um_lines *lines;
	uint64_t line;
	struct um_log_defs defs; /* `alive`: as fed so far */
	struct um_arena names;
	struct um_log_part part; /* being read */
	int in_part;
	int64_t like; /* its number; UM_LOG_SETUP: none */
	int bare; /* without events */
	UM_VEC(uint32_t) without;
	struct um_log_part kept[UM_LOG_REFERRED]; /* latest first */
	unsigned n_kept;
	UM_VEC(struct um_activity) queue; /* not fed yet */
	int64_t fed; /* time of the latest fed one */
	int64_t end; /* of the latest part */
	uint64_t sums; /* iterations with only sums */
	UM_VEC(struct um_log_driver_counter) counted; /* of the whole file, in order of time */
	size_t recounted; /* number of those in the queue or fed */
};

static inline int um_log_no_memory(const struct um_log_reader *r)
{
	return um_diag_set(r->diag, ENOMEM, r->line, "no memory");
}

/* log_line.c: parses a line into the reader's part, definitions or capture. 0, -EINVAL (refused), -ENOMEM. */
int um_log_line_head(struct um_log_reader *r, const struct um_json *j);
int um_log_line_define(struct um_log_reader *r, const struct um_json *j);
int um_log_line_part(struct um_log_reader *r, const struct um_json *j);
int um_log_line_event(struct um_log_reader *r, const struct um_json *j); /* of a part */
int um_log_line_sums(struct um_log_reader *r, const struct um_json *j);

const struct um_log_part *um_log_kept(const struct um_log_reader *r, int64_t n); /* NULL: not kept */
int um_log_time(const struct um_json *j, const char *key, int64_t *out);

/* log_recount.c: reads the driver's counts of the whole file; is a line such a count? */
int um_log_recount(struct um_log_reader *r);
int um_log_is_counted(const char *text, size_t n);

/* log_feed.c: feeds all events that begin before `until`. The sink's result. */
int um_log_feed(struct um_log_reader *r, int64_t until);
/* Queues the part's range; its events, which are those of `whole` (it may be the part itself). 0 or -ENOMEM. */
int um_log_queue_range(struct um_log_reader *r, const struct um_log_part *p);
/* Queues the driver's counts that begin before `until`. 0 or -ENOMEM. */
int um_log_queue_counted(struct um_log_reader *r, int64_t until);
/* Queues a sum at that time. */
int um_log_queue_sums(struct um_log_reader *r, int64_t at, const uint64_t counts[UM_LIBRARY_COUNTS]);
int um_log_queue_events(struct um_log_reader *r, const struct um_log_part *p, const struct um_log_part *whole);

#endif
