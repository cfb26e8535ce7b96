/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules that decide what may be discarded, as the truth table of runtime/discard_guard.h.
 */
#include "runtime/discard_guard.h"

#include "gpu/null.h"

#include "tap.h"

#define B UM_BLOCK_BYTES
#define BEFORE 100 /* ops announced before this iteration */

static struct um_registry registry;
static struct um_arena_pool pool;
static struct um_gpu *gpu;
static uint64_t base; /* of the library's own memory */

static struct um_tensor *live(uint64_t addr, uint64_t bytes, unsigned flags, uint64_t used_op)
{
	struct um_tensor *t = NULL;

	if (um_registry_add(&registry, addr, bytes, "t", UM_ROLE_OTHER, flags, &t))
		tap_bail("no tensor");
	t->used_op = used_op;
	return t;
}

static int allowed(uint64_t addr, uint64_t bytes, const struct um_use *uses, uint32_t n, enum um_executor_waits waits)
{
	struct um_discard_guard g = {&registry, &pool, uses, n, BEFORE};

	return um_discard_allowed(&g, addr, bytes, waits);
}

enum op { NO_USE, READS, UPDATES, OVERWRITES, OVERWRITES_HALF, OVERWRITES_AND_READS, N_OPS };

static const char *const op_names[N_OPS] = {"does not use it",
					    "reads it",
					    "updates it",
					    "overwrites it",
					    "overwrites half of it",
					    "overwrites it and reads a part"};

static uint32_t use(struct um_use *u, struct um_tensor *t, enum op op)
{
	static const unsigned access[N_OPS] = {0, UM_READ, UM_UPDATE, UM_WRITE, UM_WRITE, UM_WRITE};

	if (op == NO_USE)
		return 0;
	u[0] = (struct um_use){.id = t->id,
			       .tensor = t,
			       .bytes = op == OVERWRITES_HALF ? t->bytes / 2 : t->bytes,
			       .access = access[op]};
	if (op != OVERWRITES_AND_READS)
		return 1;
	u[1] = (struct um_use){.id = t->id, .tensor = t, .off = t->bytes / 4, .bytes = 8, .access = UM_READ};
	return 2;
}

/* Rows: what the tensor is; columns: what the op at hand does, if it waits for the discard. */
static const struct {
	const char *what;
	unsigned flags;
	uint64_t used_op;
	const char *waiting; /* by op: y or n */
	int later; /* if only later ops wait, whatever the op at hand does */
} rows[] = {
	{"an ordinary tensor", 0, BEFORE, "nnnynn", 0},
	{"an ordinary tensor that this iteration used", 0, BEFORE + 1, "nnnynn", 0},
	{"a tensor declared dead", UM_TENSOR_DEAD, BEFORE + 1, "yyyyyy", 1},
	{"a transient tensor that this iteration has not used", UM_TENSOR_TRANSIENT, BEFORE, "yyyyyy", 1},
	{"a transient tensor that this iteration used", UM_TENSOR_TRANSIENT, BEFORE + 1, "nnnynn", 0},
	{"a transient tensor declared dead", UM_TENSOR_TRANSIENT | UM_TENSOR_DEAD, BEFORE + 1, "yyyyyy", 1},
};

static void test_table(void)
{
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
		for (int op = 0; op < N_OPS; op++) {
			struct um_tensor *t = live(base + B, B, rows[r].flags, rows[r].used_op);
			struct um_use u[2];
			uint32_t n = use(u, t, (enum op)op);

			is_int(allowed(base + B, B, u, n, UM_OP_WAITS), rows[r].waiting[op] == 'y' ? 2 : 0,
			       "discarding %s is %s if the op that waits %s", rows[r].what,
			       rows[r].waiting[op] == 'y' ? "allowed" : "refused", op_names[op]);
			is_int(allowed(base + B, B, u, n, UM_LATER_OPS_WAIT), rows[r].later ? 2 : 0,
			       "discarding %s is %s if only later ops wait (the op %s)", rows[r].what,
			       rows[r].later ? "allowed" : "refused", op_names[op]);
			is_int(allowed(base + B, B, u, n, UM_NO_OP_WAITS), 0,
			       "discarding %s is refused if no op waits (the op %s)", rows[r].what, op_names[op]);
			um_registry_remove(&registry, t);
		}
}

static void test_ranges(void)
{
	struct um_tensor *t;

	is_int(allowed(base, 2 * B, NULL, 0, UM_LATER_OPS_WAIT), 1, "memory without a live tensor may be discarded");
	is_int(allowed(base, 2 * B, NULL, 0, UM_NO_OP_WAITS), 1,
	       "memory without a live tensor may be discarded even if no op waits");
	is_int(allowed(base - B, B, NULL, 0, UM_LATER_OPS_WAIT), 0,
	       "memory that is not the library's own is never discarded");
	is_int(allowed(pool.regions.at[0].addr + pool.regions.at[0].bytes - B, 2 * B, NULL, 0, UM_LATER_OPS_WAIT), 0,
	       "a range that leaves its region is never discarded");
	t = live(base + B, B, 0, 0);
	is_int(allowed(base, B, NULL, 0, UM_LATER_OPS_WAIT), 1,
	       "a range that ends where a tensor begins may be discarded");
	is_int(allowed(base + 2 * B, B, NULL, 0, UM_LATER_OPS_WAIT), 1,
	       "a range that begins where a tensor ends may be discarded");
	is_int(allowed(base, B + 1, NULL, 0, UM_LATER_OPS_WAIT), 0,
	       "one needed byte at the end refuses the whole range");
	is_int(allowed(base + 2 * B - 1, B, NULL, 0, UM_LATER_OPS_WAIT), 0,
	       "one needed byte at the start refuses the whole range");
	um_registry_remove(&registry, t);
	is_int(allowed(base, 3 * B, NULL, 0, UM_LATER_OPS_WAIT), 1, "a freed tensor's memory may be discarded");
}

static void test_nested(void)
{
	struct um_tensor *outer = live(base, 4 * B, 0, 0), *inner = live(base + B, B, UM_TENSOR_DEAD, 0);
	struct um_use u[2];
	uint32_t n;

	is_int(allowed(base + B, B, NULL, 0, UM_LATER_OPS_WAIT), 0, "a dead part of a needed tensor is needed");
	outer->flags |= UM_TENSOR_DEAD;
	is_int(allowed(base, 4 * B, NULL, 0, UM_LATER_OPS_WAIT), 2, "a dead tensor with a dead part may be discarded");
	inner->flags = 0;
	is_int(allowed(base, 4 * B, NULL, 0, UM_LATER_OPS_WAIT), 0, "a needed part of a dead tensor is needed");
	is_int(allowed(base + 2 * B, B, NULL, 0, UM_LATER_OPS_WAIT), 2, "the rest of the dead tensor may be discarded");
	outer->flags = 0;
	n = use(u, outer, OVERWRITES);
	is_int(allowed(base + B, B, u, n, UM_OP_WAITS), 2, "an op that overwrites a tensor overwrites its parts");
	n = use(u, inner, OVERWRITES);
	is_int(allowed(base + B, B, u, n, UM_OP_WAITS), 2,
	       "an op that overwrites a part overwrites that part of the whole");
	is_int(allowed(base + B, B + 1, u, n, UM_OP_WAITS), 0,
	       "an op that overwrites a part does not overwrite what follows it");
	um_registry_remove(&registry, inner);
	um_registry_remove(&registry, outer);
}

static void test_users(void)
{
	const struct um_discard_guard g = {&registry, &pool, NULL, 0, BEFORE};
	struct um_tensor *outer = live(base, 4 * B, 0, 0), *inner = live(base + B, B, 0, 0);

	outer->streams = 1;
	inner->streams = 2;
	is_int((int)um_discard_users(&g, base, B), 1, "a tensor's users are the streams of its ops");
	is_int((int)um_discard_users(&g, base + B, B), 3, "the users of a part are those of the whole, too");
	is_int((int)um_discard_users(&g, base + B / 2, B), 3, "a tensor that begins inside the range counts");
	is_int((int)um_discard_users(&g, base + 2 * B, B), 1, "a tensor that ends before the range does not");
	is_int((int)um_discard_users(&g, base + 4 * B, B), 0, "memory without a tensor has no users");
	um_registry_remove(&registry, inner);
	um_registry_remove(&registry, outer);
}

int main(void)
{
	if (um_null_open(&gpu, 1ull << 40, 0))
		tap_bail("no device");
	um_registry_init(&registry);
	um_arena_pool_init(&pool, gpu);
	if (um_arena_pool_grow(&pool, 64 * B, UM_ARENA_POOL_MAIN, &base))
		tap_bail("no memory");
	test_table();
	test_ranges();
	test_nested();
	test_users();
	um_registry_fini(&registry);
	um_arena_pool_fini(&pool);
	gpu->api->close(gpu);
	return tap_done();
}
