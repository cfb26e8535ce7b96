/* SPDX-License-Identifier: Apache-2.0
 *
 * app_stream.c - numbers the host threads that use a per-thread default stream
 */
#include "gpu/app_stream.h"

#include <stdatomic.h>

uint64_t um_app_stream_thread(void)
{
	static _Atomic uint64_t last;
	static _Thread_local uint64_t number;

	if (!number)
		number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
	return number;
}
