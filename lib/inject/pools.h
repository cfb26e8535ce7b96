/* SPDX-License-Identifier: Apache-2.0
 *
 * pools.h - which pools of memory are for this process and one device only, so that managed memory may take their place
 *
 * in    pools that the program creates
 * out   whether an allocation of one may become managed memory
 *
 * Thread-safe.
 */
#ifndef UM_INJECT_POOLS_H
#define UM_INJECT_POOLS_H

/* Of the device of the calling thread, without handles for other processes and without a limit. */
int um_pools_private(const void *pool);

#endif
