/* SPDX-License-Identifier: Apache-2.0 */
#include "play_band.h"

#include <string.h>

const char *play_pattern_name(enum um_pattern pattern)
{
	static const char *const names[UM_PATTERNS] = {"library", "narrow", "wide"};

	return names[pattern];
}

int play_band_run(const struct um_trace *trace, const struct um_play_options *o, struct play_band *out)
{
	struct um_play_options each = *o;

	memset(out, 0, sizeof *out);
	for (int i = 0; i < UM_PATTERNS; i++) {
		int err;

		each.pattern = (enum um_pattern)i;
		err = um_play(trace, &each, &out->at[i]);
		if (err) {
			out->failed = each.pattern;
			return err;
		}
		if (out->at[i].steady_ns < out->at[out->least].steady_ns)
			out->least = each.pattern;
		if (out->at[i].steady_ns > out->at[out->most].steady_ns)
			out->most = each.pattern;
	}
	return 0;
}

void play_band_fini(struct play_band *b)
{
	for (int i = 0; i < UM_PATTERNS; i++)
		um_play_result_fini(&b->at[i]);
}
