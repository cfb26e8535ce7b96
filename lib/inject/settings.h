/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.h - settings of `umadvise run`, from the environment
 *
 * in    UMADVISE_RUN_*, as the tool sets them; the libraries of the process
 * out   which allocations become managed
 * owns  nothing
 */
#ifndef UM_INJECT_SETTINGS_H
#define UM_INJECT_SETTINGS_H

#include <stdint.h>

/* Size of the smallest allocation that becomes managed; UINT64_MAX: none does. */
uint64_t um_settings_least(void);
/* May a little device memory stay as it is, in small allocations? */
int um_settings_keeps_small(void);
/* Most bytes of managed memory beyond that of the device; 0: not known. */
uint64_t um_settings_host_bytes(void);
/* Is the run recorded, as a workload or in a run log? */
int um_settings_recorded(void);
/* File for the plan at exit, or NULL. */
const char *um_settings_plan(void);
/* No line at exit? */
int um_settings_quiet(void);
/* Does a kernel's name, or its PTX code, say what the kernel only reads? */
int um_settings_reads_names(void);
int um_settings_reads_code(void);
/* Are the nodes of a graph that needs more than the budget launched one after the other? */
int um_settings_launches_nodes(void);
/* Is `code` in a library whose memory other devices access directly? */
int um_settings_excludes(const void *code);

#endif
