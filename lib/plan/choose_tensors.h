/* SPDX-License-Identifier: Apache-2.0
 *
 * choose_tensors.h - whole tensors by the time that their copies leave over
 *
 * in    blocks, rates
 * out   gaps
 *
 * One of the choices that the search begins with. Gaps go by how much longer they are than both copies take, the
 * longest first: Capuchin's free time (Peng et al., ASPLOS 2020), without its measured feedback.
 */
#ifndef UM_PLAN_CHOOSE_TENSORS_H
#define UM_PLAN_CHOOSE_TENSORS_H

#include "plan/scheme.h"

/* As struct um_scheme's choose; there is one mode. */
int um_choose_tensors(struct um_scheme_case *s, int mode, struct um_scheme_answer *a);

#endif
