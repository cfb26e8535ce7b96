/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/host_memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The files of a version of cgroups. Pages of files that were not used lately count as used, but are reclaimed. */
static const struct version {
	const char *mount, *most, *used, *reclaimed;
} versions[] = {
	{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
	{"/sys/fs/cgroup/unified", "memory.max", "memory.current", "inactive_file "},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

/* The number after `key` at the begin of a line, 0 if there is none. `key` "": the file is a number. */
static uint64_t read_number(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	char line[256];
	uint64_t n = 0;

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

/* One cgroup. The limit "max" is no number. */
static void look(const char *root, const struct version *v, const char *group, struct um_host_memory *m)
{
	char path[PATH_MAX], limit[sizeof m->limit];
	uint64_t most, used, reclaimed;

	snprintf(path, sizeof path, "%s%s%s/%s", root, v->mount, group, v->most);
	most = read_number(path, "");
	if (!most || most >= INT64_MAX / 2)
		return;
	snprintf(path, sizeof path, "%s%s%s/%s", root, v->mount, group, v->used);
	used = read_number(path, "");
	snprintf(path, sizeof path, "%s%s%s/memory.stat", root, v->mount, group);
	reclaimed = read_number(path, v->reclaimed);
	used -= reclaimed < used ? reclaimed : used;
	snprintf(limit, sizeof limit, "%s of cgroup %.140s", v->most, *group ? group : "/");
	lower(m, most > used ? most - used : 0, limit);
}

/* A cgroup and all above it: each has a limit of its own. */
static void look_up(const char *root, const struct version *v, char *group, struct um_host_memory *m)
{
	char *end = group + strlen(group);

	while (end > group && end[-1] == '/')
		*--end = '\0';
	for (;;) {
		look(root, v, group, m);
		end = strrchr(group, '/');
		if (!end)
			return;
		*end = '\0';
	}
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
		if (strcmp(kinds, ":") == 0) {
			char again[PATH_MAX];

			snprintf(again, sizeof again, "%s", group);
			look_up(root, &versions[0], again, m);
			look_up(root, &versions[1], group, m);
		} else if (strstr(kinds, "memory")) {
			look_up(root, &versions[2], group, m);
		}
	}
	if (f)
		fclose(f);
}

void um_host_memory_find(const char *root, struct um_host_memory *m)
{
	char path[PATH_MAX];
	uint64_t kib;

	*m = (struct um_host_memory){.bytes = UINT64_MAX};
	snprintf(path, sizeof path, "%s/proc/meminfo", root);
	kib = read_number(path, "MemAvailable:");
	if (kib)
		lower(m, kib * 1024, "MemAvailable of /proc/meminfo");
	look_at_groups(root, m);
}
