/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx.c - emits NVTX marks and ranges
 */
#include "io/nvtx.h"

#include "io/nsys_mark.h"

#include <inttypes.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT_OPS 1000000000000ull /* numbers reserved for each context; no context announces so many ops */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain; /* NULL: no tool */
static _Atomic uint64_t contexts;

static void look_for_tool(void)
{
	domain = nvtxDomainCreateA(UM_NSYS_MARKS);
}

static nvtxEventAttributes_t called(const char *text)
{
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof a);
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = text;
	return a;
}

static int mark(const struct um_nvtx *m, const struct um_activity *a)
{
	struct um_activity numbered = *a;
	nvtxEventAttributes_t attributes;
	char *text;
	int err;

	if (a->op != UM_ACT_NO_OP)
		numbered.op += m->first;
	err = um_nsys_mark_write(&numbered, &text);
	if (err || !text)
		return err;
	attributes = called(text);
	nvtxDomainMarkEx(domain, &attributes);
	free(text);
	return 0;
}

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	return a->kind == UM_ACT_HINT ? 0 : mark((struct um_nvtx *)sink, a);
}

int um_nvtx_built(void)
{
	return 1;
}

int um_nvtx_open(struct um_nvtx *m)
{
	memset(m, 0, sizeof *m);
	pthread_once(&once, look_for_tool);
	if (!domain)
		return 0;
	m->sink.feed = feed;
	m->first = atomic_fetch_add(&contexts, 1) * CONTEXT_OPS;
	m->open = 1;
	return 1;
}

static void end_range(struct um_nvtx *m)
{
	if (m->in_range)
		nvtxDomainRangeEnd(domain, m->range);
	m->in_range = 0;
}

void um_nvtx_close(struct um_nvtx *m)
{
	if (m->open)
		end_range(m);
	m->open = 0;
}

void um_nvtx_iter(struct um_nvtx *m, uint64_t n, const char *name)
{
	nvtxEventAttributes_t attributes;
	char text[128];

	if (!m->open)
		return;
	end_range(m);
	snprintf(text, sizeof text, "%.96s %" PRIu64, name ? name : "iteration", n);
	attributes = called(text);
	m->range = nvtxDomainRangeStartEx(domain, &attributes);
	m->in_range = 1;
}

int um_nvtx_hint(const struct um_nvtx *m, const struct um_activity *hint)
{
	return mark(m, hint);
}
