/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h - umlog files: what the library saw and did, written while it runs and read for the report
 *
 * in    to write: tensors, ops, uses and hints as activities, and where a part (an iteration, or what came before the
 *       first) begins and ends
 * out   a file of doc/umlog.md; read, the same activities in order of time, and what the file says of itself
 * owns  the file
 *
 * What happens gathers in memory (op path: no system call) and is written when its part ends, by one call, so that a
 * program that dies leaves a file that reads up to there. A part that repeats one of the last few is a line that refers
 * to it. The file keeps below its limit: parts in the middle become sums, but for the first of each kind. The first
 * error of a writer sticks: it writes no more, and what it wrote stays readable. Not thread-safe.
 */
#ifndef UM_IO_LOG_H
#define UM_IO_LOG_H

#include "base/diag.h"
#include "model/activity.h"
#include "model/capture.h"

#define UM_LOG_LIMIT (64u << 20) /* bytes, where nothing is asked for */
#define UM_LOG_LIMIT_LEAST (256u << 10)

struct um_log;

/* Begins a file of at most `limit` bytes (0: UM_LOG_LIMIT); where another process or context writes that one, `path`.2
 * and so on. In `path`, %p becomes the process's number. Of `library` (borrowed for the call) the names, budget and
 * capacity are written. `now`: when the set-up begins. 0, -EINVAL (no regular file), -ENOMEM and others; `diag` is
 * initialised, its file name may be `path`. */
int um_log_open(struct um_log **out, const char *path, const struct um_capture_library *library, uint64_t limit,
		int64_t now, struct um_diag *diag);

/* The file's name where it is not the one that was asked for, else NULL. */
const char *um_log_other_path(const struct um_log *l);

/* What is fed here belongs to the part at hand, but for what the driver counts (um_activity.records): that is written
 * with it, and belongs where its time says. Answers 0 always. Borrowed; the log's own. */
struct um_activity_sink *um_log_sink(struct um_log *l);

/* The part at hand ends, with what was counted in it and what holds by now, and is written; the next one is iteration
 * `next`, called `name` (copied, may be NULL). 0, or the error that ended the log. */
int um_log_turn(struct um_log *l, int64_t now, const uint64_t counts[UM_LIBRARY_COUNTS],
		const uint64_t levels[UM_LIBRARY_LEVELS], uint64_t next, const char *name);

/* The same for the last part; the log ends, and is gone. NULL is allowed. */
int um_log_close(struct um_log *l, int64_t now, const uint64_t counts[UM_LIBRARY_COUNTS],
		 const uint64_t levels[UM_LIBRARY_LEVELS]);

/* --- reading ------------------------------------------------------------------------------------------------------ */

struct um_log_read_options {
	int (*progress)(void *user, uint64_t rows, uint64_t of); /* as um_nsys_read_options has it; `of` is 0 */
	void *user;
};

/* Does the file begin as one? Whatever else may be wrong with it. */
int um_log_is(const char *path);

/* Reads `path` into the sink, in order of `begin`. `capture` is initialised here, filled while it is read, and ended by
 * the caller. A file that stops inside its last part is read up to there, and `capture` says so. 0; -EINVAL: refused,
 * and `diag` (initialised here) says why; -ENOMEM; or what the sink answered. */
int um_log_read(const char *path, const struct um_log_read_options *options, struct um_activity_sink *sink,
		struct um_capture *capture, struct um_diag *diag);

#endif
