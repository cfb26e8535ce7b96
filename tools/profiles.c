/* SPDX-License-Identifier: Apache-2.0
 *
 * profiles.c - --profile and --list-profiles
 */
#include "args.h"
#include "io/profile_file.h"
#include "tool.h"

#include <jansson.h>
#include <stdio.h>

int tool_profile(const char *verb, const char *name, struct um_profile *out)
{
	struct um_diag diag;
	char line[800];
	int err;

	um_diag_init(&diag, name);
	err = um_profile_get(name, out, &diag);
	if (!err)
		return TOOL_DONE;
	um_diag_line(&diag, line, sizeof line);
	tool_say(verb, "%s", line);
	return tool_exit_of(err);
}

const char *args_profile_name(unsigned i)
{
	return um_profile_builtin(i);
}

void args_list_profiles(int json)
{
	json_t *list = json_array(), *doc;

	for (unsigned i = 0; um_profile_builtin(i); i++) {
		const struct um_profile *p = um_profile_find(um_profile_builtin(i));

		if (json)
			json_array_append_new(list, json_pack("{s:s,s:I,s:f,s:f}", "name", p->name, "memory_bytes",
							      (json_int_t)p->capacity, "h2d_bytes_per_s",
							      (double)p->h2d, "d2h_bytes_per_s", (double)p->d2h));
		else
			printf("%-8s %9.1f MiB  %6.1f GB/s in  %6.1f GB/s out\n", p->name,
			       (double)p->capacity / 1048576.0, (double)p->h2d / 1e9, (double)p->d2h / 1e9);
	}
	doc = json ? json_pack("{s:s,s:O}", "schema", "umprofiles/1", "profiles", list) : NULL;
	if (doc && !json_dumpf(doc, stdout, JSON_INDENT(1)))
		putchar('\n');
	json_decref(doc);
	json_decref(list);
}
