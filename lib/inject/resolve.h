/* SPDX-License-Identifier: Apache-2.0
 *
 * resolve.h - what a program gets when it looks a function of the driver up
 *
 * in    the pointer that the real resolver returned
 * out   the hook of exactly that function, or the pointer itself
 * owns  nothing
 *
 * A hook is found by the pointer, never by the name, so that it has the form (version, default stream) that the program
 * gets. Thread-safe.
 */
#ifndef UM_INJECT_RESOLVE_H
#define UM_INJECT_RESOLVE_H

#include "inject/driver.h"

/* `fn`: what the real resolver returned for `name`, not NULL. */
void *um_resolve_hook(void *fn, const char *name);

#endif
