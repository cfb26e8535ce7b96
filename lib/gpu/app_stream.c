/* SPDX-License-Identifier: Apache-2.0
 *
 * app_stream.c - numbers of host threads and of the program's streams
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

unsigned um_app_streams_find_own(const struct um_app_streams *s)
{
	uint64_t thread = um_app_stream_thread();
	unsigned i = 0;

	while (i < s->n && (s->at[i].handle != UM_STREAM_PER_THREAD || s->at[i].thread != thread))
		i++;
	return i;
}

unsigned um_app_streams_spare(const struct um_app_streams *s)
{
	unsigned i = 0;

	while (i < UM_APP_STREAMS && s->live >> i & 1)
		i++;
	return i;
}

void um_app_streams_put(struct um_app_streams *s, unsigned i, struct um_app_stream stream)
{
	for (; s->n <= i; s->n++)
		s->at[s->n].handle = UM_STREAM_NONE;
	s->at[i] = stream;
	s->live |= 1u << i;
	s->usable |= (unsigned)um_app_streams_may_use(s, stream.handle) << i;
}

void um_app_streams_forget(struct um_app_streams *s, unsigned i)
{
	s->at[i] = (struct um_app_stream){UM_STREAM_NONE, 0, 0};
	s->live &= ~(1u << i);
	s->usable &= ~(1u << i);
	s->idle &= ~(1u << i);
	s->due &= ~(1u << i);
	while (s->n && s->at[s->n - 1].handle == UM_STREAM_NONE)
		s->n--;
}
