/* SPDX-License-Identifier: Apache-2.0
 *
 * play_again.h - plays lookahead as it will be with relaunches
 *
 * in    as for um_play; o->recompute is set
 * out   likewise, by a plan that launches ops again where that is faster
 *
 * The library follows its plan of swaps first. Then the plan with relaunches is played as it is written. The faster one
 * is the result.
 */
#ifndef UM_PLAY_PLAY_AGAIN_H
#define UM_PLAY_PLAY_AGAIN_H

#include "play/player.h"

int um_play_again(const struct um_trace *trace, const struct um_play_options *o, struct um_play_result *out);

#endif
