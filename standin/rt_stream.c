/* SPDX-License-Identifier: Apache-2.0
 *
 * rt_stream.c - streams, events, capture and graphs of the runtime: its handles are the driver's
 */
#include "standin/rt.h"

UM_RT(cudaStreamCreate, (void **stream), cuStreamCreate, (stream, 0))
UM_RT(cudaStreamCreateWithFlags, (void **stream, unsigned flags), cuStreamCreate, (stream, flags))
UM_RT(cudaStreamCreateWithPriority, (void **stream, unsigned flags, int priority), cuStreamCreateWithPriority,
      (stream, flags, priority))
UM_RT(cudaStreamDestroy, (void *stream), cuStreamDestroy, (stream))
UM_RT_STREAM(cudaStreamSynchronize, (void *stream), cuStreamSynchronize, (stream))
UM_RT_STREAM(cudaStreamQuery, (void *stream), cuStreamQuery, (stream))
UM_RT_STREAM(cudaStreamGetFlags, (void *stream, unsigned *flags), cuStreamGetFlags, (stream, flags))
UM_RT_STREAM(cudaStreamGetId, (void *stream, unsigned long long *id), cuStreamGetId, (stream, id))
UM_RT_STREAM(cudaStreamGetPriority, (void *stream, int *priority), cuStreamGetPriority, (stream, priority))
UM_RT_STREAM(cudaStreamWaitEvent, (void *stream, void *event, unsigned flags), cuStreamWaitEvent,
	     (stream, event, flags))
UM_RT_STREAM(cudaStreamAddCallback,
	     (void *stream, void (*fn)(void *stream, int error, void *arg), void *arg, unsigned flags),
	     cuStreamAddCallback, (stream, fn, arg, flags))
UM_RT_STREAM(cudaLaunchHostFunc, (void *stream, void (*fn)(void *arg), void *arg), cuLaunchHostFunc, (stream, fn, arg))

UM_RT(cudaEventCreate, (void **event), cuEventCreate, (event, 0))
UM_RT(cudaEventCreateWithFlags, (void **event, unsigned flags), cuEventCreate, (event, flags))
UM_RT(cudaEventDestroy, (void *event), cuEventDestroy, (event))
UM_RT(cudaEventQuery, (void *event), cuEventQuery, (event))
UM_RT(cudaEventSynchronize, (void *event), cuEventSynchronize, (event))
UM_RT(cudaEventElapsedTime, (float *ms, void *start, void *end), cuEventElapsedTime, (ms, start, end))
UM_RT_STREAM(cudaEventRecord, (void *event, void *stream), cuEventRecord, (event, stream))
UM_RT_STREAM(cudaEventRecordWithFlags, (void *event, void *stream, unsigned flags), cuEventRecordWithFlags,
	     (event, stream, flags))

UM_RT_STREAM(cudaStreamBeginCapture, (void *stream, int mode), cuStreamBeginCapture, (stream, mode))
UM_RT_STREAM(cudaStreamEndCapture, (void *stream, void **graph), cuStreamEndCapture, (stream, graph))
UM_RT_STREAM(cudaStreamIsCapturing, (void *stream, int *status), cuStreamIsCapturing, (stream, status))
UM_RT(cudaThreadExchangeStreamCaptureMode, (int *mode), cuThreadExchangeStreamCaptureMode, (mode))

#if UM_RT_MAJOR == 12
UM_RT_STREAM(cudaStreamGetCaptureInfo, (void *stream, int *status, unsigned long long *id), cuStreamGetCaptureInfo,
	     (stream, status, id, NULL, NULL, NULL))
UM_RT_STREAM(cudaStreamGetCaptureInfo_v2,
	     (void *stream, int *status, unsigned long long *id, void **graph, const void ***after, size_t *n),
	     cuStreamGetCaptureInfo, (stream, status, id, graph, after, n))
#else
/* Edges have no data, which queries return as empty. */
UM_RT_STREAM(cudaStreamGetCaptureInfo,
	     (void *stream, int *status, unsigned long long *id, void **graph, const void ***after, const void **edges,
	      size_t *n),
	     cuStreamGetCaptureInfo, (edges ? (*edges = NULL, stream) : stream, status, id, graph, after, n))
#endif

UM_RT(cudaGraphInstantiate, (void **exec, void *graph, unsigned long long flags), cuGraphInstantiateWithFlags,
      (exec, graph, flags))
UM_RT(cudaGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags), cuGraphInstantiateWithFlags,
      (exec, graph, flags))
UM_RT(cudaGraphDestroy, (void *graph), cuGraphDestroy, (graph))
UM_RT(cudaGraphExecDestroy, (void *exec), cuGraphExecDestroy, (exec))
UM_RT(cudaGraphExecUpdate, (void *exec, void *graph, void *result), cuGraphExecUpdate, (exec, graph, result))
UM_RT(cudaGraphGetNodes, (void *graph, void **nodes, size_t *n), cuGraphGetNodes, (graph, nodes, n))
UM_RT_STREAM(cudaGraphLaunch, (void *exec, void *stream), cuGraphLaunch, (exec, stream))
UM_RT_STREAM(cudaGraphUpload, (void *exec, void *stream), cuGraphUpload, (exec, stream))
