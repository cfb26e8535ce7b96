/* SPDX-License-Identifier: Apache-2.0
 *
 * The heap under recorded workloads: how many 2 MiB blocks hold something alive, against the bytes that are alive. What
 * is resident is whole blocks, so this is what sharing them costs.
 */
#include "io/umtrace.h"
#include "record/heap.h"
#include "tap.h"

#define BASE (1ull << 40)
#define ROOM (8ull << 30)

struct use {
	struct um_heap heap;
	uint64_t *addr, *bytes; /* by trace id */
	uint32_t *holds; /* by block: live tensors in it */
	uint64_t live, blocks, most_live, most_blocks;
	int wrong;
};

static void count(struct use *u, uint64_t addr, uint64_t bytes, int alive)
{
	for (uint64_t b = (addr - BASE) / UM_BLOCK_BYTES; b <= (addr - BASE + bytes - 1) / UM_BLOCK_BYTES; b++) {
		if (alive)
			u->blocks += !u->holds[b]++;
		else
			u->blocks -= !--u->holds[b];
	}
	u->live = alive ? u->live + bytes : u->live - bytes;
}

static void play(struct use *u, const struct um_event *ev)
{
	uint64_t id, addr;

	if (ev->kind == UM_EV_ALLOC) {
		id = ev->alloc.id.v;
		if (um_heap_alloc_aligned(&u->heap, ev->alloc.bytes, &addr)) {
			u->wrong = 1;
			return;
		}
		u->addr[id] = addr;
		u->bytes[id] = ev->alloc.bytes;
		count(u, addr, ev->alloc.bytes, 1);
	} else if (ev->kind == UM_EV_FREE) {
		id = ev->free.id.v;
		count(u, u->addr[id], u->bytes[id], 0);
		um_heap_free(&u->heap, u->addr[id], u->bytes[id]);
	}
	if (u->live > u->most_live)
		u->most_live = u->live;
	if (u->blocks > u->most_blocks)
		u->most_blocks = u->blocks;
}

static uint64_t most_ids(const struct um_trace *t)
{
	uint64_t most = 0;

	for (size_t i = 0; i < um_trace_length(t); i++)
		if (um_trace_event(t, i)->kind == UM_EV_ALLOC && um_trace_event(t, i)->alloc.id.v > most)
			most = um_trace_event(t, i)->alloc.id.v;
	return most + 1;
}

static void trace_case(const char *dir, const char *name)
{
	struct use u = {.wrong = 0};
	struct um_trace *t;
	struct um_diag why;
	char path[4096];
	double ratio;

	snprintf(path, sizeof path, "%s/%s.umtrace.gz", dir, name);
	um_diag_init(&why, path);
	if (um_trace_load(&t, path, &why)) {
		ok(0, "%s: %s", name, why.text);
		return;
	}
	u.addr = calloc(most_ids(t), sizeof *u.addr);
	u.bytes = calloc(most_ids(t), sizeof *u.bytes);
	u.holds = calloc(ROOM / UM_BLOCK_BYTES, sizeof *u.holds);
	um_heap_init(&u.heap);
	if (!u.addr || !u.bytes || !u.holds || um_heap_add_region(&u.heap, BASE, ROOM))
		abort();
	for (size_t i = 0; i < um_trace_length(t) && !u.wrong; i++)
		play(&u, um_trace_event(t, i));
	ratio = (double)(u.most_blocks * UM_BLOCK_BYTES) / (double)u.most_live;
	ok(!u.wrong && ratio <= 1.03, "%s: blocks in use at most 3 %% over the bytes alive", name);
	diag("  %.4f", ratio);
	um_heap_fini(&u.heap);
	free(u.addr);
	free(u.bytes);
	free(u.holds);
	um_trace_free(t);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"alexnet_b200", "cg_laplace3d", "cifar_vgg16_b100",	  "gpt2_small",
					    "lstm_lm",	    "resnet50",	    "transformer_varlen", "vgg16"};
	static char dir[4000];
	const char *top = getenv("top_srcdir");

	snprintf(dir, sizeof dir, "%s/tests/data", top ? top : ".");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		trace_case(argc > 1 ? argv[1] : dir, names[i]);
	return tap_done();
}
