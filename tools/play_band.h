/* SPDX-License-Identifier: Apache-2.0
 *
 * play_band.h - on-demand with each pattern of faults: the least and the most time of a steady iteration
 *
 * in    a trace and the options of a play
 * out   the result of each pattern, and which are the fastest and the slowest
 * owns  the results, until play_band_fini
 */
#ifndef UM_TOOLS_PLAY_BAND_H
#define UM_TOOLS_PLAY_BAND_H

#include "gpu/gpu.h"
#include "play/player.h"

struct play_band {
	struct um_play_result at[UM_PATTERNS]; /* by pattern */
	enum um_pattern least, most; /* the fastest, the slowest; the same if all take the same time */
	enum um_pattern failed; /* after an error */
};

/* Plays once for each pattern; `o->pattern` is ignored. 0, or -errno, explained by the result of `failed`; finish it in
 * any case. */
int play_band_run(const struct um_trace *trace, const struct um_play_options *o, struct play_band *out);
void play_band_fini(struct play_band *b);

/* "library", "narrow", "wide". */
const char *play_pattern_name(enum um_pattern pattern);

#endif
