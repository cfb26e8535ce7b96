/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h - umlog files (run logs): written while the library runs, read for the report
 *
 * in    to write: tensors, ops, uses and hints as activities, and where a part (an iteration, or the set-up before the
 *       first one) begins and ends
 * out   a file of doc/umlog.md; when read, the same activities in order of time, and the file's metadata
 * owns  the file
 *
 * Events are kept in memory (op path: no system call) and written by one call when their part ends, so that a killed
 * program leaves a file that is readable up to there. A part that repeats one of the last few is a line that refers to
 * it. The file does not exceed its limit: parts in the middle become sums, except the first of each kind. After the
 * first error a writer writes nothing more; the file stays readable. Not thread-safe.
 */
#ifndef UM_IO_LOG_H
#define UM_IO_LOG_H

#include "base/diag.h"
#include "model/activity.h"
#include "model/capture.h"

#define UM_LOG_LIMIT (64u << 20) /* default maximum size, bytes */
#define UM_LOG_LIMIT_LEAST (256u << 10)

struct um_log;

/* Begins a file of at most `limit` bytes (0: UM_LOG_LIMIT); if another process or context writes that file, `path`.2
 * and so on. The names, budget and capacity of `library` (borrowed for the call) are written. `now`: begin of the
 * set-up. 0, -EINVAL (not a regular file), -ENOMEM and others; `diag` is initialised, its file name may be `path`. */
int um_log_open(struct um_log **out, const char *path, const struct um_capture_library *library, uint64_t limit,
		int64_t now, struct um_diag *diag);

/* The file's name if it differs from the requested one, else NULL. */
const char *um_log_other_path(const struct um_log *l);

/* Activities fed here belong to the current part, except the driver's counters (um_activity.records): they are written
 * with it and belong to the part of their time. Always returns 0. Borrowed; owned by the log. */
struct um_activity_sink *um_log_sink(struct um_log *l);

/* Ends the current part and writes it with its counters and current values; the next part is iteration `next`, named
 * `name` (copied, may be NULL). 0, or the error that ended the log. */
int um_log_next_part(struct um_log *l, int64_t now, const uint64_t counts[UM_LIBRARY_COUNTS],
		     const uint64_t levels[UM_LIBRARY_LEVELS], uint64_t next, const char *name);

/* The same for the last part; closes and frees the log. NULL is allowed. */
int um_log_close(struct um_log *l, int64_t now, const uint64_t counts[UM_LIBRARY_COUNTS],
		 const uint64_t levels[UM_LIBRARY_LEVELS]);

/* --- reading ------------------------------------------------------------------------------------------------------ */

struct um_log_read_options {
	int (*progress)(void *user, uint64_t rows, uint64_t of); /* as in um_nsys_read_options; `of` is 0 */
	void *user;
};

/* Does the file begin like a umlog, whatever other errors it has? */
int um_log_is(const char *path);

/* Reads `path` into the sink, in order of `begin`. `capture` is initialised here, filled during the read, and finished
 * by the caller. A file that ends inside its last part is read up to there, and `capture` says so. 0; -EINVAL: refused,
 * with the reason in `diag` (initialised here); -ENOMEM; or the sink's return value. */
int um_log_read(const char *path, const struct um_log_read_options *options, struct um_activity_sink *sink,
		struct um_capture *capture, struct um_diag *diag);

#endif
