/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx_none.c - nvtx.h in a build without NVTX headers: no tool is ever attached
 */
#include "io/nvtx.h"

#include <string.h>

int um_nvtx_built(void)
{
	return 0;
}

int um_nvtx_open(struct um_nvtx *m)
{
	memset(m, 0, sizeof *m);
	return 0;
}

void um_nvtx_close(struct um_nvtx *m)
{
	(void)m;
}

void um_nvtx_iter(struct um_nvtx *m, uint64_t n, const char *name)
{
	(void)m;
	(void)n;
	(void)name;
}

int um_nvtx_hint(const struct um_nvtx *m, const struct um_activity *hint)
{
	(void)m;
	(void)hint;
	return 0;
}
