/* SPDX-License-Identifier: Apache-2.0
 *
 * standin.h - kernels of the stand-in's libraries (cuBLAS and others), which it launches without cuLaunchKernel
 *
 * in    the table that the stand-in driver returns to its libraries
 * out   a table with one other function: it announces a launch by its addresses, as that of any kernel
 * owns  that table
 */
#ifndef UM_INJECT_STANDIN_H
#define UM_INJECT_STANDIN_H

/* Is it the name of the stand-in's table? */
int um_standin_is(const char *name);
/* The table to return in place of `table`. Thread-safe. */
void *um_standin_wrap(void *table);

#endif
