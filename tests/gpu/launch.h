/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.h - each(stream, n, body): body(0) to body(n - 1), on CUDA or on the simulated GPU in the process
 *
 * With nvcc it is the launch of examples/dual.h, for a GPU and for the stand-in driver. Without, the body is run by
 * umadv_sim_run() in the context `launch_on`. A kernel is a struct with its arguments and operator().
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#ifdef __CUDACC__

/* Whether, under the stand-in driver, kernels compute. Where only times are wanted they need not. */
static bool launch_computes = true;

#include <umadvise_dryrun.h>
#define umadv_dryrun_kernel(kernel, host) (launch_computes ? umadv_dryrun_kernel(kernel, host) : 0)
#include "dual.h"

#define BODY __host__ __device__
typedef cudaStream_t stream_t;

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umadvise.h>

#define BODY
typedef void *stream_t;

extern struct umadv *launch_on;

template <typename Body> struct launched {
	long n;
	Body body;
};

template <typename Body> void launch_run(void *arg)
{
	struct launched<Body> *l = (struct launched<Body> *)arg;

	for (long i = 0; i < l->n; i++)
		l->body(i);
	delete l;
}

template <typename Body> void each(stream_t stream, long n, const Body &body)
{
	struct launched<Body> *l = new launched<Body> {
		n, body
	};

	if (umadv_sim_run(launch_on, stream, launch_run<Body>, l))
		abort();
}

#endif

#endif
