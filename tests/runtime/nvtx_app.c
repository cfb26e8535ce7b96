/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx_app.c - a program with NVTX ranges, in C and C++, as one program or with a library that has ranges as well
 *
 *     nvtx_app KIND        prints the number of iterations, and of those with hints
 *
 * KIND says how its six steps are marked. With -DLIBRARY the file is that library.
 */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#ifdef __cplusplus
extern "C"
#endif
	void
	library_range(const char *name);

#ifdef LIBRARY
void library_range(const char *name)
{
	nvtxRangePushA(name);
	nvtxRangePop();
}
#else
#include "umadvise.h"

enum { TENSORS = 8, STEPS = 6 };

static struct umadv *adv;
static void *w[TENSORS];
static nvtxDomainHandle_t domain;
static nvtxStringHandle_t string;
static const char *kind;

static int is(const char *what)
{
	return strcmp(kind, what) == 0;
}

static void open_adv(void)
{
	struct umadv_options o;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 20 << 20;
	o.referee = UMADV_REFEREE_OFF; /* plans are followed even where they gain nothing */
	if (umadv_open(&adv, &o))
		_exit(2);
	for (int i = 0; i < TENSORS; i++)
		if (umadv_alloc(adv, &w[i], 4 << 20, "w", UMADV_PARAM))
			_exit(2);
}

/* So irregular that no iteration is found in it. */
static void ops(int step)
{
	nvtxRangePushA("inner");
	for (int i = 0; i < TENSORS; i++) {
		umadv_op(adv, NULL, "op", UMADV_USES(UMADV_UPDATE_RANGE(w[i], 4096 + 256 * (size_t)step)));
		umadv_sim_run(adv, NULL, NULL, NULL);
	}
	nvtxRangePop();
}

static nvtxEventAttributes_t attributes(const char *text)
{
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof a);
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = text;
	return a;
}

static void *pushes(void *name)
{
	nvtxRangePushA((const char *)name);
	return NULL;
}

/* Returns the range to be ended. */
static nvtxRangeId_t mark(int step)
{
	nvtxEventAttributes_t a;
	nvtxRangeId_t id = 0;
	pthread_t thread;
	char name[40];

	snprintf(name, sizeof name, "Train step %d", step);
	a = attributes(name);
	if (is("push") || is("before") || is("both"))
		nvtxRangePushA(name);
	else if (is("push-ex"))
		nvtxRangePushEx(&a);
	else if (is("wide"))
		nvtxRangePushW(L"Train step");
	else if (is("start"))
		id = nvtxRangeStartA(name);
	else if (is("domain"))
		id = nvtxDomainRangeStartEx(domain, &a);
	else if (is("domain-push"))
		nvtxDomainRangePushEx(domain, &a);
	else if (is("library"))
		library_range(name);
	else if (is("thread") && !pthread_create(&thread, NULL, pushes, name))
		pthread_join(thread, NULL);
	if (is("string")) {
		a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
		a.message.registered = string;
		nvtxDomainRangePushEx(domain, &a);
	}
	if (is("both"))
		umadv_iter(adv, NULL);
	return id;
}

static void print(void)
{
	struct umadv_stats s;

	memset(&s, 0, sizeof s);
	s.struct_size = sizeof s;
	umadv_stats_get(adv, &s);
	printf("%llu %llu\n", (unsigned long long)s.iterations, (unsigned long long)s.hinted_iterations);
	fflush(stdout);
}

static void run(void)
{
	open_adv();
	if (is("before"))
		nvtxMarkA("first");
	domain = nvtxDomainCreateA("trainer");
	string = nvtxDomainRegisterStringA(domain, "Train step");
	for (int i = 0; i < STEPS; i++) {
		nvtxRangeId_t id = mark(i);

		ops(is("irregular") ? i : 0);
		nvtxMarkA("Train step mark");
		nvtxRangePop();
		if (id)
			nvtxDomainRangeEnd(domain, id);
	}
	print();
	umadv_close(adv);
}

int main(int argc, char **argv)
{
	kind = argc > 1 ? argv[1] : "push";
	if (is("no-context")) {
		nvtxRangePushA("Train step 0");
		nvtxRangePop();
		puts("0 0");
	} else if (is("fork")) {
		int status = 1;

		kind = "push";
		nvtxRangePushA("Train step 0");
		if (!fork()) {
			run();
			_exit(0);
		}
		wait(&status);
		return status != 0;
	} else {
		run();
	}
	return 0;
}
#endif
