/* SPDX-License-Identifier: Apache-2.0
 *
 * umplan: what a file becomes, defaults of keys that may be missing, and that writing and reading again changes
 * nothing.
 */
#include "io/plan_file.h"
#include "tap.h"

#include <errno.h>
#include <unistd.h>

static char tmp[64];

#define HEAD                                                                                                           \
	"{\"umplan\":1,\"signature\":\"ab\",\"ops\":2,\"slots\":4,\"budget\":99,\"h2d\":1e9,\"d2h\":2e9}\n"            \
	"{\"ev\":\"slot\",\"s\":0,\"bytes\":64,\"birth\":-1,\"death\":-1}\n"                                           \
	"{\"ev\":\"slot\",\"s\":1,\"bytes\":64,\"birth\":1,\"death\":2}\n"                                             \
	"{\"ev\":\"slot\",\"s\":2,\"bytes\":64,\"birth\":0,\"death\":0}\n"                                             \
	"{\"ev\":\"slot\",\"s\":3,\"bytes\":64,\"birth\":-1,\"death\":1}\n"

#define TAIL "{\"ev\":\"op\",\"i\":1,\"name\":\"b\",\"r\":[],\"w\":[1],\"ns\":5}\n"

static void load(struct um_plan *p, const char *text)
{
	struct um_diag d;

	um_plan_init(p);
	if (um_plan_read_mem(text, strlen(text), p, &d) == 0)
		return;
	diag("refused: %" PRIu64 ": %s", d.line, d.text);
	tap_bail("a text of this test is refused");
}

static void check_defaults(void)
{
	struct um_plan p;
	const struct um_slot *s;

	load(&p, HEAD "{\"ev\":\"op\",\"i\":0,\"name\":\"a\",\"r\":[0],\"w\":[2],\"ns\":7}\n" TAIL
		      "{\"ev\":\"hint\",\"at\":1,\"after\":0,\"kind\":\"evict\",\"s\":0,\"off\":8,\"bytes\":16}\n"
		      "{\"ev\":\"hint\",\"at\":1,\"kind\":\"advise\",\"s\":0,\"off\":0,\"bytes\":1,\"advice\":"
		      "\"accessed_by\"}\n");
	s = p.sched.slots.at;
	is_u64(p.sched.signature, 0xab, "the signature is read");
	is_u64(p.d2h, 2000000000, "the rate is read");
	ok(s[0].carry == 0 && s[2].carry == 2, "a slot that lives on carries itself");
	ok(s[1].carry == UM_NO_SLOT && s[3].carry == UM_NO_SLOT, "a slot that ends carries none");
	ok(s[0].place == UINT64_MAX && s[0].flags == 0 && s[0].bound.v == 0,
	   "missing keys give no place, no flags and no binding");
	is_int((long long)p.sched.births.n, 2, "both births are read");
	ok(p.sched.births.at[0] == 2 && p.sched.births.at[1] == 1, "births are in the order of the ops");
	ok(s[2].born_ord == 0 && s[1].born_ord == 1, "slots are numbered by their births");
	is_u64(p.sched.ops.at[0].ns, 7, "the duration is read");
	is_u64(p.sched.ops.at[0].cost.ns, 7, "the duration counts as measured");
	ok(p.hints.at[0].copy == 1 && p.hints.at[0].after == 0 && p.hints.at[0].off == 8, "an evict copies");
	ok(p.hints.at[1].advice == 5 && p.hints.at[1].after == -1, "advice has CUDA's number");
	um_plan_fini(&p);
}

static void check_extra_keys(void)
{
	struct um_plan p;
	const struct um_sched_use *u;

	load(&p, HEAD "{\"ev\":\"op\",\"i\":0,\"name\":\"a\",\"r\":[0,3],\"w\":[3,[2,0,8],[2,8,8]],\"order\":[3,1,2,0],"
		      "\"dead\":[[2,8,8],3],\"touched\":{\"0\":5},\"ns\":7,\"measured\":false,\"hash\":\"ff\"}\n" TAIL);
	u = p.sched.uses.at;
	ok(u[0].slot == 2 && u[0].off == 8 && u[0].access == UM_WRITE && u[0].dead_after,
	   "first in the program's order");
	ok(u[1].slot == 3 && u[1].access == UM_UPDATE && u[1].dead_after, "the second use is read");
	ok(u[2].slot == 2 && u[2].off == 0 && !u[2].dead_after, "the third use is read");
	ok(u[3].slot == 0 && u[3].touched == 5 && u[3].access == UM_READ, "the last use is read");
	is_u64(p.sched.ops.at[0].cost.ns, 0, "an op that was not measured has no duration");
	is_u64(p.sched.ops.at[0].hash, 0xff, "the hash is read");
	um_plan_fini(&p);
}

static void read_sample(struct um_plan *p, const char *name)
{
	const char *top = getenv("top_srcdir");
	struct um_diag d;
	char path[1024];

	snprintf(path, sizeof path, "%s/tests/data/%s", top ? top : ".", name);
	um_plan_init(p);
	if (um_plan_read(path, p, &d))
		tap_bail("a sample is missing");
}

static void check_recompute(void)
{
	const struct um_slot *s;
	struct um_plan p;

	read_sample(&p, "good-recompute.umplan");
	s = p.sched.slots.at;
	ok(s[5].flags == UM_SLOT_SCRATCH && s[5].of == 1 && s[6].of == 4, "scratch slots know what they replace");
	ok(!(s[4].flags & UM_SLOT_SCRATCH), "other slots are no scratch slots");
	is_u64(p.sched.births.n, 4, "scratch slots are not born in the program");
	ok(p.hints.at[6].kind == UM_HINT_RECOMPUTE && p.hints.at[6].slot == 0, "a recompute hint names an op");
	ok(p.hints.at[9].n_scratch == 2 && p.scratch.at[p.hints.at[9].first_scratch + 1] == 6,
	   "a recompute hint names its scratch slots");
	is_u64(p.hints.at[10].n_scratch, 0, "a recompute hint without scratch slots has none");
	ok(p.hints.at[7].again == 1 && p.hints.at[5].again == 0, "a hint waits for relaunches, or for none");
	um_plan_fini(&p);
}

static int same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static int same_slots(const struct um_schedule *a, const struct um_schedule *b)
{
	int same = a->slots.n == b->slots.n && a->births.n == b->births.n;

	for (size_t i = 0; same && i < a->slots.n; i++) {
		const struct um_slot *x = &a->slots.at[i], *y = &b->slots.at[i];

		same = x->bytes == y->bytes && x->birth == y->birth && x->death == y->death && x->carry == y->carry &&
		       x->born_ord == y->born_ord && x->of == y->of && x->flags == y->flags && x->role == y->role &&
		       x->place == y->place && same_text(x->name, y->name);
	}
	for (size_t i = 0; same && i < a->births.n; i++)
		same = a->births.at[i] == b->births.at[i];
	return same;
}

static int same_ops(const struct um_schedule *a, const struct um_schedule *b)
{
	int same = a->ops.n == b->ops.n && a->uses.n == b->uses.n && a->relaunch.n == b->relaunch.n;

	for (size_t i = 0; same && i < a->ops.n; i++) {
		const struct um_sched_op *x = &a->ops.at[i], *y = &b->ops.at[i];

		same = same_text(x->name, y->name) && x->hash == y->hash && x->first_use == y->first_use &&
		       x->n_uses == y->n_uses && x->ns == y->ns && x->cost.ns == y->cost.ns &&
		       x->cost.flops == y->cost.flops && x->cost.bytes == y->cost.bytes && x->stream == y->stream &&
		       x->phase == y->phase && x->relaunchable == y->relaunchable &&
		       x->first_relaunch == y->first_relaunch && x->n_relaunch == y->n_relaunch &&
		       x->first_ws == y->first_ws && x->n_ws == y->n_ws && x->choice == y->choice;
	}
	for (size_t i = 0; same && i < a->uses.n; i++) {
		const struct um_sched_use *x = &a->uses.at[i], *y = &b->uses.at[i];

		same = x->slot == y->slot && x->access == y->access && x->off == y->off && x->bytes == y->bytes &&
		       x->touched == y->touched && x->dead_after == y->dead_after;
	}
	for (size_t i = 0; same && i < a->relaunch.n; i++)
		same = a->relaunch.at[i] == b->relaunch.at[i];
	same = same && a->ws.n == b->ws.n;
	for (size_t i = 0; same && i < a->ws.n; i++)
		same = a->ws.at[i].bytes == b->ws.at[i].bytes && a->ws.at[i].ns == b->ws.at[i].ns;
	return same;
}

static int same_hints(const struct um_plan *a, const struct um_plan *b)
{
	int same = a->hints.n == b->hints.n;

	for (size_t i = 0; same && i < a->hints.n; i++) {
		const struct um_hint *x = &a->hints.at[i], *y = &b->hints.at[i];

		same = x->kind == y->kind && x->at == y->at && x->after == y->after && x->again == y->again &&
		       x->slot == y->slot && x->off == y->off && x->bytes == y->bytes && x->copy == y->copy &&
		       x->advice == y->advice;
	}
	same = same && a->scratch.n == b->scratch.n;
	for (size_t i = 0; same && i < a->scratch.n; i++)
		same = a->scratch.at[i] == b->scratch.at[i];
	return same;
}

static void check_round_trip(const char *text, const char *from, const char *to)
{
	struct um_plan a, b;
	struct um_diag d;

	um_plan_init(&a);
	um_plan_init(&b);
	if (text)
		load(&a, text);
	else
		is_int(um_plan_read(from, &a, &d), 0, "%s is read", from);
	is_int(um_plan_write(to, &a, &d), 0, "the plan is written");
	if (!is_int(um_plan_read(to, &b, &d), 0, "the written plan is read"))
		diag("%" PRIu64 ": %s", d.line, d.text);
	ok(same_slots(&a.sched, &b.sched), "the slots are the same after writing");
	ok(same_ops(&a.sched, &b.sched), "the ops are the same after writing");
	ok(same_hints(&a, &b), "the hints are the same after writing");
	ok(a.sched.signature == b.sched.signature && a.budget == b.budget && a.h2d == b.h2d && a.d2h == b.d2h &&
		   a.predicted_ns == b.predicted_ns && a.rehearsed_ns == b.rehearsed_ns &&
		   a.in_core_ns == b.in_core_ns && a.bound_ns == b.bound_ns,
	   "the numbers are the same after writing");
	ok(same_text(a.source, b.source) && same_text(a.workload, b.workload) && same_text(a.profile, b.profile) &&
		   same_text(a.strategy, b.strategy),
	   "the names are the same after writing");
	um_plan_fini(&a);
	um_plan_fini(&b);
}

static void check_workspaces(void)
{
	const struct um_sched_op *op;
	struct um_plan p;

	read_sample(&p, "good-workspace.umplan");
	op = &p.sched.ops.at[1];
	ok(op->n_ws == 3 && op->choice == 1 && p.sched.ws.at[op->first_ws + 1].bytes == 2048, "a choice is read");
	is_int((int)p.sched.slots.at[2].flags, UM_SLOT_WORKSPACE, "so is the kind of its slot");
	is_int(um_plan_check(&p, NULL, NULL, 0), 0, "the plan is sound");
	um_plan_fini(&p);
	load(&p,
	     HEAD "{\"ev\":\"op\",\"i\":0,\"name\":\"a\",\"r\":[0],\"w\":[2],\"ns\":7,\"ws\":[[0,7],[8,6]]}\n" TAIL);
	is_int((int)p.sched.ops.at[0].n_ws, 0, "without a choice the op has one algorithm");
	um_plan_fini(&p);
}

static void check_round_trips(void)
{
	static const char *const names[] = {"good-all-keys.umplan",  "good-host.umplan",   "good-foreign.umplan",
					    "good-handed-on.umplan", "good-no-ops.umplan", "good-recompute.umplan",
					    "good-workspace.umplan"};
	const char *top = getenv("top_srcdir");
	char from[1024], to[256];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(from, sizeof from, "%s/tests/data/%s", top ? top : ".", names[i]);
		snprintf(to, sizeof to, "%s/again.umplan%s", tmp, i % 2 ? ".gz" : "");
		check_round_trip(NULL, from, to);
	}
	snprintf(to, sizeof to, "%s/again.umplan", tmp);
	check_round_trip(
		HEAD "{\"ev\":\"op\",\"i\":0,\"name\":\"a\",\"r\":[0,3],\"w\":[3,[2,0,8],[2,8,8]],\"order\":[3,1,2,0],"
		     "\"dead\":[[2,8,8],3],\"touched\":{\"2\":5},\"ns\":7,\"measured\":false}\n" TAIL,
		NULL, to);
}

/* A file holds no address: places are counted from the lowest block. */
static void check_places(void)
{
	const uint64_t base = 0x7f0000000000 + UM_BLOCK_BYTES;
	struct um_plan p, q;
	struct um_diag d;
	char path[256];

	um_plan_init(&q);
	load(&p, HEAD "{\"ev\":\"op\",\"i\":0,\"name\":\"a\",\"r\":[],\"w\":[],\"ns\":7}\n" TAIL);
	p.sched.slots.at[1].place = base + 512;
	p.sched.slots.at[2].place = base + 3 * UM_BLOCK_BYTES;
	snprintf(path, sizeof path, "%s/places.umplan", tmp);
	is_int(um_plan_write(path, &p, &d), 0, "a plan with addresses is written");
	is_int(um_plan_read(path, &q, &d), 0, "the written plan is read");
	is_u64(q.sched.slots.at[1].place, 512, "the lowest place is read");
	is_u64(q.sched.slots.at[2].place, 3 * UM_BLOCK_BYTES, "the other place is read");
	is_u64(q.sched.slots.at[0].place, UINT64_MAX, "none stays none");
	um_plan_fini(&p);
	um_plan_fini(&q);
}

static void check_failures(void)
{
	struct um_plan p;
	struct um_diag d;
	char path[256];

	load(&p, HEAD "{\"ev\":\"op\",\"i\":0,\"name\":\"a\",\"r\":[],\"w\":[],\"ns\":7}\n" TAIL);
	snprintf(path, sizeof path, "%s/no/such.umplan", tmp);
	is_int(um_plan_write(path, &p, &d), -ENOENT, "a missing folder is refused");
	is_int(um_plan_read(path, &p, &d), -ENOENT, "a missing file is refused");
	is_u64(p.sched.slots.n, 4, "the plan that was there is as it was");
	is_int(um_plan_read_mem("{}", 2, &p, &d), -EINVAL, "a file without a header is refused");
	is_u64(p.sched.slots.n, 4, "the plan that was there is as it was");
	um_plan_fini(&p);
}

int main(void)
{
	char command[128];

	strcpy(tmp, "umplan-XXXXXX");
	if (!mkdtemp(tmp))
		tap_bail("no folder to write to");
	check_defaults();
	check_extra_keys();
	check_recompute();
	check_workspaces();
	check_round_trips();
	check_places();
	check_failures();
	snprintf(command, sizeof command, "rm -rf '%s'", tmp);
	ok(system(command) == 0, "the folder is removed");
	return tap_done();
}
