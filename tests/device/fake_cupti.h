/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cupti.h - what tests tell fake_cupti.c, and see of it
 */
#ifndef UM_TESTS_FAKE_CUPTI_H
#define UM_TESTS_FAKE_CUPTI_H

#include <stddef.h>
#include <stdint.h>

struct fake_cupti {
	uint32_t version;
	int timestamp, callbacks, configure, enable, flush; /* what these calls return */
	unsigned records; /* told at the next flush; kinds in turn, 4096 bytes or faults each, time 2000 and on */
	unsigned holds; /* so many buffers are kept until further ones are full */
	unsigned flags; /* of records */
	int other; /* they are of a kind that was not asked for */
	size_t dropped;
	int enabled, forced; /* how often */
};

#endif
