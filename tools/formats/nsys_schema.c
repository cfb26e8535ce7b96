/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/nsys_schema.h"

#define WHERE_ON_GPU                                                                                                   \
	"deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, "   \
	"correlationId INTEGER, globalPid INTEGER, "
#define SPAN "start INTEGER NOT NULL, \"end\" INTEGER NOT NULL, "

const struct um_nsys_table um_nsys_tables[UM_NSYS_TABLES] = {
	[UM_NSYS_ALLOC] = {"CUDA_GPU_MEMORY_USAGE_EVENTS",
			   "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
			   "contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL, "
			   "bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, "
			   "name TEXT, correlationId INTEGER, localMemoryPoolAddress INTEGER, "
			   "localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER, "
			   "localMemoryPoolUtilizedSize INTEGER, importedMemoryPoolAddress INTEGER, "
			   "importedMemoryPoolProcessId INTEGER",
			   "start, globalPid, deviceId, address, bytes, memKind, memoryOperationType", "contextId, pc",
			   "1, 0"},
	[UM_NSYS_RANGE] = {"NVTX_EVENTS",
			   "start INTEGER NOT NULL, \"end\" INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, "
			   "category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, "
			   "textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, "
			   "doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, "
			   "jsonTextId INTEGER, jsonText TEXT",
			   "start, \"end\", eventType, text, globalTid, domainId", "", ""},
	[UM_NSYS_CALL] = {"CUPTI_ACTIVITY_KIND_RUNTIME",
			  SPAN "eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, "
			       "nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
			  "start, \"end\", globalTid, correlationId, nameId, returnValue", "eventClass", "0"},
	[UM_NSYS_KERNEL] = {"CUPTI_ACTIVITY_KIND_KERNEL",
			    SPAN WHERE_ON_GPU
			    "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, "
			    "launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, "
			    "gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, "
			    "blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, "
			    "staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, "
			    "localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, "
			    "gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, "
			    "sharedMemoryLimitConfig INTEGER",
			    "start, \"end\", deviceId, streamId, correlationId, globalPid, demangledName, shortName",
			    "contextId, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, "
			    "staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, gridId",
			    "1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0"},
	[UM_NSYS_FILL] = {"CUPTI_ACTIVITY_KIND_MEMSET",
			  SPAN WHERE_ON_GPU "value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, "
					    "memKind INTEGER",
			  "start, \"end\", deviceId, streamId, correlationId, globalPid, bytes", "contextId, value",
			  "1, 0"},
	[UM_NSYS_COPY] = {"CUPTI_ACTIVITY_KIND_MEMCPY",
			  SPAN WHERE_ON_GPU
			  "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, "
			  "srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, "
			  "dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, graphNodeId INTEGER, "
			  "virtualAddress INTEGER",
			  "start, \"end\", deviceId, contextId, streamId, correlationId, globalPid, bytes, copyKind, "
			  "migrationCause, virtualAddress",
			  "srcKind, dstKind", "7, 7"},
	[UM_NSYS_GPU_FAULT] = {"CUDA_UM_GPU_PAGE_FAULT_EVENTS",
			       SPAN "globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, address INTEGER NOT NULL, "
				    "numberOfPageFaults INTEGER NOT NULL, faultAccessType INTEGER NOT NULL",
			       "start, \"end\", globalPid, deviceId, address, numberOfPageFaults, faultAccessType", "",
			       ""},
	[UM_NSYS_CPU_FAULT] = {"CUDA_UM_CPU_PAGE_FAULT_EVENTS",
			       "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, address INTEGER NOT NULL, "
			       "originalFaultPc INTEGER, CpuInstruction INTEGER NOT NULL, module INTEGER NOT NULL, "
			       "unresolvedFaultPc INTEGER",
			       "start, globalPid, address, CpuInstruction, module", "", ""},
};

#define ENUM(name)                                                                                                     \
	"CREATE TABLE ENUM_" name " (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"                         \
	"INSERT INTO ENUM_" name " VALUES "

/* clang-format off */
const char um_nsys_frame[] =
	"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
	"CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, "
	"startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL);"
	"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"
	"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);"
	"INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (0, '1970-01-01T00:00:00', '1970-01-01T00:00:00');"
	"CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, "
	"isDiscrete INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, cuDevice INTEGER);"
	"CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (nullStreamId INTEGER NOT NULL, hwId INTEGER NOT NULL, "
	"vmId INTEGER NOT NULL, processId INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
	"parentContextId INTEGER, isGreenContext INTEGER);"
	"INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (0, 1, 0, 1, 0, 1, NULL, 0);"
	"CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT);"
	"INSERT INTO META_DATA_CAPTURE VALUES ('CAPTURE_EVENT_TYPE', 'Cuda'), ('CAPTURE_EVENT_TYPE', 'Nvtx'), "
	"('PROCESS_0:COLLECT_CUDA_TRACE', 'true'), ('PROCESS_0:COLLECT_NVTX_TRACE', 'true'), "
	"('PROCESS_0:COLLECT_GPU_MEMORY_USAGE', 'true'), ('PROCESS_0:COLLECT_UVM_CPU_PAGE_FAULTS', 'true'), "
	"('PROCESS_0:COLLECT_UVM_GPU_PAGE_FAULTS', 'true');"
	"CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);"
	"INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_NAME', 'umadvise, a simulated GPU'), "
	"('EXPORT_PRODUCT_VERSION', 'simulated'), ('EXPORT_SCHEMA_VERSION', '" UM_NSYS_VERSION "'), "
	"('EXPORT_SCHEMA_VERSION_MAJOR', '3'), ('EXPORT_SCHEMA_VERSION_MINOR', '7'), "
	"('EXPORT_SCHEMA_VERSION_MICRO', '2');"
	ENUM("CUDA_MEMCPY_OPER")
	"(0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'), (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'), "
	"(2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'), (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'), "
	"(9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'), (11, 'CUDA_MEMCPY_KIND_UVM_HTOD', 'Unified Host-to-Device'), "
	"(12, 'CUDA_MEMCPY_KIND_UVM_DTOH', 'Unified Device-to-Host'), "
	"(13, 'CUDA_MEMCPY_KIND_UVM_DTOD', 'Unified Device-to-Device');"
	ENUM("CUDA_MEM_KIND")
	"(2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'), (4, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed'), "
	"(7, 'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN', 'Unknown');"
	ENUM("CUDA_DEV_MEM_EVENT_OPER")
	"(0, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', 'Allocation'), "
	"(1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION', 'Deallocation');"
	ENUM("CUDA_UNIF_MEM_MIGRATION")
	"(0, 'CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_UNKNOWN', 'Unknown'), "
	"(1, 'CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_USER', 'User prefetch'), "
	"(2, 'CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE', 'Page fault'), "
	"(3, 'CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_PREFETCH', 'Speculative prefetch'), "
	"(4, 'CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION', 'Eviction'), "
	"(5, 'CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_ACCESS_COUNTERS', 'Access counters');"
	ENUM("CUDA_UNIF_MEM_ACCESS_TYPE")
	"(0, 'CUDA_UNIFIED_MEMORY_ACCESS_TYPE_UNKNOWN', 'Unknown'), "
	"(1, 'CUDA_UNIFIED_MEMORY_ACCESS_TYPE_READ', 'Read'), (2, 'CUDA_UNIFIED_MEMORY_ACCESS_TYPE_WRITE', 'Write'), "
	"(3, 'CUDA_UNIFIED_MEMORY_ACCESS_TYPE_ATOMIC', 'Atomic'), "
	"(4, 'CUDA_UNIFIED_MEMORY_ACCESS_TYPE_PREFETCH', 'Prefetch');"
	ENUM("NSYS_EVENT_TYPE")
	"(34, 'NvtxMark', 'NvtxMark'), (59, 'NvtxPushPopRange', 'NvtxPushPopRange'), "
	"(60, 'NvtxStartEndRange', 'NvtxStartEndRange'), "
	"(75, 'NvtxDomainCreate', 'NvtxDomainCreate');";
/* clang-format on */
