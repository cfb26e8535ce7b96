/* SPDX-License-Identifier: Apache-2.0
 *
 * absent.c - tells of functions that a stand-in lacks, and defines those of one library
 *
 * UM_ABSENT_NAMES: a file with X(name) for each function of the library, also for those that it has: definitions here
 * are weak. Each returns UM_ABSENT_STATUS, the library's code for what is not supported.
 */
#include "standin/absent.h"

#include <pthread.h>
#include <stdio.h>

#define TOLD_MOST 256

void um_absent_tell(const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const char *told[TOLD_MOST];
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < TOLD_MOST && told[i] && told[i] != name; i++)
		;
	if (i == TOLD_MOST || !told[i]) {
		fprintf(stderr, "umadvise: the stand-in does not support %s\n", name);
		if (i < TOLD_MOST)
			told[i] = name;
	}
	pthread_mutex_unlock(&lock);
}

#ifdef UM_ABSENT_NAMES
#define X(name)                                                                                                        \
	__attribute__((visibility("default"), weak)) int name(void);                                                   \
	int name(void)                                                                                                 \
	{                                                                                                              \
		um_absent_tell(#name);                                                                                 \
		return UM_ABSENT_STATUS;                                                                               \
	}
#include UM_ABSENT_NAMES
#endif
