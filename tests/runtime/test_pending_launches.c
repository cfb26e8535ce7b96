/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/pending_launches.h"

#include "model/tensor.h"

#include "tap.h"

#include <pthread.h>

#define KIB 1024u

static struct um_pending_launches pending;
static struct um_tensor tensor = {.addr = 64 * KIB};
static struct um_use uses[UM_PENDING_RANGES + 1];

static void *call(void *arg)
{
	(void)arg;
	um_pending_launches_call(&pending);
	return NULL;
}

/* A call of umadv_op: of the first `*n` ranges. */
static void *announce(void *n)
{
	um_pending_launches_call(&pending);
	if (pending.shared)
		um_pending_launches_op(&pending, uses, *(const uint32_t *)n);
	return NULL;
}

static void *announce_and_call(void *n)
{
	announce(n);
	return call(NULL);
}

static void in_thread(void *(*fn)(void *), uint32_t n)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, &n) || pthread_join(thread, NULL))
		tap_bail("no thread");
}

static int is_used(uint64_t addr, uint64_t bytes)
{
	return um_pending_launches_use(&pending, addr, bytes);
}

static void begin(void)
{
	memset(&pending, 0, sizeof pending);
	for (uint32_t i = 0; i < UM_PENDING_RANGES + 1; i++)
		uses[i] = (struct um_use){.tensor = &tensor, .off = i * 8 * KIB, .bytes = 4 * KIB};
}

static void one_thread(void)
{
	uint32_t n = 1;

	begin();
	announce(&n);
	announce(&n);
	ok(!is_used(tensor.addr, 1), "the only thread has launched its ops when it calls again");
}

static void two_threads(void)
{
	uint32_t n = 2;

	begin();
	announce(&n);
	in_thread(call, 0);
	ok(is_used(0, 1), "when a second thread calls, the first one's op may use anything");
	announce(&n);
	ok(is_used(tensor.addr, 1) && is_used(tensor.addr + 8 * KIB, 1), "an op is pending with its ranges");
	ok(!is_used(tensor.addr + 4 * KIB, 4 * KIB), "what lies between them is not used");
	ok(!is_used(tensor.addr - 4 * KIB, 4 * KIB), "nor is what lies before them");
	in_thread(call, 0);
	ok(is_used(tensor.addr, 1), "another thread's call does not say that it was launched");
	call(NULL);
	ok(!is_used(tensor.addr, 1), "the next call of its thread does");
	n = UM_PENDING_RANGES + 1;
	announce(&n);
	ok(is_used(0, 1), "an op with many ranges may use anything");
}

static void many_threads(void)
{
	begin();
	in_thread(call, 0);
	call(NULL);
	for (int i = 0; i < 2 * UM_PENDING_THREADS; i++)
		in_thread(announce_and_call, 1);
	ok(!pending.overflow, "threads without a pending op take no place");
	for (int i = 0; i < UM_PENDING_THREADS; i++)
		in_thread(announce, 1);
	ok(pending.overflow && is_used(0, 1), "with more pending ops than there is place for, any range may be used");
}

int main(void)
{
	one_thread();
	two_threads();
	many_threads();
	return tap_done();
}
