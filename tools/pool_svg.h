/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_svg.h - draws where a pool places the tensors of an iteration
 */
#ifndef UM_POOL_SVG_H
#define UM_POOL_SVG_H

#include "pool/compare.h"

/* Writes `path`; ops from left to right, addresses upwards. 0, or the exit code after an error message. */
int pool_svg_write(const char *path, const char *workload, const char *pool, const struct um_pool_calls *calls,
		   struct um_pool_window window, const struct um_pool_figures *figures);

#endif
