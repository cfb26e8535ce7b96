/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulated devices are found by name and bring what a simulation offers beyond the table.
 */
#include "devices/devices.h"
#include "gpu/null.h"
#include "model/profile.h"

#include "tap.h"

static void finds_by_name(void)
{
	ok(um_simulator_find("sim") != NULL, "the simulated GPU is listed as 'sim'");
	ok(um_simulator_find("simulator") == NULL, "a name that is not listed is not found");
}

static void opens_what_was_asked_for(void)
{
	struct um_simulator_options o = {.profile = um_profile_find("v100"), .capacity = 64u << 20};
	struct um_gpu *gpu = NULL;

	is_int(um_simulator_find("sim")->open(&gpu, &o), 0, "the open function opens a device");
	if (!gpu)
		tap_bail("no device");
	is_u64(gpu->caps.capacity, 64u << 20, "the device has the capacity that was asked for");
	ok(gpu->api->simulation && gpu->caps.virtual_time, "the table of a simulated device has a simulation");
	is_int(gpu->api->simulation->sync(gpu), UM_CUDA_OK, "the simulation of an idle device is synchronised at once");
	gpu->api->close(gpu);
}

static void others_have_none(void)
{
	struct um_gpu *gpu;

	if (um_null_open(&gpu, 1u << 30, 0))
		tap_bail("no null device");
	ok(gpu->api->simulation == NULL, "the table of another device has no simulation");
	gpu->api->close(gpu);
}

int main(void)
{
	finds_by_name();
	opens_what_was_asked_for();
	others_have_none();
	return tap_done();
}
