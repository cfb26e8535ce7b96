/* SPDX-License-Identifier: Apache-2.0
 *
 * rt_absent.h - names of runtime functions that the stand-in lacks
 *
 * in    nothing
 * out   their names: in both versions, in CUDA 12 only, in CUDA 13 only
 * owns  nothing
 *
 * A program that refers to one starts; a call of it is reported. The test standin_runtime.sh compares the lists with
 * the runtime.
 */
#ifndef UM_STANDIN_RT_ABSENT_H
#define UM_STANDIN_RT_ABSENT_H

/* clang-format off */
#define UM_RT_ABSENT(X) \
	X(__cudaRegisterHostVar) X(__cudaRegisterUnifiedTable) X(cudaArrayGetInfo) \
	X(cudaArrayGetMemoryRequirements) X(cudaArrayGetPlane) X(cudaArrayGetSparseProperties) \
	X(cudaCreateChannelDesc) X(cudaCreateSurfaceObject) X(cudaCreateTextureObject) \
	X(cudaCtxResetPersistingL2Cache) X(cudaDestroyExternalMemory) X(cudaDestroyExternalSemaphore) \
	X(cudaDestroySurfaceObject) X(cudaDestroyTextureObject) \
	X(cudaDeviceFlushGPUDirectRDMAWrites) X(cudaDeviceGetCacheConfig) \
	X(cudaDeviceGetGraphMemAttribute) X(cudaDeviceGetNvSciSyncAttributes) \
	X(cudaDeviceGetSharedMemConfig) X(cudaDeviceGetTexture1DLinearMaxWidth) X(cudaDeviceGraphMemTrim) \
	X(cudaDeviceRegisterAsyncNotification) X(cudaDeviceSetGraphMemAttribute) \
	X(cudaDeviceSetSharedMemConfig) X(cudaDeviceUnregisterAsyncNotification) \
	X(cudaEGLStreamConsumerAcquireFrame) X(cudaEGLStreamConsumerConnect) \
	X(cudaEGLStreamConsumerConnectWithFlags) X(cudaEGLStreamConsumerDisconnect) \
	X(cudaEGLStreamConsumerReleaseFrame) X(cudaEGLStreamProducerConnect) \
	X(cudaEGLStreamProducerDisconnect) X(cudaEGLStreamProducerPresentFrame) \
	X(cudaEGLStreamProducerReturnFrame) X(cudaEventCreateFromEGLSync) \
	X(cudaExternalMemoryGetMappedBuffer) X(cudaExternalMemoryGetMappedMipmappedArray) X(cudaFreeArray) \
	X(cudaFreeMipmappedArray) X(cudaFuncGetName) X(cudaFuncSetSharedMemConfig) X(cudaGLGetDevices) \
	X(cudaGLMapBufferObject) X(cudaGLMapBufferObjectAsync) X(cudaGLRegisterBufferObject) \
	X(cudaGLSetBufferObjectMapFlags) X(cudaGLSetGLDevice) X(cudaGLUnmapBufferObject) \
	X(cudaGLUnmapBufferObjectAsync) X(cudaGLUnregisterBufferObject) X(cudaGetChannelDesc) \
	X(cudaGetExportTable) X(cudaGetMipmappedArrayLevel) X(cudaGetSurfaceObjectResourceDesc) \
	X(cudaGetTextureObjectResourceDesc) X(cudaGetTextureObjectResourceViewDesc) \
	X(cudaGetTextureObjectTextureDesc) X(cudaGraphAddChildGraphNode) X(cudaGraphAddDependencies) \
	X(cudaGraphAddEmptyNode) X(cudaGraphAddEventRecordNode) X(cudaGraphAddEventWaitNode) \
	X(cudaGraphAddExternalSemaphoresSignalNode) X(cudaGraphAddExternalSemaphoresWaitNode) \
	X(cudaGraphAddHostNode) X(cudaGraphAddKernelNode) X(cudaGraphAddMemAllocNode) \
	X(cudaGraphAddMemFreeNode) X(cudaGraphAddMemcpyNode) X(cudaGraphAddMemcpyNode1D) \
	X(cudaGraphAddMemcpyNodeFromSymbol) X(cudaGraphAddMemcpyNodeToSymbol) X(cudaGraphAddMemsetNode) \
	X(cudaGraphAddNode) X(cudaGraphChildGraphNodeGetGraph) X(cudaGraphClone) \
	X(cudaGraphConditionalHandleCreate) X(cudaGraphCreate) X(cudaGraphDebugDotPrint) \
	X(cudaGraphDestroyNode) X(cudaGraphEventRecordNodeGetEvent) X(cudaGraphEventRecordNodeSetEvent) \
	X(cudaGraphEventWaitNodeGetEvent) X(cudaGraphEventWaitNodeSetEvent) \
	X(cudaGraphExecChildGraphNodeSetParams) X(cudaGraphExecEventRecordNodeSetEvent) \
	X(cudaGraphExecEventWaitNodeSetEvent) X(cudaGraphExecExternalSemaphoresSignalNodeSetParams) \
	X(cudaGraphExecExternalSemaphoresWaitNodeSetParams) X(cudaGraphExecGetFlags) \
	X(cudaGraphExecHostNodeSetParams) X(cudaGraphExecKernelNodeSetParams) \
	X(cudaGraphExecMemcpyNodeSetParams) X(cudaGraphExecMemcpyNodeSetParams1D) \
	X(cudaGraphExecMemcpyNodeSetParamsFromSymbol) X(cudaGraphExecMemcpyNodeSetParamsToSymbol) \
	X(cudaGraphExecMemsetNodeSetParams) X(cudaGraphExecNodeSetParams) \
	X(cudaGraphExternalSemaphoresSignalNodeGetParams) X(cudaGraphExternalSemaphoresSignalNodeSetParams) \
	X(cudaGraphExternalSemaphoresWaitNodeGetParams) X(cudaGraphExternalSemaphoresWaitNodeSetParams) \
	X(cudaGraphGetEdges) X(cudaGraphGetRootNodes) X(cudaGraphHostNodeGetParams) \
	X(cudaGraphHostNodeSetParams) X(cudaGraphInstantiateWithParams) \
	X(cudaGraphInstantiateWithParams_ptsz) X(cudaGraphKernelNodeCopyAttributes) \
	X(cudaGraphKernelNodeGetAttribute) X(cudaGraphKernelNodeGetParams) X(cudaGraphKernelNodeSetAttribute) \
	X(cudaGraphKernelNodeSetParams) X(cudaGraphMemAllocNodeGetParams) X(cudaGraphMemFreeNodeGetParams) \
	X(cudaGraphMemcpyNodeGetParams) X(cudaGraphMemcpyNodeSetParams) X(cudaGraphMemcpyNodeSetParams1D) \
	X(cudaGraphMemcpyNodeSetParamsFromSymbol) X(cudaGraphMemcpyNodeSetParamsToSymbol) \
	X(cudaGraphMemsetNodeGetParams) X(cudaGraphMemsetNodeSetParams) X(cudaGraphNodeFindInClone) \
	X(cudaGraphNodeGetDependencies) X(cudaGraphNodeGetDependentNodes) X(cudaGraphNodeGetEnabled) \
	X(cudaGraphNodeGetType) X(cudaGraphNodeSetEnabled) X(cudaGraphNodeSetParams) \
	X(cudaGraphReleaseUserObject) X(cudaGraphRemoveDependencies) X(cudaGraphRetainUserObject) \
	X(cudaGraphicsEGLRegisterImage) X(cudaGraphicsGLRegisterBuffer) X(cudaGraphicsGLRegisterImage) \
	X(cudaGraphicsMapResources) X(cudaGraphicsResourceGetMappedEglFrame) \
	X(cudaGraphicsResourceGetMappedMipmappedArray) X(cudaGraphicsResourceGetMappedPointer) \
	X(cudaGraphicsResourceSetMapFlags) X(cudaGraphicsSubResourceGetMappedArray) \
	X(cudaGraphicsUnmapResources) X(cudaGraphicsUnregisterResource) \
	X(cudaGraphicsVDPAURegisterOutputSurface) X(cudaGraphicsVDPAURegisterVideoSurface) \
	X(cudaHostGetFlags) X(cudaImportExternalMemory) X(cudaImportExternalSemaphore) \
	X(cudaIpcCloseMemHandle) X(cudaIpcGetEventHandle) X(cudaIpcGetMemHandle) X(cudaIpcOpenEventHandle) \
	X(cudaIpcOpenMemHandle) X(cudaMalloc3D) X(cudaMalloc3DArray) X(cudaMallocArray) \
	X(cudaMallocMipmappedArray) X(cudaMemPoolExportPointer) X(cudaMemPoolExportToShareableHandle) \
	X(cudaMemPoolImportFromShareableHandle) X(cudaMemPoolImportPointer) X(cudaMemcpy2DArrayToArray) \
	X(cudaMemcpy2DArrayToArray_ptds) X(cudaMemcpy2DAsync_ptsz) X(cudaMemcpy2DFromArray) \
	X(cudaMemcpy2DFromArrayAsync) X(cudaMemcpy2DFromArrayAsync_ptsz) X(cudaMemcpy2DFromArray_ptds) \
	X(cudaMemcpy2DToArray) X(cudaMemcpy2DToArrayAsync) X(cudaMemcpy2DToArrayAsync_ptsz) \
	X(cudaMemcpy2DToArray_ptds) X(cudaMemcpy2D_ptds) X(cudaMemcpy3D) X(cudaMemcpy3DAsync) \
	X(cudaMemcpy3DAsync_ptsz) X(cudaMemcpy3DPeer) X(cudaMemcpy3DPeerAsync) X(cudaMemcpy3DPeerAsync_ptsz) \
	X(cudaMemcpy3DPeer_ptds) X(cudaMemcpy3D_ptds) X(cudaMemcpyArrayToArray) \
	X(cudaMemcpyArrayToArray_ptds) X(cudaMemcpyFromArray) X(cudaMemcpyFromArrayAsync) \
	X(cudaMemcpyFromArrayAsync_ptsz) X(cudaMemcpyFromArray_ptds) X(cudaMemcpyFromSymbolAsync_ptsz) \
	X(cudaMemcpyFromSymbol_ptds) X(cudaMemcpyToArray) \
	X(cudaMemcpyToArrayAsync) X(cudaMemcpyToArrayAsync_ptsz) X(cudaMemcpyToArray_ptds) \
	X(cudaMemcpyToSymbolAsync_ptsz) X(cudaMemcpyToSymbol_ptds) X(cudaMemset2D_ptds) X(cudaMemset3D) \
	X(cudaMemset3DAsync) X(cudaMemset3DAsync_ptsz) X(cudaMemset3D_ptds) \
	X(cudaMipmappedArrayGetMemoryRequirements) X(cudaMipmappedArrayGetSparseProperties) \
	X(cudaOccupancyAvailableDynamicSMemPerBlock) X(cudaOccupancyMaxActiveClusters) \
	X(cudaOccupancyMaxPotentialClusterSize) X(cudaSetValidDevices) X(cudaSignalExternalSemaphoresAsync) \
	X(cudaSignalExternalSemaphoresAsync_ptsz) X(cudaStreamBeginCaptureToGraph) \
	X(cudaStreamBeginCaptureToGraph_ptsz) X(cudaStreamCopyAttributes) X(cudaStreamCopyAttributes_ptsz) \
	X(cudaStreamGetAttribute) X(cudaStreamGetAttribute_ptsz) \
	X(cudaStreamSetAttribute) X(cudaStreamSetAttribute_ptsz) X(cudaStreamUpdateCaptureDependencies) \
	X(cudaStreamUpdateCaptureDependencies_ptsz) X(cudaUserObjectCreate) X(cudaUserObjectRelease) \
	X(cudaUserObjectRetain) X(cudaVDPAUGetDevice) X(cudaVDPAUSetVDPAUDevice) \
	X(cudaWaitExternalSemaphoresAsync) X(cudaWaitExternalSemaphoresAsync_ptsz)

#if UM_RT_MAJOR == 12
#define UM_RT_ABSENT_HERE(X) \
	X(cudaGetDeviceProperties) X(cudaGraphAddDependencies_v2) X(cudaGraphAddNode_v2) \
	X(cudaGraphGetEdges_v2) X(cudaGraphNodeGetDependencies_v2) X(cudaGraphNodeGetDependentNodes_v2) \
	X(cudaGraphRemoveDependencies_v2) X(cudaLaunchCooperativeKernelMultiDevice) X(cudaSetDoubleForDevice) \
	X(cudaSetDoubleForHost) X(cudaSignalExternalSemaphoresAsync_v2) \
	X(cudaSignalExternalSemaphoresAsync_v2_ptsz) X(cudaStreamGetCaptureInfo_v3) \
	X(cudaStreamGetCaptureInfo_v3_ptsz) X(cudaStreamUpdateCaptureDependencies_v2) \
	X(cudaStreamUpdateCaptureDependencies_v2_ptsz) X(cudaThreadExit) X(cudaThreadGetCacheConfig) \
	X(cudaThreadGetLimit) X(cudaThreadSetCacheConfig) X(cudaThreadSetLimit) X(cudaThreadSynchronize) \
	X(cudaWaitExternalSemaphoresAsync_v2) X(cudaWaitExternalSemaphoresAsync_v2_ptsz)
#else
#define UM_RT_ABSENT_HERE(X) \
	X(__cudaGetProcAddress) X(cudaDeviceGetHostAtomicCapabilities) X(cudaDeviceGetP2PAtomicCapabilities) \
	X(cudaGetDriverEntryPointByVersion_ptsz) X(cudaKernelSetAttributeForDevice) \
	X(cudaLibraryEnumerateKernels) X(cudaLibraryGetGlobal) X(cudaLibraryGetKernel) \
	X(cudaLibraryGetKernelCount) X(cudaLibraryGetManaged) X(cudaLibraryGetUnifiedFunction) \
	X(cudaLibraryLoadData) X(cudaLibraryLoadFromFile) X(cudaLibraryUnload) X(cudaLogsCurrent) \
	X(cudaLogsDumpToFile) X(cudaLogsDumpToMemory) X(cudaLogsRegisterCallback) \
	X(cudaLogsUnregisterCallback) X(cudaMemcpy3DBatchAsync) X(cudaMemcpy3DBatchAsync_ptsz) \
	X(cudaMemcpyBatchAsync) X(cudaMemcpyBatchAsync_ptsz) X(cudaStreamGetDevice) \
	X(cudaStreamGetDevice_ptsz)
#endif
/* clang-format on */

#endif
