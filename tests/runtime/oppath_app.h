/* SPDX-License-Identifier: Apache-2.0
 *
 * oppath_app.h - a small training-like loop over the null device, for tests and the benchmark of the op path
 *
 * Layers of 4 MiB weights and activations; three tensors an op; a budget of a third, so that most ops have hints due.
 */
#ifndef UM_TESTS_OPPATH_APP_H
#define UM_TESTS_OPPATH_APP_H

#include "runtime/context.h"
#include "gpu/null.h"

#ifndef APP_LAYERS
#define APP_LAYERS 32
#endif
#define APP_BYTES (4u << 20)
#ifndef APP_BUDGET
#define APP_BUDGET ((uint64_t)APP_LAYERS * APP_BYTES * 2 / 3)
#endif

struct app {
	struct umadv *adv;
	void *w[APP_LAYERS], *y[APP_LAYERS + 1];
};

/* With `n_y` activations that stay. */
static inline int app_open_with(struct app *a, int n_y)
{
	struct umadv_options o;
	struct um_gpu *gpu;
	int err = um_null_open(&gpu, 1ull << 40, 0);

	umadv_options_init(&o);
	o.budget = APP_BUDGET;
	o.profile = "v100";
	if (!err)
		err = um_context_open(&a->adv, &o, gpu, NULL);
	for (int i = 0; i < APP_LAYERS && !err; i++)
		err = umadv_alloc(a->adv, &a->w[i], APP_BYTES, "w", UMADV_PARAM);
	for (int i = 0; i < n_y && !err; i++)
		err = umadv_alloc(a->adv, &a->y[i], APP_BYTES, "y", UMADV_ACT);
	return err;
}

static inline int app_open(struct app *a)
{
	return app_open_with(a, APP_LAYERS + 1);
}

/* All ops of an iteration: forward, then backward. */
static inline int app_ops(struct app *a)
{
	int err = 0;

	for (int i = 0; i < APP_LAYERS && !err; i++)
		err = umadv_op(a->adv, NULL, "forward",
			       UMADV_USES(UMADV_READ(a->y[i]), UMADV_READ(a->w[i]), UMADV_WRITE(a->y[i + 1])));
	for (int i = APP_LAYERS; i-- > 0 && !err;)
		err = umadv_op(a->adv, NULL, "backward",
			       UMADV_USES(UMADV_READ(a->y[i + 1]), UMADV_UPDATE(a->w[i]), UMADV_READ(a->y[i])));
	return err;
}

/* The same ops after app_open_with(a, 1): the other activations, and a gradient for each layer, are born and freed in
 * every iteration. They have several sizes. */
static inline int app_births(struct app *a)
{
	int err = 0;

	for (int i = 0; i < APP_LAYERS && !err; i++) {
		err = umadv_alloc(a->adv, &a->y[i + 1], APP_BYTES + (size_t)(i % 7) * 65536, "y", UMADV_ACT);
		if (!err)
			err = umadv_op(a->adv, NULL, "forward",
				       UMADV_USES(UMADV_READ(a->y[i]), UMADV_READ(a->w[i]), UMADV_WRITE(a->y[i + 1])));
	}
	for (int i = APP_LAYERS; i-- > 0 && !err;) {
		void *grad;

		err = umadv_alloc(a->adv, &grad, APP_BYTES / 2 + (size_t)(i % 5) * 65536, "grad", UMADV_GRAD);
		if (!err)
			err = umadv_op(a->adv, NULL, "backward",
				       UMADV_USES(UMADV_READ(a->y[i + 1]), UMADV_UPDATE(a->w[i]), UMADV_WRITE(grad)));
		if (!err)
			err = umadv_free(a->adv, a->y[i + 1]);
		if (!err)
			err = umadv_free(a->adv, grad);
	}
	return err;
}

#endif
