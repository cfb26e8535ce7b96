/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/options.h"

#include "runtime/environment.h"

#include "arbiter/divide.h"
#include "io/file_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Schemes of tools/schemes: for comparison in umadvise simulate only. */
static const char *const compared[] = {"capuchin", "deepum", "g10", "swapadvisor", "vdnn", "vdnn-all", "vdnn-conv"};

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

void umadv_options_init(struct umadv_options *options)
{
	memset(options, 0, sizeof *options);
	options->struct_size = sizeof *options;
	options->log_level = UMADV_LOG_WARN;
	um_environment_read(options);
}

static int copy_strings(struct um_options *o)
{
	const char **const texts[] = {&o->pub.strategy, &o->pub.profile, &o->pub.plan, &o->pub.trace, &o->pub.run_log};
	enum { TEXTS_KEPT = 3 }; /* the plan is compared with its variable, and expanded when it is read */
	int err = 0;

	for (int i = 0; i < COUNT(texts); i++) {
		if (*texts[i] && **texts[i]) {
			o->strings[i] = i < TEXTS_KEPT ? strdup(*texts[i]) : um_file_name(*texts[i]);
			err = o->strings[i] ? err : -ENOMEM;
		}
		*texts[i] = o->strings[i];
	}
	return err;
}

static int refuse_strategy(struct um_options *o, const char *name)
{
	int known = 0;

	for (int i = 0; i < COUNT(compared); i++)
		known |= strcmp(compared[i], name) == 0;
	if (known)
		snprintf(o->problem, sizeof o->problem,
			 "strategy '%s' is for comparison in umadvise simulate only: expected lookahead, "
			 "on-demand, prefetch-on-use or another of umadvise(7)",
			 name);
	else
		snprintf(o->problem, sizeof o->problem,
			 "strategy '%.48s': expected lookahead, on-demand, prefetch-on-use or another of "
			 "umadvise(7)",
			 name);
	return -EINVAL;
}

/* Enums out of their range. */
static int check_numbers(struct um_options *o)
{
	for (const struct um_variable *v = um_variables; v->name; v++) {
		unsigned value;

		if (!v->constants)
			continue;
		memcpy(&value, (const char *)&o->pub + v->at, sizeof value);
		if (value < v->n_words)
			continue;
		snprintf(o->problem, sizeof o->problem, "the option that %s sets is %d: expected %s", v->name,
			 (int)value, v->constants);
		return -EINVAL;
	}
	if (o->pub.share < UMADV_SHARE_OFF || o->pub.share > (int)UM_ARBITER_WEIGHT_MOST) {
		snprintf(o->problem, sizeof o->problem, "the option share is %d: expected 0 to %u, or UMADV_SHARE_OFF",
			 o->pub.share, UM_ARBITER_WEIGHT_MOST);
		return -EINVAL;
	}
	return 0;
}

int um_options_take(struct um_options *o, const struct umadv_options *given)
{
	int err, k;

	memset(o, 0, sizeof *o);
	umadv_options_init(&o->pub);
	if (given) {
		if (given->struct_size < offsetof(struct umadv_options, budget) || given->struct_size > 4096) {
			snprintf(o->problem, sizeof o->problem,
				 "options: struct_size is %zu: call umadv_options_init first", given->struct_size);
			return -EINVAL;
		}
		size_t n = given->struct_size < sizeof o->pub ? given->struct_size : sizeof o->pub;

		memcpy(&o->pub, given, n);
		o->pub.struct_size = sizeof o->pub;
	}
	err = copy_strings(o);
	if (err)
		return err;
	k = o->pub.strategy ? um_strategy_parse(o->pub.strategy) : UM_STRATEGY_LOOKAHEAD;
	if (k < 0)
		return refuse_strategy(o, o->pub.strategy);
	o->strategy = (enum um_strategy)k;
	return check_numbers(o);
}

void um_options_fini(struct um_options *o)
{
	for (size_t i = 0; i < sizeof o->strings / sizeof *o->strings; i++)
		free(o->strings[i]);
	memset(o->strings, 0, sizeof o->strings);
}
