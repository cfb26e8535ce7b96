/* SPDX-License-Identifier: Apache-2.0
 *
 * facts.cu - which device this is and what the library can do with it, as a line of JSON
 */
#include "ask.h"

int main(void)
{
	struct um_device_options options = {UM_VIA_ANY, -1, 0, 0};
	struct um_device_info info = {};
	size_t free_bytes = 0, total = 0;
	struct um_gpu *gpu;
	char why[200] = "";

	if (um_device_open(&gpu, &options, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 77;
	}
	um_device_info(gpu, &info);
	gpu->api->cudaMemGetInfo(gpu, &free_bytes, &total);
	printf("{\"device\": \"%s\", \"standin\": %s, \"cuda_driver\": %d, \"cuda_runtime\": %d, \"via\": \"%s\", ",
	       gpu->caps.name, info.standin ? "true" : "false", info.driver_version, info.runtime_version,
	       info.via == UM_VIA_RUNTIME ? "runtime" : "driver");
	printf("\"compute_capability\": \"%d.%d\", \"multiprocessors\": %d, \"free_bytes\": %zu, "
	       "\"total_bytes\": %zu, ", info.cc_major, info.cc_minor, info.sms, free_bytes, total);
	printf("\"managed\": %d, \"discard\": %d, \"prefetch_batch\": %d, \"pageable\": %d, "
	       "\"ats\": %d, \"why\": \"%s\"}\n", gpu->caps.concurrent_managed, gpu->caps.discard,
	       gpu->caps.prefetch_batch, gpu->caps.pageable, gpu->caps.ats, gpu->caps.why);
	gpu->api->close(gpu);
	return 0;
}
