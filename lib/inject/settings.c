/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries for communication register their memory with network devices or other processes, which managed memory does
 * not allow. They are known by their file's name.
 */
#include "inject/settings.h"

#include "inject/nvtx_ranges.h"

#include "base/size.h"
#include "gpu/nvtx_listen.h"
#include "runtime/environment.h"
#include "runtime/host_memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t least, host;
static int quiet, reads_names, reads_code, small, nodes;

/* Memory that the process can still take, of which a tenth is left to others. */
static uint64_t available(void)
{
	struct um_host_memory m;

	um_host_memory_find("", &m);
	return m.bytes < UINT64_MAX ? m.bytes / 10 * 9 : 0;
}

static void read_settings(void)
{
	const char *managed = um_variable_get("UMADVISE_RUN_MANAGED"), *most = um_variable_get("UMADVISE_RUN_HOST");

	small = !managed;
	if (managed && !strcmp(managed, "none"))
		least = UINT64_MAX;
	else if (!managed || um_size_parse(managed, &least))
		least = 0;
	if (!most || um_size_parse(most, &host))
		host = available();
	quiet = um_variable_on("UMADVISE_RUN_QUIET");
	reads_names = !um_variable_off("UMADVISE_RUN_CONST");
	nodes = !um_variable_is("UMADVISE_RUN_GRAPHS", "whole") && !um_variable_on("UMADVISE_DISABLE");
	reads_code = reads_names && !um_variable_is("UMADVISE_RUN_CONST", "names");
}

uint64_t um_settings_least(void)
{
	pthread_once(&once, read_settings);
	return least;
}

int um_settings_keeps_small(void)
{
	pthread_once(&once, read_settings);
	return small;
}

uint64_t um_settings_host_bytes(void)
{
	pthread_once(&once, read_settings);
	return host;
}

int um_settings_recorded(void)
{
	return um_variable_get("UMADVISE_TRACE") || um_variable_get("UMADVISE_RUN_LOG");
}

const char *um_settings_plan(void)
{
	return um_variable_get("UMADVISE_RUN_PLAN");
}

int um_settings_reads_names(void)
{
	pthread_once(&once, read_settings);
	return reads_names;
}

int um_settings_reads_code(void)
{
	pthread_once(&once, read_settings);
	return reads_code;
}

int um_settings_launches_nodes(void)
{
	pthread_once(&once, read_settings);
	return nodes;
}

int um_settings_quiet(void)
{
	pthread_once(&once, read_settings);
	return quiet;
}

/* The tool has set NVTX's variable to this library. If it names another one, a profiler that the tool started set it
 * for the program: that one comes next, not the one before the tool. Calls nothing of CUDA. */
__attribute__((constructor)) static void take_nvtx(void)
{
	int listens = um_settings_recorded() || um_variable_get("UMADVISE_ITERATION");
	const char *path = listens ? um_variable_get("NVTX_INJECTION64_PATH") : NULL;

	if (um_settings_recorded())
		um_nvtx_ranges_keep();
	if (path && !strstr(path, "libumadvise-preload.so"))
		unsetenv("UMADVISE_NVTX_NEXT");
	um_nvtx_listen();
}

int um_settings_excludes(const void *code)
{
	static const char *const names[] = {"libnccl", "libnvshmem", "libmpi", "libucs", "libuct", "libucp", "librccl"};
	const char *file;
	Dl_info in;

	if (!dladdr(code, &in) || !in.dli_fname)
		return 0;
	file = strrchr(in.dli_fname, '/');
	file = file ? file + 1 : in.dli_fname;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(file, names[i], strlen(names[i])))
			return 1;
	return 0;
}
