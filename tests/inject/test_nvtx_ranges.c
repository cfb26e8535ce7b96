/* SPDX-License-Identifier: Apache-2.0
 *
 * The NVTX ranges of a thread as a path.
 */
#include "gpu/nvtx_listen.h"
#include "inject/nvtx_ranges.h"
#include "tap.h"

#include <pthread.h>

static const char *path(void)
{
	return um_nvtx_follower->label() ? um_nvtx_follower->label() : "none";
}

static void push(const char *text)
{
	um_nvtx_follower->push(NULL, NULL, text);
}

static void pop(void)
{
	um_nvtx_follower->pop(NULL);
}

static void test_nesting(void)
{
	um_nvtx_follower->pop(NULL);
	is_str(path(), "none", "a pop without a push is no range");
	push("model");
	push("layer 3");
	is_str(path(), "model/layer 3", "ranges are joined from the outermost to the innermost");
	pop();
	push("loss");
	is_str(path(), "model/loss", "a pop leaves the innermost range");
	pop();
	push(NULL);
	push("kernel");
	is_str(path(), "model/kernel", "a range without a text is not in the path");
	pop();
	pop();
	is_str(path(), "model", "its pop is counted");
	pop();
	is_str(path(), "none", "after the last pop there is no range");
}

static void test_domains(void)
{
	int a, b;

	push("model");
	um_nvtx_follower->push(&a, "data", "load");
	um_nvtx_follower->push(&b, NULL, "net");
	is_str(path(), "model/data/load/net", "a range of a domain has its name before it, if it has one");
	pop();
	is_str(path(), "data/load/net", "a pop of a domain leaves the ranges of others");
	um_nvtx_follower->pop(&a);
	is_str(path(), "net", "a pop cuts out the latest range of its domain");
	pop();
	is_str(path(), "net", "a pop of a domain without ranges changes nothing");
	um_nvtx_follower->pop(&b);
	is_str(path(), "none", "the last range is left");
}

static void test_counters(void)
{
	push("aten::linear, seq = 12, op_id = 34, sizes = [[2, 2]]");
	push("aten::addmm, op_id = 35");
	is_str(path(), "aten::linear/aten::addmm", "counters of emit_nvtx are left out");
	pop();
	pop();
	for (int i = 1; i <= 2; i++) {
		push(i == 1 ? "step 8" : "step 9");
		is_str(path(), "step", "a number of an outermost range that only grows is left out");
		push("layer 1");
		is_str(path(), "step/layer 1", "a number of an inner range is not");
		pop();
		pop();
	}
	push("step 1");
	is_str(path(), "step 1", "a number that returns to a smaller one is kept");
	pop();
	push("step 99999");
	is_str(path(), "step 99999", "and so are those after it");
	pop();
	push("17");
	is_str(path(), "none", "a range of nothing but a number has no text");
	pop();
}

static void test_bounds(void)
{
	char text[600];

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	push(text);
	push(text);
	is_str(path(), text, "a range that has no room in the path has no text");
	pop();
	push("y");
	is_int(strcmp(path() + sizeof text - 1, "/y"), 0, "a shorter one after it does");
	pop();
	pop();
	for (int i = 0; i < 100; i++)
		push("z");
	is_u64(strlen(path()), 127, "64 ranges are in the path at most");
	for (int i = 0; i < 37; i++)
		pop();
	is_u64(strlen(path()), 125, "the others are counted");
	for (int i = 0; i < 63; i++)
		pop();
	is_str(path(), "none", "all are left");
}

static void *other(void *arg)
{
	*(int *)arg = um_nvtx_follower->label() == NULL;
	push("other");
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int none = 0;

	ok(!um_nvtx_follower, "without um_nvtx_ranges_keep ranges are not followed");
	um_nvtx_ranges_keep();
	test_nesting();
	test_domains();
	test_counters();
	test_bounds();
	push("mine");
	ok(!pthread_create(&thread, NULL, other, &none) && !pthread_join(thread, NULL) && none,
	   "a thread has no range of another thread");
	is_str(um_nvtx_follower->label(), "mine", "nor has the thread that created it");
	return tap_done();
}
