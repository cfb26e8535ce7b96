/* SPDX-License-Identifier: Apache-2.0
 *
 * schemes.h - published schemes for comparison, in simulation only
 *
 * Further strategies of the kind of plan/scheme.h for programs that link this directory. The shipped library does not
 * have them.
 */
#ifndef UM_SCHEMES_SCHEMES_H
#define UM_SCHEMES_SCHEMES_H

#include "plan/scheme.h"

/* Registers them with the planner by name. Start path, before the first plan. */
void um_schemes_add(void);

enum um_vdnn_mode { UM_VDNN_AS_NEEDED, UM_VDNN_ALL, UM_VDNN_CONV };
int um_scheme_vdnn(struct um_scheme_input *s, int mode, struct um_scheme_result *a);
int um_scheme_capuchin(struct um_scheme_input *s, int mode, struct um_scheme_result *a);
int um_capuchin_drops(const struct um_versions *v, const struct um_plan *plan, const struct um_profile *profile,
		      struct um_drops *d);
int um_scheme_g10(struct um_scheme_input *s, int mode, struct um_scheme_result *a);
int um_scheme_swapadvisor(struct um_scheme_input *s, int mode, struct um_scheme_result *a);

#endif
