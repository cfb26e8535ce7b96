/* SPDX-License-Identifier: Apache-2.0
 *
 * umadv_launch announces an op, launches it, and registers the launch.
 */
#include "umadvise.h"

#include "runtime/context.h"

#include "tap.h"

#include <errno.h>

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

int main(void)
{
	test_registers();
	test_errors();
	return tap_done();
}
