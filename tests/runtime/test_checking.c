/* SPDX-License-Identifier: Apache-2.0
 *
 * UMADVISE_CHECK: kernels that touch what their ops do not declare are named; correct programs are not.
 */
#include "umadvise.h"

#include "sim/state.h"
#include "tap.h"

#include <sys/mman.h>

#define MIB (1u << 20)

static char text[4096];
static int n_lines;

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	size_t n = strlen(text);

	(void)user;
	if (level > UMADV_LOG_WARN)
		return;
	n_lines++;
	snprintf(text + n, sizeof text - n, "%s\n", line);
}

static struct umadv *open_sim(int check)
{
	struct umadv_options o;
	struct umadv *adv;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 64 * MIB;
	o.log = on_log;
	o.check = check;
	if (umadv_open(&adv, &o))
		tap_bail("cannot open");
	*text = 0;
	n_lines = 0;
	return adv;
}

static char *tensor(struct umadv *adv, size_t bytes, const char *name)
{
	void *p;

	if (umadv_alloc(adv, &p, bytes, name, UMADV_OTHER))
		tap_bail("cannot allocate");
	return p;
}

/* Host code: reads a range, adds one to the bytes of another. */
struct work {
	volatile char *from, *to;
	size_t n_from, n_to;
};

static void work(void *arg)
{
	struct work *w = arg;
	char sum = 0;

	for (size_t i = 0; i < w->n_from; i += 512)
		sum = (char)(sum + w->from[i]);
	for (size_t i = 0; i < w->n_to; i += 512)
		w->to[i] = (char)(w->to[i] + 1 + (sum & 0));
}

static void run(struct umadv *adv, struct work *w)
{
	if (umadv_sim_run(adv, NULL, work, w))
		tap_bail("cannot run");
}

#define OP(name, ...)                                                                                                  \
	do {                                                                                                           \
		if (umadv_op(adv, NULL, name, UMADV_USES(__VA_ARGS__)))                                                \
			tap_bail("cannot announce");                                                                   \
	} while (0)

static void mistakes(void)
{
	struct umadv *adv = open_sim(1);
	char *x = tensor(adv, MIB, "x"), *y = tensor(adv, MIB, "y"), *z = tensor(adv, MIB, "z");
	struct work both = {x, y, MIB, MIB}, part = {x, y, MIB, MIB / 2}, third = {z + 131072, y, 65536, MIB},
		    last = {x, z, MIB, 4096};

	OP("right", UMADV_READ(x), UMADV_UPDATE(y));
	run(adv, &both);
	umadv_sim_sync(adv);
	is_str(text, "", "a kernel that touches what its op declares is not named");
	OP("no write", UMADV_READ(x));
	run(adv, &part);
	umadv_sim_sync(adv);
	is_str(text,
	       "check: op 'no write' writes bytes [0, 524288) of tensor 'y', which it does not declare: add "
	       "UMADV_WRITE or UMADV_UPDATE\n",
	       "a kernel that writes a tensor that its op does not declare is named");
	*text = 0;
	OP("no read", UMADV_UPDATE(y));
	run(adv, &third);
	umadv_sim_sync(adv);
	is_str(text,
	       "check: op 'no read' reads bytes [131072, 196608) of tensor 'z', which it does not declare: add "
	       "UMADV_READ\n",
	       "a kernel that reads a tensor that its op does not declare is named");
	*text = 0;
	OP("not only read", UMADV_READ(x), UMADV_READ(y));
	run(adv, &both);
	umadv_sim_sync(adv);
	is_str(text,
	       "check: op 'not only read' writes bytes [0, 1048576) of tensor 'y', which it declares read: use "
	       "UMADV_UPDATE\n",
	       "a kernel that writes a tensor that its op declares read is named");
	n_lines = 0;
	OP("not only read", UMADV_READ(x), UMADV_READ(y));
	run(adv, &both);
	umadv_sim_sync(adv);
	is_int(n_lines, 0, "an op is named once for a tensor");
	*text = 0;
	OP("freed", UMADV_READ(x));
	run(adv, &last);
	umadv_free(adv, z);
	umadv_sim_sync(adv);
	ok(strstr(text, "op 'freed' writes bytes [0, 4096) of tensor 'z'"),
	   "a tensor that is freed before the kernel runs is named: %s", text);
	umadv_close(adv);
}

static void ranges(void)
{
	struct umadv *adv = open_sim(1);
	char *x = tensor(adv, 4 * MIB, "x"), *y = tensor(adv, MIB, "y");
	struct work part = {y, x + MIB, MIB, 2 * MIB};

	OP("part", UMADV_READ(y), UMADV_UPDATE_RANGE(x + MIB, 2 * MIB));
	run(adv, &part);
	umadv_sim_sync(adv);
	is_str(text, "", "a kernel that stays in the range that its op declares is not named");
	OP("less", UMADV_READ(y), UMADV_UPDATE_RANGE(x + MIB, MIB + 100));
	run(adv, &part);
	umadv_sim_sync(adv);
	ok(strstr(text, "op 'less' writes bytes [2101248, 3145728) of tensor 'x'"),
	   "a kernel that leaves the range that its op declares is named with whole pages: %s", text);
	umadv_close(adv);
}

/* Tensors of 512 bytes share pages, tensors of some KiB what the system maps around a read. */
static void neighbours(void)
{
	struct umadv *adv = open_sim(1);
	struct work w[32];
	char *p[32];

	for (int i = 0; i < 32; i++)
		p[i] = tensor(adv, i % 2 ? 512 : 9000, "small");
	for (int it = 0; it < 4; it++) {
		umadv_iter(adv, NULL);
		for (int i = 0; i < 31; i++) {
			w[i] = (struct work){p[i], p[i + 1], 512, 512};
			OP("small", UMADV_READ(p[i]), UMADV_UPDATE(p[i + 1]));
			run(adv, &w[i]);
			umadv_sim_sync(adv);
			for (int k = 0; k < 32; k += 5)
				p[k][0]++; /* the CPU writes between ops */
		}
	}
	is_str(text, "", "tensors that share pages accuse no kernel");
	umadv_close(adv);
}

static void write_and_forget(void *arg)
{
	struct work *w = arg;

	work(w);
	if (madvise((void *)w->to, w->n_to, MADV_DONTNEED)) /* the memory is shared: it keeps its content */
		tap_bail("the system keeps the entries");
}

/* Virtual machines lose the entry of a page now and then. */
static void lost_entries(void)
{
	struct umadv *adv = open_sim(1);
	char *x = tensor(adv, MIB, "x"), *y = tensor(adv, MIB, "y");
	struct work first = {x, y, MIB, MIB}, second = {y, x, MIB, MIB};

	OP("first", UMADV_READ(x), UMADV_UPDATE(y));
	if (umadv_sim_run(adv, NULL, write_and_forget, &first))
		tap_bail("cannot run");
	OP("second", UMADV_READ(y), UMADV_UPDATE(x));
	run(adv, &second);
	umadv_sim_sync(adv);
	is_str(text, "", "a kernel is not named for what another one wrote in pages that have lost their entries");
	umadv_close(adv);
}

static void off(void)
{
	struct umadv *adv = open_sim(0);
	char *x = tensor(adv, MIB, "x"), *y = tensor(adv, MIB, "y");
	struct work both = {x, y, MIB, MIB};

	OP("no write", UMADV_READ(x));
	run(adv, &both);
	umadv_sim_sync(adv);
	is_int(n_lines, 0, "without the check no kernel is named");
	umadv_close(adv);
}

static void pending(void)
{
	struct umadv *adv = open_sim(1);
	char *x = tensor(adv, MIB, "x");
	struct work w = {x, x, MIB, MIB};

	OP("pending", UMADV_READ(x));
	run(adv, &w);
	umadv_close(adv);
	ok(n_lines <= 1, "a context with a kernel outstanding is closed");
}

int main(void)
{
	off();
	if (!um_sim_cpu_access_supported()) {
		skip(1, "this system does not show a process its page tables");
		return tap_done();
	}
	mistakes();
	ranges();
	neighbours();
	lost_entries();
	pending();
	return tap_done();
}
