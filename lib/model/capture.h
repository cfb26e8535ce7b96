/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.h - what a recording says of itself, besides its activities
 *
 * Filled by whoever reads it; owns its strings. Absences are what makes a zero mean "none happened" or "nobody looked".
 */
#ifndef UM_MODEL_CAPTURE_H
#define UM_MODEL_CAPTURE_H

#include <stdint.h>

#include "base/vec.h"

enum um_absence_state {
	UM_ABSENT_UNKNOWN, /* not recorded, or none happened: the recording does not say */
	UM_ABSENT_NOT_RECORDED,
	UM_ABSENT_NONE /* recorded, and none happened */
};

struct um_absence {
	const char *table; /* static */
	const char *what; /* in words; static */
	const char *option; /* of `nsys profile`, that records it; static */
	enum um_absence_state state;
};

struct um_capture_process {
	uint64_t process; /* as in activities */
	uint64_t pid;
	char *name;
};

struct um_capture_device {
	int32_t device;
	char *name;
	uint64_t memory_bytes; /* 0: not said */
};

struct um_capture {
	char product[64], schema[64]; /* versions; empty: not said */
	int64_t end_ns; /* of the recording; 0: not said */
	uint64_t rows; /* read */
	uint64_t marks_damaged; /* marks of libumadvise's domain that say nothing */
	UM_VEC(struct um_capture_process) processes;
	UM_VEC(struct um_capture_device) devices;
	UM_VEC(struct um_absence) missing;
	UM_VEC(char *) notes; /* what the profiler itself warned of */
	int has_cuda; /* some table of CUDA's activities is there */
};

void um_capture_init(struct um_capture *c);
void um_capture_fini(struct um_capture *c);

/* 0 or -ENOMEM; text is copied. */
int um_capture_note(struct um_capture *c, const char *text);
int um_capture_process(struct um_capture *c, uint64_t process, uint64_t pid, const char *name);
int um_capture_device(struct um_capture *c, int32_t device, const char *name, uint64_t memory_bytes);

#endif
