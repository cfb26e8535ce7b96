/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cursor.h"

#include "plan_make.h"

#define SLOTS(...) ((const int[]){__VA_ARGS__, -1})

static struct um_tensor tensor(uint64_t id, uint64_t addr, uint64_t bytes)
{
	return (struct um_tensor){.id = {id}, .addr = addr, .bytes = bytes};
}

static int op(struct um_cursor *c, const char *name, struct um_tensor *t, uint32_t access)
{
	struct um_use u = {.id = t->id, .tensor = t, .bytes = t->bytes, .touched = t->bytes, .access = access};
	struct um_op o = {.name = name, .uses = &u, .n_uses = 1};

	return um_cursor_op(c, &o);
}

/* Is the tensor that had this id what the next op uses first? 0: that has to be looked up. */
static int known(struct um_cursor *c, struct um_tensor *t, uint64_t id)
{
	const struct um_sched_op *so = um_cursor_next(c);
	struct um_use use = {.id = {id}, .tensor = t};

	return so && um_cursor_holds(c, &c->sched->uses.at[so->first_use], &use);
}

static void use_twice(void)
{
	struct um_tensor a = tensor(1, 4096, 1024), other = tensor(9, 77824, 1024);
	struct um_plan p;
	struct um_cursor c;

	um_plan_init(&p);
	make_slot(&p, 4096, 1024, -1, -1);
	make_op(&p, "x", SLOTS(0), UM_READ);
	make_op(&p, "y", SLOTS(0), UM_UPDATE);
	p.sched.slots.at[0].bound = a.id;
	p.sched.slots.at[0].bound_addr = a.addr;
	um_cursor_init(&c);
	ok(um_cursor_follow(&c, &p.sched) == 0, "the cursor follows a schedule that uses a slot twice");
	op(&c, "x", &a, UM_READ);
	is_int(op(&c, "y", &other, UM_UPDATE), 1, "another tensor at the second use leaves it");
	um_cursor_begin(&c);
	op(&c, "x", &other, UM_READ);
	is_int(op(&c, "y", &other, UM_UPDATE), 0, "the substitute of the first use is expected at the second");
	um_cursor_fini(&c);
	um_plan_fini(&p);
}

static int is_replaced(struct um_cursor *c, struct um_tensor *t, size_t use, uint64_t addr)
{
	const struct um_cursor_slot *was;

	if (op(c, use ? "y" : "x", t, UM_READ) || c->n_replaced != 1)
		return 0;
	was = um_cursor_replaced(c, use);
	return was && was->addr == addr;
}

/* Two slots; the plan keeps the tensor of the first one, and evicts that of the second one after its use. */
static void replaced(void)
{
	struct um_tensor a = tensor(1, 4096, 1024), b = tensor(2, 8192, 1024), x = tensor(9, 77824, 1024),
			 y = tensor(10, 90112, 1024);
	struct um_plan p;
	struct um_cursor c;

	um_plan_init(&p);
	make_slot(&p, 4096, 1024, -1, -1);
	make_slot(&p, 8192, 1024, -1, -1);
	make_op(&p, "x", SLOTS(0), UM_READ);
	make_op(&p, "y", SLOTS(1), UM_READ);
	p.sched.slots.at[0].bound = a.id;
	p.sched.slots.at[0].bound_addr = a.addr;
	p.sched.slots.at[1].bound = b.id;
	p.sched.slots.at[1].bound_addr = b.addr;
	um_cursor_init(&c);
	um_cursor_follow(&c, &p.sched);
	ok(is_replaced(&c, &x, 0, a.addr), "a new tensor replaces that of its slot");
	op(&c, "y", &b, UM_READ);
	is_u64(c.n_replaced, 0, "the expected tensor replaces none");
	um_cursor_follow(&c, &p.sched);
	op(&c, "x", &b, UM_READ);
	is_u64(c.n_replaced, 0, "a tensor of another slot, which stays on the device, replaces none");
	ok(is_replaced(&c, &y, 1, UINT64_MAX), "a replaced tensor that has another slot now has no address");
	p.sched.slots.at[1].flags |= UM_SLOT_SUPPLIED;
	um_cursor_follow(&c, &p.sched);
	ok(is_replaced(&c, &b, 0, a.addr), "a tensor of a slot whose tensor leaves after its use may not be resident");
	op(&c, "y", &y, UM_READ);
	is_u64(c.n_replaced, 0, "a supplied tensor replaces none: the plan prefetches it");
	um_cursor_fini(&c);
	um_plan_fini(&p);
}

#define ROW 12

/* A row of equal ops, each on two tensors of its own, of which the third is dropped. */
static void dropped_in_row(void)
{
	static const char *const names[] = {"a", "b"};
	struct um_tensor t[ROW][2];
	struct um_plan p;
	struct um_cursor c;
	int followed = 0;

	um_plan_init(&p);
	for (int i = 0; i < ROW; i++)
		for (int k = 0; k < 2; k++) {
			uint64_t addr = 4096 * (uint64_t)(2 * i + k + 1);

			t[i][k] = tensor((uint64_t)(2 * i + k + 1), addr, 1024);
			make_slot(&p, addr, 1024, -1, -1);
			make_op(&p, names[k], SLOTS(2 * i + k), UM_READ);
			p.sched.slots.at[2 * i + k].bound = t[i][k].id;
			p.sched.slots.at[2 * i + k].bound_addr = addr;
		}
	um_cursor_init(&c);
	um_cursor_follow(&c, &p.sched);
	for (int i = 0; i < ROW; i++)
		for (int k = 0; i != 2 && k < 2; k++)
			followed += !op(&c, names[k], &t[i][k], UM_READ);
	is_int(followed, 5, "a row of equal ops of which one is dropped is left at its second tensor");
	um_cursor_begin(&c);
	followed = 0;
	for (int i = 0; i < ROW; i++)
		for (int k = 0; k < 2; k++)
			followed += !op(&c, names[k], &t[i][k], UM_READ);
	is_int(followed, 2 * ROW, "the row as it was is followed again");
	um_cursor_fini(&c);
	um_plan_fini(&p);
}

int main(void)
{
	struct um_plan p;
	struct um_cursor c;
	struct um_tensor a = tensor(1, 4096, 1024), b = tensor(2, 8192, 1024), born = tensor(3, 12288, 512),
			 other = tensor(9, 77824, 1024), small = tensor(10, 90112, 100),
			 second = tensor(11, 102400, 1024), third = tensor(12, 114688, 1024);

	um_plan_init(&p);
	make_slot(&p, 4096, 1024, -1, -1);
	make_slot(&p, 8192, 1024, -1, -1);
	make_slot(&p, 12288, 512, 1, 2);
	make_op(&p, "x", SLOTS(0), UM_READ);
	make_op(&p, "y", SLOTS(2), UM_WRITE);
	make_op(&p, "z", SLOTS(1), UM_UPDATE);
	p.sched.slots.at[0].bound = a.id;
	p.sched.slots.at[0].bound_addr = a.addr;
	p.sched.slots.at[1].bound = b.id;
	p.sched.slots.at[1].bound_addr = b.addr;

	um_cursor_init(&c);
	is_int(um_cursor_begin(&c), 1, "nothing to follow: an iteration begins all the same");
	ok(um_cursor_follow(&c, &p.sched) == 0, "the cursor follows a schedule");
	is_u64(c.n_moved, 1, "a slot yet to be born is counted as moved");
	is_u64(um_cursor_place(&c, 512, 0), 12288, "the next birth has a place");
	is_u64(um_cursor_place(&c, 513, 0), UINT64_MAX, "another size has none");
	is_u64(um_cursor_place(&c, 512, 1), UINT64_MAX, "the cursor has no place for another slot");
	is_int(op(&c, "x", &a, UM_READ), 0, "first op fits");
	is_int(um_cursor_alloc(&c, &born), 0, "the birth fits the schedule");
	is_u64(c.n_moved, 0, "no slot is counted as moved if all tensors are at their planned places");
	is_u64(um_cursor_place(&c, 512, 0), UINT64_MAX, "no birth is left");
	is_int(op(&c, "y", &born, UM_WRITE), 0, "op on the newborn fits");
	is_int(op(&c, "z", &b, UM_UPDATE), 0, "last op fits");
	ok(um_cursor_next(&c) == NULL, "no op is left");
	is_int(um_cursor_begin(&c), 1, "the iteration was whole");
	ok(known(&c, &a, 1), "the tensor of the slot is known");
	ok(!known(&c, &b, 2), "another is not");
	a.n_children = 1;
	ok(!known(&c, &a, 1), "a tensor with parts is not known");
	a.n_children = 0;
	a.id.v = 0;
	ok(!known(&c, &a, 1), "a dead tensor is not known");
	a.id.v = 1;
	um_cursor_begin(&c);

	is_int(op(&c, "x", &other, UM_READ), 0, "a slot may be another tensor of the same size at its first use");
	is_u64(c.n_rebound, 1, "the substitution is counted");
	is_u64(c.slots[0].addr, other.addr, "the slot has the address of the substitute");
	is_u64(c.slots[0].off, other.addr - 4096, "the slot has its offset from the planned place");
	is_u64(c.n_moved, 2, "the substituted slot is counted as moved, beside the one yet to be born");
	is_int(um_cursor_alloc(&c, &small), 1, "a birth of another size leaves the schedule");
	is_int(op(&c, "y", &born, UM_WRITE), 1, "left is left");
	is_int(um_cursor_begin(&c), 0, "the iteration ended early");

	is_int(op(&c, "x", &small, UM_READ), 1, "a use of another size leaves the schedule");
	um_cursor_begin(&c);
	is_int(op(&c, "q", &other, UM_READ), 1, "another op leaves it");
	um_cursor_begin(&c);
	is_int(op(&c, "x", &other, UM_UPDATE), 1, "another access leaves it");
	um_cursor_begin(&c);
	is_int(op(&c, "x", &other, UM_READ), 0, "the next iteration may follow again");
	um_cursor_alloc(&c, &born);
	op(&c, "y", &born, UM_WRITE);
	op(&c, "z", &b, UM_UPDATE);
	is_int(op(&c, "z", &b, UM_UPDATE), 1, "an op too many leaves it");
	um_cursor_begin(&c);
	is_int(op(&c, "x", &third, UM_READ), 0, "one new tensor is no divergence");
	is_u64(c.n_rebound, 1, "its slot is substituted, the one yet to be born is not");
	um_cursor_alloc(&c, &born);
	op(&c, "y", &born, UM_WRITE);
	is_int(op(&c, "z", &second, UM_UPDATE), 1, "a second one with many bytes is");
	um_cursor_begin(&c);
	op(&c, "x", &b, UM_READ);
	um_cursor_alloc(&c, &born);
	op(&c, "y", &born, UM_WRITE);
	is_int(op(&c, "z", &a, UM_UPDATE), 0, "tensors of the schedule may swap");
	um_cursor_fini(&c);

	/* Two slots that swap every iteration. */
	p.sched.slots.at[0].carry = 1;
	p.sched.slots.at[1].carry = 0;
	ok(um_cursor_follow(&c, &p.sched) == 0, "the cursor follows a new schedule");
	op(&c, "x", &a, UM_READ);
	um_cursor_alloc(&c, &born);
	op(&c, "y", &born, UM_WRITE);
	op(&c, "z", &b, UM_UPDATE);
	um_cursor_begin(&c);
	is_u64(c.slots[0].id.v, b.id.v, "slots that swap are bound to each other's tensor");
	is_u64(c.slots[1].addr, a.addr, "the slot has its new address");
	is_u64(c.slots[2].id.v, 0, "a slot yet to be born is unbound");
	ok(known(&c, &b, 2), "the swapped tensor is known in its slot");
	is_int(op(&c, "x", &b, UM_READ), 0, "the swapped use fits the schedule");
	is_u64(c.n_rebound, 0, "no slot was substituted");
	um_cursor_fini(&c);

	/* What is born is the next iteration's slot 0: its places are two. */
	p.sched.slots.at[0].bytes = 512;
	p.sched.slots.at[0].carry = 2;
	ok(um_cursor_follow(&c, &p.sched) == 0, "the cursor follows a new schedule");
	is_u64(um_cursor_place(&c, 512, 0), 12288, "the first slot has its place");
	is_u64(um_cursor_place(&c, 512, 1), 4096, "the second slot has the place of the slot that it becomes");
	um_cursor_fini(&c);
	um_plan_fini(&p);
	use_twice();
	replaced();
	dropped_in_row();
	return tap_done();
}
