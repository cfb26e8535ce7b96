/* SPDX-License-Identifier: Apache-2.0
 *
 * profiles.c - --profile and --list-profiles
 */
#include "args.h"
#include "io/profile_file.h"
#include "tool.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

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

/* Sources of the constants of a profile. */
struct sources {
	const char *name; /* built in, or NULL */
	int measured;
	FILE *file; /* NULL: none */
	char line[512];
};

/* The comment of the key's line in the file; NULL: the file does not have the key. */
static const char *comment(struct sources *s, const char *key)
{
	size_t n = strlen(key);

	rewind(s->file);
	while (fgets(s->line, sizeof s->line, s->file)) {
		const char *at = s->line + strspn(s->line, " \t");
		char *hash = strchr(s->line, '#');

		if (strncmp(at, key, n) != 0 || !strchr(" \t=", at[n]))
			continue;
		if (!hash)
			return s->measured ? "measured" : "the file, which names no source";
		hash[strcspn(hash, "\r\n")] = '\0';
		return hash + 1 + strspn(hash + 1, " \t");
	}
	return NULL;
}

static const char *source(void *user, const char *key)
{
	struct sources *s = user;
	const char *own = s->file ? comment(s, key) : NULL;

	if (own)
		return own;
	return um_profile_source(s->name, key, s->line, sizeof s->line) ? NULL : s->line;
}

int tool_show_profile(const char *verb, const char *name, const char *output)
{
	struct sources s = {.name = um_profile_find(name) ? name : NULL};
	struct um_profile_notes notes = {"Each constant with its source.", source, &s};
	struct um_profile p;
	struct um_diag diag;
	char line[800];
	int err = tool_profile(verb, name, &p);

	if (err)
		return err;
	s.measured = p.measured;
	s.file = s.name ? NULL : fopen(name, "re");
	err = um_profile_write(output ? output : "-", &p, &notes, &diag);
	if (s.file)
		fclose(s.file);
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
			json_array_append_new(list,
					      json_pack("{s:s,s:I,s:f,s:f,s:b}", "name", p->name, "memory_bytes",
							(json_int_t)p->capacity, "h2d_bytes_per_s", (double)p->h2d,
							"d2h_bytes_per_s", (double)p->d2h, "coherent", p->coherent));
		else
			printf("%-10s %9.1f MiB  %6.1f GB/s in  %6.1f GB/s out%s\n", p->name,
			       (double)p->capacity / 1048576.0, (double)p->h2d / 1e9, (double)p->d2h / 1e9,
			       p->coherent ? "  coherent" : "");
	}
	doc = json ? json_pack("{s:s,s:O}", "schema", "umprofiles/1", "profiles", list) : NULL;
	if (doc && !json_dumpf(doc, stdout, JSON_INDENT(1)))
		putchar('\n');
	json_decref(doc);
	json_decref(list);
}
