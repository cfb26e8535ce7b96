/* SPDX-License-Identifier: Apache-2.0
 *
 * module.h - a loaded device image
 *
 * in    an image
 * out   functions, and memory for variables
 * owns  both
 *
 * A struct um_function lives as long as its module; launches keep copies of the fields that they need.
 */
#ifndef UM_STANDIN_MODULE_H
#define UM_STANDIN_MODULE_H

#include "kernel/image.h"
#include "standin/var_room.h"
#include "standin/standin.h"

struct um_module {
	struct um_module *next;
	struct um_image image;
	struct um_function *function; /* a kernel each */
	size_t n_functions;
	uint64_t *var; /* where each variable is, in `room` or `managed` */
	size_t n_vars;
	struct um_var_room room[UM_SIM_DEVICES_MAX]; /* device memory: of a device that has used a variable */
	void *managed; /* managed memory; NULL: no such variable */
};

#endif
