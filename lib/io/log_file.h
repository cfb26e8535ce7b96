/* SPDX-License-Identifier: Apache-2.0
 *
 * log_file.h - the file of a umlog: consecutive gzip members, and an index of them
 *
 * in    members
 * out   a file that is always readable up to its last whole member
 * owns  the file, and an index of its members
 *
 * A member is appended by one write. When the file reaches its limit, or holds very many parts, it is shrunk: the first
 * parts, the last ones, the whole ones in between, and the parts that any of these refers to are kept; the others
 * become sums. A rename replaces the file by the smaller one. Amortised, a byte is copied once.
 */
#ifndef UM_IO_LOG_FILE_H
#define UM_IO_LOG_FILE_H

#include "base/diag.h"
#include "base/vec.h"
#include "io/log_text.h"

#define UM_LOG_PARTS_MOST 8192

enum um_log_member_kind { UM_LOG_HEAD, UM_LOG_DEFS, UM_LOG_WHOLE, UM_LOG_LIKE, UM_LOG_BARE, UM_LOG_SUMS };

struct um_log_member {
	enum um_log_member_kind kind;
	uint64_t offset, bytes;
	int64_t like; /* LIKE */
	struct um_log_sums sums; /* of parts: their sums if they are not kept */
};

struct um_log_file {
	int fd; /* -1: none */
	char *path;
	int renamed; /* the requested name was in use */
	uint64_t bytes, limit;
	UM_VEC(struct um_log_member) members;
	size_t parts;
	int64_t pinned[UM_LOG_REFERRED]; /* iterations whose whole parts must stay: the next parts may refer to them */
	unsigned n_pinned;
};

/* 0 or -errno, with `diag` set. */
int um_log_file_open(struct um_log_file *f, const char *path, uint64_t limit, struct um_diag *diag);
/* Appends a member; `m` without its offset. 0, or -errno and the file is unchanged. */
int um_log_file_add(struct um_log_file *f, const struct um_log_member *m, const struct um_log_text *t);
void um_log_file_close(struct um_log_file *f);

#endif
