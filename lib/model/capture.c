/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.c - memory of a recording's metadata
 */
#include "model/capture.h"

const char *const um_library_count_keys[UM_LIBRARY_COUNTS] = {"ops",
							      "hints_issued",
							      "hints_refused",
							      "hints_dropped",
							      "prefetch_bytes",
							      "evict_bytes",
							      "discard_bytes",
							      "plans_adopted",
							      "left_schedule",
							      "unknown_uses",
							      "captured_ops",
							      "errors",
							      "hints_scheduled",
							      "hints_predicted",
							      "hints_announced",
							      "prefetch_scheduled_bytes",
							      "prefetch_predicted_bytes",
							      "prefetch_announced_bytes",
							      "kept_bytes",
							      "limited_iterations",
							      "counted_h2d_bytes",
							      "counted_d2h_bytes",
							      "counted_gpu_faults",
							      "counted_cpu_faults",
							      "counters_summed",
							      "counters_lost"};
const char *const um_library_level_keys[UM_LIBRARY_LEVELS] = {"plan_ns",      "in_core_ns", "plan_peak_bytes",
							      "tensors_live", "live_bytes", "live_peak_bytes",
							      "measured_ops", "played_ns",  "shared_budget_bytes"};

void um_capture_init(struct um_capture *c)
{
	memset(c, 0, sizeof *c);
}

void um_capture_fini(struct um_capture *c)
{
	for (size_t i = 0; i < c->processes.n; i++)
		free(c->processes.at[i].name);
	for (size_t i = 0; i < c->devices.n; i++)
		free(c->devices.at[i].name);
	for (size_t i = 0; i < c->notes.n; i++)
		free(c->notes.at[i]);
	um_vec_fini(&c->processes);
	um_vec_fini(&c->devices);
	um_vec_fini(&c->missing);
	um_vec_fini(&c->notes);
}

int um_capture_note(struct um_capture *c, const char *text)
{
	char *copy = strdup(text);

	if (copy && !um_vec_push(&c->notes, copy))
		return 0;
	free(copy);
	return -ENOMEM;
}

int um_capture_process(struct um_capture *c, uint64_t process, uint64_t pid, const char *name)
{
	struct um_capture_process p = {.process = process, .pid = pid, .name = strdup(name)};

	if (p.name && !um_vec_push(&c->processes, p))
		return 0;
	free(p.name);
	return -ENOMEM;
}

int um_capture_device(struct um_capture *c, int32_t device, const char *name, uint64_t memory_bytes)
{
	struct um_capture_device d = {.device = device, .name = strdup(name), .memory_bytes = memory_bytes};

	if (d.name && !um_vec_push(&c->devices, d))
		return 0;
	free(d.name);
	return -ENOMEM;
}
