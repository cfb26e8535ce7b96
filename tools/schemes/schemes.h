/* SPDX-License-Identifier: Apache-2.0
 *
 * schemes.h - published schemes that are there to be compared with, in simulation only
 *
 * Strategies like those of plan/scheme.h, which whoever links this room adds to them. It is no part of the shipped
 * library: no program runs under them.
 */
#ifndef UM_SCHEMES_SCHEMES_H
#define UM_SCHEMES_SCHEMES_H

#include "plan/scheme.h"

/* From now on the planner knows them by name. Start path, before anything is planned. */
void um_schemes_add(void);

enum um_vdnn_mode { UM_VDNN_AS_NEEDED, UM_VDNN_ALL, UM_VDNN_CONV };
int um_scheme_vdnn(struct um_scheme_input *s, int mode, struct um_scheme_result *a);
int um_scheme_capuchin(struct um_scheme_input *s, int mode, struct um_scheme_result *a);
int um_scheme_g10(struct um_scheme_input *s, int mode, struct um_scheme_result *a);
int um_scheme_swapadvisor(struct um_scheme_input *s, int mode, struct um_scheme_result *a);

#endif
