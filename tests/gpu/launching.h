/* SPDX-License-Identifier: Apache-2.0
 *
 * launching.h - what a launch takes on another thread meanwhile
 *
 * launching_begin(stream) returns when that thread has launched its first kernel; after launching_end() launch_us has
 * the times of all launches, in us.
 */
#ifndef LAUNCHING_H
#define LAUNCHING_H

#include "hazard_child.h"

#include <atomic>
#include <vector>

__global__ void nothing_kernel(void)
{
}

static std::atomic<int> launching(0), launched(0);
static std::vector<double> launch_us;
static pthread_t launcher;

static void *launches(void *stream)
{
	(void)cudaSetDevice(0);
	while (launching) {
		double begin = now_ms();

		nothing_kernel<<<1, 1, 0, (cudaStream_t)stream>>>();
		launch_us.push_back((now_ms() - begin) * 1e3);
		launched = 1;
		nap_ms(0);
	}
	return NULL;
}

static inline void launching_begin(cudaStream_t stream)
{
	launching = 1;
	launched = 0;
	if (pthread_create(&launcher, NULL, launches, stream))
		exit(1);
	while (!launched)
		nap_ms(0);
}

static inline void launching_end(void)
{
	launching = 0;
	pthread_join(launcher, NULL);
}

#endif
