/* SPDX-License-Identifier: Apache-2.0
 *
 * event.c - role names, and bytes that an op touches
 */
#include "model/event.h"

#include <errno.h>
#include <string.h>

/* The one list: names as umtrace spells them, by enum um_role. */
static const char *const role_names[UM_ROLES] = {
	[UM_ROLE_OTHER] = "other",	   [UM_ROLE_PARAM] = "param", [UM_ROLE_GRAD] = "grad",
	[UM_ROLE_OPTIM] = "optim",	   [UM_ROLE_ACT] = "act",     [UM_ROLE_INPUT] = "input",
	[UM_ROLE_WORKSPACE] = "workspace", [UM_ROLE_COMM] = "comm",
};

const char *um_role_name(enum um_role role)
{
	return (unsigned)role < UM_ROLES ? role_names[role] : role_names[UM_ROLE_OTHER];
}

int um_role_parse(const char *name)
{
	for (int i = 0; i < UM_ROLES; i++)
		if (strcmp(name, role_names[i]) == 0)
			return i;
	return -EINVAL;
}

#define MOST_FLOPS 16 /* for each byte that a streaming op touches */
#define MOST_ACCESSES 1.5 /* of each byte */

int um_cost_streams(const struct um_cost *cost, double touched)
{
	return (cost->bytes > 0 || cost->flops > 0) && cost->bytes <= touched * MOST_ACCESSES &&
	       cost->flops <= touched * MOST_FLOPS;
}

double um_uses_touched(const struct um_use *uses, uint32_t n)
{
	double bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += (double)uses[i].touched;
	return bytes;
}
