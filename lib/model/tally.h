/* SPDX-License-Identifier: Apache-2.0
 *
 * tally.h - sums of memory activity of a device
 */
#ifndef UM_MODEL_TALLY_H
#define UM_MODEL_TALLY_H

#include <stdint.h>

struct um_tally {
	uint64_t ns; /* device time at which the tally was taken */
	uint64_t faults; /* GPU faults served (raw entries that needed service) */
	uint64_t visits; /* block visits by the fault handler */
	uint64_t batches;
	uint64_t cpu_faults;
	uint64_t h2d_bytes, d2h_bytes;
	uint64_t evictions; /* chunks evicted because memory was short */
	uint64_t remote_bytes;
	uint64_t zeroed_bytes;
	uint64_t stall_ns; /* compute streams: time in which kernels waited for memory (gates and faults) */
	uint64_t hints; /* prefetch, discard and advise calls accepted */
	uint64_t refused; /* the same, refused */
	uint64_t resident_bytes; /* device memory in use by managed data: root chunks that hold a resident page, x 2 MiB
				  */
	uint64_t peak_resident_bytes; /* maximum since the previous tally */
	uint64_t prefetched_bytes; /* of resident_bytes: chunks with a page made resident by a prefetch, not by a
				      fault */
	uint64_t peak_prefetched_bytes; /* maximum since the previous tally */
	uint64_t peak_data_bytes; /* maximum so far of the allocations' bytes in such chunks, without padding */
	uint64_t host_bytes; /* cached CPU chunks */
	uint64_t copied_h2d, copied_d2h; /* bytes of the program's own copies */
};

#endif
