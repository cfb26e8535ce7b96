/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/host_memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A version of cgroups: the type of its mounts, and its files. Pages of files that were not used lately count as used,
 * but are reclaimed. */
static const struct version {
	const char *type, *most, *used, *reclaimed;
} versions[] = {
	{"cgroup2 ", "memory.max", "memory.current", "inactive_file "},
	{"cgroup ", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

/* The number after `key` at the begin of a line, 0 if there is none. `key` "": the file is a number. */
static uint64_t read_number(const char *folder, const char *name, const char *key)
{
	char path[PATH_MAX + 32], line[256];
	uint64_t n = 0;
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%" SCNu64, &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static void lower(struct um_host_memory *m, uint64_t bytes, const char *limit)
{
	if (bytes >= m->bytes)
		return;
	m->bytes = bytes;
	snprintf(m->limit, sizeof m->limit, "%s", limit);
}

/* One cgroup, which has this folder. The limit "max" is no number. */
static void look(const char *folder, const struct version *v, const char *group, struct um_host_memory *m)
{
	char limit[sizeof m->limit];
	uint64_t most = read_number(folder, v->most, ""), used, reclaimed;

	if (!most || most >= INT64_MAX / 2)
		return;
	used = read_number(folder, v->used, "");
	reclaimed = read_number(folder, "memory.stat", v->reclaimed);
	used -= reclaimed < used ? reclaimed : used;
	snprintf(limit, sizeof limit, "%s of cgroup %.140s", v->most, *group ? group : "/");
	lower(m, most > used ? most - used : 0, limit);
}

/* A cgroup and all above it that the mount shows: each has a limit of its own. `group` is the end of `folder`. */
static void look_up(const char *folder, const struct version *v, char *group, struct um_host_memory *m)
{
	char *end = group + strlen(group);

	while (end > group && end[-1] == '/')
		*--end = '\0';
	for (;;) {
		look(folder, v, group, m);
		end = strrchr(group, '/');
		if (!end)
			return;
		*end = '\0';
	}
}

/* A mount shows the groups below its top only, in a container for example. Those of other controllers have no limits of
 * memory. */
static void look_at_mounts(const char *root, const struct version *v, const char *group, struct um_host_memory *m)
{
	char line[PATH_MAX], top[PATH_MAX], mount[PATH_MAX], folder[PATH_MAX];
	FILE *f;

	snprintf(line, sizeof line, "%s/proc/self/mountinfo", root);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof line, f)) {
		const char *type = strstr(line, " - ");
		size_t above;
		int n, below;

		if (!type || strncmp(type + 3, v->type, strlen(v->type)) != 0 ||
		    sscanf(line, "%*s%*s%*s%s%s", top, mount) != 2)
			continue;
		above = strcmp(top, "/") == 0 ? 0 : strlen(top);
		below = strncmp(group, top, above) == 0 && (!group[above] || group[above] == '/');
		n = snprintf(folder, sizeof folder, "%s%s%s", root, mount, below ? group + above : "");
		if (n < PATH_MAX)
			look_up(folder, v, folder + strlen(root) + strlen(mount), m);
	}
	if (f)
		fclose(f);
}

/* "0::/path" is of version 2, "N:memory,...:/path" of version 1. */
static void look_at_groups(const char *root, struct um_host_memory *m)
{
	char path[PATH_MAX], line[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f)) {
		char *kinds = strchr(line, ':'), *group = kinds ? strchr(kinds + 1, ':') : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (!group)
			continue;
		*group++ = '\0';
		if (kinds[1] == '\0' || strstr(kinds, "memory"))
			look_at_mounts(root, &versions[kinds[1] != '\0'], group, m);
	}
	if (f)
		fclose(f);
}

void um_host_memory_find(const char *root, struct um_host_memory *m)
{
	uint64_t kib = read_number(root, "proc/meminfo", "MemAvailable:");

	*m = (struct um_host_memory){.bytes = UINT64_MAX};
	if (kib)
		lower(m, kib * 1024, "MemAvailable of /proc/meminfo");
	look_at_groups(root, m);
}
