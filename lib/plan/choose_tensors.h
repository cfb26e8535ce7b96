/* SPDX-License-Identifier: Apache-2.0
 *
 * choose_tensors.h - a choice of whole tensors by free time
 *
 * in    blocks, rates
 * out   gaps
 *
 * One of the choices that the search begins with. Gaps are ordered by their length beyond both copies, the longest
 * first: Capuchin's free time (Peng et al., ASPLOS 2020), without its measured feedback.
 */
#ifndef UM_PLAN_CHOOSE_TENSORS_H
#define UM_PLAN_CHOOSE_TENSORS_H

#include "plan/scheme.h"

/* As struct um_scheme's choose; there is one mode. */
int um_choose_tensors(struct um_scheme_input *s, int mode, struct um_scheme_result *a);

#endif
