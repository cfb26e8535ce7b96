/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_plan.c - umadvise plan: learn a recorded workload, write the plan
 */
#include "play_args.h"
#include "tool.h"
#include "umadvise.h"

#include <stdio.h>

static const char usage[] =
	"Usage: umadvise plan TRACE [OPTION]... -o FILE\n\n"
	"Plays TRACE (umtrace) on a simulated GPU until it is learned and writes the plan (umplan): what each\n"
	"iteration does, and the hints that make it fit.\n\n"
	"  --profile NAME|FILE   the device: k40, 1080ti, v100 (default), rtx4090, a100, h100, h200, gh200, or a file\n"
	"  --oversubscribe R     keep to (most bytes alive at once) / R\n"
	"  --budget BYTES        keep to so much; a number with KiB, MiB or GiB (default: the profile's capacity)\n"
	"  --iterations N        iterations to play (default 8)\n"
	"  -o, --output FILE     where to write; gzip if the name ends in .gz; - for standard output\n"
	"  -h, --help            this text\n\n"
	"Example:\n"
	"  umadvise plan resnet50.umtrace.gz --profile a100 --oversubscribe 1.5 -o resnet50.umplan.gz\n";

int cmd_plan(int argc, char **argv)
{
	struct play_args a;
	struct play_progress progress;
	struct um_play_result r;
	int code = play_args_read(&a, argc, argv, usage);

	if (code)
		return code - 1;
	if (!a.output || a.n_traces != 1) {
		tool_say("plan", a.output ? "%d traces given: expected one" : "no output given: expected -o FILE",
			 a.n_traces);
		return TOOL_USAGE;
	}
	struct um_trace *t = play_args_trace(&a, a.traces[0], &code);

	if (!t)
		return code;
	struct um_play_options o = {.profile = &a.profile,
				    .budget = play_args_budget(&a, t),
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = a.iterations,
				    .progress = play_progress_show,
				    .user = &progress,
				    .save_plan = a.output};

	play_progress_begin(&progress, a.traces[0], "lookahead");
	int err = um_play(t, &o, &r);

	play_progress_end(&progress);
	if (err) {
		tool_say("plan", "%s: %s", a.traces[0], *r.why ? r.why : umadv_strerror(err));
	} else if (a.output[0] != '-' || a.output[1]) {
		printf("%s: steady iteration %.3f ms, in core %.3f ms, peak %.1f of %.1f MiB\n", a.output,
		       (double)r.plan.ns / 1e6, (double)(r.plan.ns - r.plan.stall_ns) / 1e6,
		       (double)r.plan.peak_bytes / 1048576.0, (double)o.budget / 1048576.0);
	}
	um_play_result_fini(&r);
	um_trace_free(t);
	return play_exit_of(err);
}
