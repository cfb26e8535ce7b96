/* SPDX-License-Identifier: Apache-2.0
 *
 * log_text.h - text of a umlog: each function makes one gzip member (to be freed)
 *
 * Functions return 0 or -ENOMEM.
 */
#ifndef UM_IO_LOG_TEXT_H
#define UM_IO_LOG_TEXT_H

#include "io/log_part.h"

struct um_log_text {
	void *data;
	size_t bytes;
};

/* Consecutive parts of which only sums are kept. */
struct um_log_sums {
	int64_t first, last; /* iterations */
	int64_t begin, end;
	uint64_t shortest, longest; /* ns */
	uint64_t counts[UM_LIBRARY_COUNTS];
};

int um_log_text_head(struct um_log_text *t, const struct um_capture_library *library);
int um_log_text_defs(struct um_log_text *t, const struct um_log_defs *defs, uint32_t from);
/* `whole`: with its events; otherwise only its line. */
int um_log_text_part(struct um_log_text *t, const struct um_log_part *p, int whole);
/* Like the part of iteration `like`, without its hints at these indices, and with the own hints at `more`. */
int um_log_text_like(struct um_log_text *t, const struct um_log_part *p, int64_t like, const uint32_t *without,
		     size_t n_without, const uint32_t *more, size_t n_more);
int um_log_text_sums(struct um_log_text *t, const struct um_log_sums *s);

#endif
