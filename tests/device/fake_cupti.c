/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cupti.c - a libcupti.so.13 that does as it is told: how many records it has, how many buffers it keeps, which
 * calls fail with what
 *
 * Its soname is that of the real one: who has opened this one by its path is given it by that name, too.
 */
#include "fake_cupti.h"

#include <cupti.h>
#include <pthread.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef CUpti_ActivityUnifiedMemoryCounter3 record;

EXPORT struct fake_cupti fake_cupti = {.version = CUPTI_API_VERSION};

static CUpti_BuffersCallbackRequestFunc wants_buffer;
static CUpti_BuffersCallbackCompleteFunc has_buffer;
static CUpti_ActivityUnifiedMemoryCounterKind kinds[8];
static unsigned n_kinds;

EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
	*version = fake_cupti.version;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp)
{
	*timestamp = 1000;
	return (CUptiResult)fake_cupti.timestamp;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
							   CUpti_BuffersCallbackCompleteFunc complete)
{
	wants_buffer = request;
	has_buffer = complete;
	return (CUptiResult)fake_cupti.callbacks;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityConfigureUnifiedMemoryCounter(CUpti_ActivityUnifiedMemoryCounterConfig *config,
								       uint32_t count)
{
	n_kinds = count < 8 ? count : 8;
	for (unsigned i = 0; i < n_kinds; i++)
		kinds[i] = config[i].kind;
	return (CUptiResult)fake_cupti.configure;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
	fake_cupti.enabled += kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;
	return (CUptiResult)fake_cupti.enable;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
	fake_cupti.enabled -= kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **at)
{
	uint8_t *next = *at ? (uint8_t *)*at + sizeof(record) : buffer;

	if (next + sizeof(record) > buffer + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*at = (CUpti_Activity *)(void *)next;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *n)
{
	(void)context;
	(void)stream;
	*n = fake_cupti.dropped;
	fake_cupti.dropped = 0;
	return CUPTI_SUCCESS;
}

static record one(unsigned i)
{
	record r;

	memset(&r, 0, sizeof r);
	r.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;
	r.counterKind = fake_cupti.other ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING : kinds[i % n_kinds];
	r.value = 4096;
	r.start = 2000 + i;
	r.end = 2100 + i;
	r.address = 0x7f0000000000u + i * 4096ull;
	r.flags = fake_cupti.flags;
	return r;
}

/* Fills so many buffers before it gives the first one back. */
static void *deliver(void *unused)
{
	static struct {
		uint8_t *at;
		size_t size, valid;
	} held[64];
	unsigned n = 0;

	(void)unused;
	for (unsigned i = 0; i < fake_cupti.records;) {
		size_t size = 0, most = 0, fits;
		uint8_t *buffer = NULL;

		wants_buffer(&buffer, &size, &most);
		if (!buffer) {
			fake_cupti.dropped += fake_cupti.records - i;
			break;
		}
		fits = size / sizeof(record);
		held[n].at = buffer;
		held[n].size = size;
		held[n].valid = 0;
		for (size_t k = 0; k < fits && i < fake_cupti.records; k++, i++) {
			record r = one(i);

			memcpy(buffer + k * sizeof r, &r, sizeof r);
			held[n].valid += sizeof r;
		}
		n++;
		if (n <= fake_cupti.holds)
			continue;
		while (n--)
			has_buffer(NULL, 0, held[n].at, held[n].size, held[n].valid);
		n = 0;
	}
	while (n--)
		has_buffer(NULL, 0, held[n].at, held[n].size, held[n].valid);
	fake_cupti.records = 0;
	return NULL;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
	pthread_t thread;

	fake_cupti.forced += flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
	if (!pthread_create(&thread, NULL, deliver, NULL))
		pthread_join(thread, NULL);
	return (CUptiResult)fake_cupti.flush;
}
