/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture: nothing is captured yet.
 */
#include "standin/work.h"

struct um_capture *um_capture_of(struct um_stream_handle *s)
{
	return s->capture;
}

void um_capture_put(struct um_capture *c)
{
	(void)c;
}

int um_capture_guard(struct um_stream_handle *s)
{
	(void)s;
	return UM_CUDA_OK;
}

int um_capture_unsafe(void)
{
	return UM_CUDA_OK;
}

int um_capture_add(struct um_stream_handle *s, const struct um_work *work)
{
	(void)s;
	(void)work;
	return UM_CUDA_NOT_SUPPORTED;
}

int um_capture_break(struct um_stream_handle *s)
{
	(void)s;
	return UM_DRIVER_CAPTURE_UNSUPPORTED;
}

UM_CALL(cuStreamIsCapturing, void *stream, int *status)
{
	int err = um_standin_enter(__func__), ok;

	if (err || !status)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_stream(stream, &ok);
	*status = 0;
	return ok ? UM_CUDA_OK : UM_CUDA_INVALID_HANDLE;
}
UM_FORWARD(cuStreamIsCapturing_ptsz, (void *s, int *status), cuStreamIsCapturing(um_ptsz(s), status))

const struct um_entry um_capture_entries[] = {
        {"cuStreamIsCapturing", 10000, cuStreamIsCapturing, cuStreamIsCapturing_ptsz},
        {0},
};
