/* SPDX-License-Identifier: Apache-2.0
 *
 * umadv_launch announces an op, launches it, and registers the launch. umadv_launch_kernel does so with a kernel.
 */
#include "umadvise.h"

#include "runtime/context.h"

#include "tap.h"

#include <errno.h>
#include <string.h>

#define BYTES (1u << 16)

struct argument {
	int *calls, result;
};

static void *stream_of_call;

static int launch(void *arg, void *stream)
{
	const struct argument *a = arg;

	++*a->calls;
	stream_of_call = stream;
	return a->result;
}

static struct umadv *open_context(enum umadv_device device)
{
	struct umadv_options o;
	struct umadv *adv;

	umadv_options_init(&o);
	o.device = device;
	o.log_level = UMADV_LOG_ERROR;
	if (umadv_open(&adv, &o))
		tap_bail("no context");
	return adv;
}

/* The tensors that the relaunch of an op makes again, of the recorded iteration. */
static uint32_t outputs_of(const struct umadv *adv, uint32_t op)
{
	return adv->iterations.recorder.it.ops.at[op].n_relaunch;
}

static void test_registers(void)
{
	struct umadv *adv = open_context(UMADV_DEVICE_SIM);
	int calls = 0, is;
	struct argument a = {&calls, 0};
	const struct um_closure *c;
	void *x = NULL, *y = NULL, *z = NULL;

	is = umadv_alloc(adv, &x, BYTES, "x", UMADV_OTHER) || umadv_alloc(adv, &y, BYTES, "y", UMADV_OTHER) ||
	     umadv_alloc(adv, &z, BYTES, "z", UMADV_OTHER) || umadv_iter(adv, NULL);
	is_int(is, 0, "tensors are allocated");
	is_int(umadv_launch(adv, NULL, "f", UMADV_USES(UMADV_READ(x), UMADV_WRITE(y), UMADV_UPDATE(z)), launch, &a,
			    sizeof a),
	       0, "an op is launched");
	is_int(calls, 1, "the launch is called once");
	ok(!stream_of_call, "its stream is that of the op");
	c = &adv->iterations.closures.at[0];
	ok(c->fn == launch, "the launch is registered");
	ok(c->arg != &a && ((const struct argument *)c->arg)->calls == &calls, "its argument is copied");
	is_int(outputs_of(adv, 0), 2, "it makes all again that the op writes");

	is_int(umadv_launch(adv, NULL, "g",
			    UMADV_USES(UMADV_WRITE_RANGE(y, 512), UMADV_WRITE_RANGE((char *)y + 1024, 512)), launch, &a,
			    sizeof a),
	       0, "an op that writes two ranges of a tensor is launched");
	is_int(outputs_of(adv, 1), 1, "it makes one tensor again");
	umadv_op_ex(adv, NULL, "h",
		    &(struct umadv_op_info){.struct_size = sizeof(struct umadv_op_info),
					    .uses = (struct umadv_use[]){UMADV_WRITE(y), UMADV_WRITE(z)},
					    .n_uses = 2,
					    .relaunch = launch,
					    .relaunch_outs = (const void *[]){z},
					    .n_relaunch_outs = 1});
	is_int(outputs_of(adv, 2), 1, "relaunch_outs limits what is made again");
	is_int(calls, 2, "umadv_op_ex does not launch");
	umadv_close(adv);
}

static void test_errors(void)
{
	struct umadv *adv = open_context(UMADV_DEVICE_SIM);
	int calls = 0;
	struct argument a = {&calls, 7};
	void *x;

	umadv_alloc(adv, &x, BYTES, "x", UMADV_OTHER);
	is_int(umadv_launch(adv, NULL, "f", UMADV_USES(UMADV_WRITE(x)), launch, &a, sizeof a), -EIO,
	       "a launch that fails is reported");
	a.result = 0;
	is_int(umadv_launch(adv, NULL, "f", UMADV_USES(UMADV_WRITE_RANGE(x, BYTES + 1)), launch, &a, sizeof a), -EINVAL,
	       "a wrong range is reported");
	is_int(calls, 2, "but the op is launched");
	is_int(umadv_launch(adv, NULL, "f", NULL, 1, launch, &a, sizeof a), -EINVAL, "ranges must be given");
	is_int(umadv_launch(adv, NULL, "f", NULL, 0, NULL, &a, sizeof a), -EINVAL, "a launch must be given");
	is_int(umadv_launch(adv, NULL, "f", NULL, 0, launch, NULL, sizeof a), -EINVAL, "an argument must be given");
	is_int(umadv_launch(NULL, NULL, "f", NULL, 0, launch, &a, sizeof a), -EINVAL, "a context must be given");
	is_int(calls, 2, "a call without them launches nothing");
	umadv_close(adv);

	adv = open_context(UMADV_DEVICE_NONE);
	is_int(umadv_launch(adv, NULL, "f", NULL, 0, launch, &a, sizeof a), 0, "an op is launched without a device");
	is_int(calls, 3, "by one call");
	umadv_close(adv);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

struct large {
	char text[1500];
};

/* Two small parameters with a hole between them, and two large ones. */
static const struct {
	size_t offset, bytes;
} params[] = {{0, 3}, {8, sizeof(double)}, {16, sizeof(struct large)}, {1520, sizeof(struct large)}};

static unsigned n_params, grid_of_launch;
static int code_of_params, lines;
static char seen[4][sizeof(struct large)]; /* parameters of the last launch */
static void **args_of_launch;

static int param(const void *kernel, size_t index, size_t *offset, size_t *bytes)
{
	if (kernel != params)
		return 98;
	if (code_of_params || index >= n_params)
		return code_of_params ? code_of_params : 1;
	*offset = params[index].offset;
	*bytes = params[index].bytes;
	return 0;
}

static int launch_kernel(const struct umadv_kernel *k, void *stream)
{
	grid_of_launch = k->grid[1];
	stream_of_call = stream;
	args_of_launch = k->args;
	for (unsigned i = 0; i < n_params && k->kernel == params; i++)
		memcpy(seen[i], k->args[i], params[i].bytes);
	return k->shared_bytes == 13;
}

static void count_line(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	lines += strstr(line, "kernel of op 'g' are not known (CUDA error 801") != NULL;
}

static void test_kernel(unsigned n)
{
	struct umadv *adv = open_context(UMADV_DEVICE_SIM);
	char a[3] = "ab";
	double b = 1.5;
	struct large c = {"c"}, d = {"d"};
	void *args[] = {a, &b, &c, &d}, *x = NULL;
	const struct umadv_kernel k = {sizeof k, params, {1, 2, 3}, {4, 5, 6}, args, 7, launch_kernel, param};
	const struct um_closure *is;

	n_params = n;
	if (umadv_alloc(adv, &x, BYTES, "x", UMADV_OTHER) || umadv_iter(adv, NULL))
		tap_bail("no tensor");
	is_int(umadv_launch_kernel(adv, NULL, "f", UMADV_USES(UMADV_WRITE(x)), &k), 0,
	       "a kernel with %u parameters is launched", n);
	ok(args_of_launch == args && grid_of_launch == 2, "with what the program passed");
	is = &adv->iterations.closures.at[0];
	ok(is->fn && outputs_of(adv, 0) == 1, "the launch is registered");
	memset(a, 'x', sizeof a);
	b = -1;
	c = d = (struct large){"gone"};
	memset(seen, 0, sizeof seen);
	grid_of_launch = 0;
	is_int(is->fn(is->arg, adv), 0, "it is launched again");
	ok(args_of_launch != args && grid_of_launch == 2 && stream_of_call == adv,
	   "with copies, the same grid, and the stream of the relaunch");
	b = 1.5;
	ok((n < 1 || !strcmp(seen[0], "ab")) && (n < 2 || !memcmp(seen[1], &b, sizeof b)) &&
		   (n < 3 || !strcmp(seen[2], "c")) && (n < 4 || !strcmp(seen[3], "d")),
	   "the parameters are those of the first launch");
	umadv_close(adv);
}

static void test_unknown_kernel(void)
{
	struct umadv_options o;
	struct umadv *adv;
	int a = 1;
	void *args[] = {&a}, *x = NULL;
	struct umadv_kernel k = {sizeof k, params, {1, 1, 1}, {1, 1, 1}, args, 0, launch_kernel, param};

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.log = count_line;
	if (umadv_open(&adv, &o) || umadv_alloc(adv, &x, BYTES, "x", UMADV_OTHER) || umadv_iter(adv, NULL))
		tap_bail("no context");
	n_params = 0;
	code_of_params = 801;
	args_of_launch = NULL;
	is_int(umadv_launch_kernel(adv, NULL, "g", UMADV_USES(UMADV_WRITE(x)), &k), 0,
	       "a kernel with unknown parameters is launched");
	ok(args_of_launch == args, "with what the program passed");
	ok(!adv->iterations.closures.at[0].fn, "but it is not registered");
	k.param = NULL;
	is_int(umadv_launch_kernel(adv, NULL, "g", UMADV_USES(UMADV_WRITE(x)), &k), 0,
	       "so is one without a function for its parameters");
	is_int(lines, 1, "one line says so");
	k.param = param;
	code_of_params = 0;
	n_params = 1;
	is_int(umadv_launch_kernel(
		       adv, NULL, "g", UMADV_USES(UMADV_WRITE(x)),
		       &(struct umadv_kernel){sizeof k, NULL, {1, 1, 1}, {1, 1, 1}, NULL, 0, launch_kernel, param}),
	       0, "a kernel that CUDA does not know is left to the launch");
	k.shared_bytes = 13;
	is_int(umadv_launch_kernel(adv, NULL, "g", UMADV_USES(UMADV_WRITE(x)), &k), -EIO,
	       "a launch that fails is reported");
	is_int(umadv_launch_kernel(adv, NULL, "g", UMADV_USES(UMADV_WRITE(x)), NULL), -EINVAL,
	       "a kernel must be given");
	k.launch = NULL;
	is_int(umadv_launch_kernel(adv, NULL, "g", UMADV_USES(UMADV_WRITE(x)), &k), -EINVAL, "and its launch");
	umadv_close(adv);
}

int main(void)
{
	test_registers();
	test_errors();
	for (unsigned n = 0; n <= 4; n++)
		test_kernel(n);
	test_unknown_kernel();
	return tap_done();
}
