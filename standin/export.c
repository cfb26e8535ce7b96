/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c - cuGetExportTable: refused
 *
 * NVIDIA's own runtime requests several tables without a public name when it starts, and through one of them lets the
 * driver prove that it is NVIDIA's (otherwise error 103, "integrity checks failed"). That is an authentication
 * mechanism; the licence of the toolkit forbids circumventing it, and this driver does not try: it has no hidden
 * tables, and says so.
 */
#include "standin/standin.h"

#include <dlfcn.h>
#include <stdio.h>

UM_EXPORT int cuGetExportTable(const void **table, const unsigned char *uuid);

/* A way round for the file of that path, or "". */
static const char *way_round(const char *path, const char *name)
{
	if (strncmp(name, "libcudnn", 8) == 0)
		return ". PyTorch does without it: torch.backends.cudnn.enabled = False";
	if (strstr(path, "/cupy_backends/"))
		return ": build this module of CuPy with the shared one (doc/cupy.md)";
	if (strstr(path, "/cupy/"))
		return ". CuPy does without its cub: CUPY_ACCELERATORS= (doc/cupy.md)";
	return strncmp(name, "lib", 3) ? ": link the shared one (nvcc -cudart shared), and dryrun puts its own there"
				       : "";
}

/* Names the library or program whose code is at `code`, and a way round. */
static int refuse(const void *code)
{
	Dl_info where;
	const char *path = dladdr(code, &where) && where.dli_fname ? where.dli_fname : "a library";
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char text[512];

	snprintf(text, sizeof text, "NVIDIA's CUDA runtime inside %.200s, which starts on NVIDIA's own driver only%s",
		 name, way_round(path, name));
	return um_standin_unsupported(text);
}

int cuGetExportTable(const void **table, const unsigned char *uuid)
{
	static const unsigned char start[4] = {0x6b, 0xd5, 0xfb, 0x6c}; /* prefix of tables that runtimes require */

	if (!table || !uuid)
		return UM_CUDA_INVALID_VALUE;
	*table = NULL;
	if (memcmp(uuid, start, sizeof start))
		return UM_CU_NOT_FOUND;
	return refuse(__builtin_return_address(0));
}

const struct um_entry um_export_entries[] = {
	UM_ENTRY(cuGetExportTable, 3000, cuGetExportTable),
	{NULL, 0, NULL, NULL},
};
