/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/kernel_evict.h"

#include "gpu/gpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MIGRATE 51ul /* UVM_MIGRATE */
#define ASYNCHRONOUS 1u /* no wait for tools; mapping the pages for the CPU waits for their copy all the same */
#define STATUS_NO_MEMORY 0x51u /* NV_ERR_NO_MEMORY */

/* UVM_MIGRATE_PARAMS */
struct request {
	uint64_t base, bytes;
	unsigned char destination[16];
	uint32_t flags;
	uint64_t semaphore; /* 0: none */
	uint32_t payload;
	int32_t node; /* of the host's memory; no part of it in old versions, where its place is empty */
	uint64_t pageable[2]; /* out: about memory that is not managed */
	uint32_t status; /* out: 0 is success */
	unsigned char more[96]; /* for what a later version may write */
};

static const unsigned char cpu[16] = {0xa6, 0x5e, 0x0f, 0x4e, 0xd7, 0xd4, 0x7b, 0xa2,
				      0x50, 0x47, 0x41, 0x2c, 0x14, 0x2a, 0x77, 0x73};

int um_kernel_evict(int fd, const void *ptr, size_t bytes, int node)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = (uint64_t)(uintptr_t)ptr & ~(page - 1);
	struct request r = {.base = from, .flags = ASYNCHRONOUS, .node = node};
	int err;

	r.bytes = (((uint64_t)(uintptr_t)ptr + bytes + page - 1) & ~(page - 1)) - from;
	memcpy(r.destination, cpu, sizeof cpu);
	do
		err = ioctl(fd, MIGRATE, &r);
	while (err && errno == EINTR);
	if (err)
		return errno == ENOMEM ? UM_CUDA_NO_MEMORY : UM_CUDA_INVALID_VALUE;
	if (!r.status)
		return UM_CUDA_OK;
	return r.status == STATUS_NO_MEMORY ? UM_CUDA_NO_MEMORY : UM_CUDA_INVALID_VALUE;
}

static int is_of(int fds, const char *name, const char *device)
{
	char target[256];
	ssize_t n = readlinkat(fds, name, target, sizeof target);

	return n > 0 && (size_t)n < sizeof target && strlen(device) == (size_t)n && !memcmp(target, device, (size_t)n);
}

/* libcuda has two descriptors of the module; one of them knows the memory. */
int um_kernel_evict_open(const char *device, void *ptr, size_t bytes)
{
	DIR *fds = opendir("/proc/self/fd");
	int found = -1;

	for (const struct dirent *e; fds && found < 0 && (e = readdir(fds));) {
		if (!is_of(dirfd(fds), e->d_name, device))
			continue;
		found = fcntl(atoi(e->d_name), F_DUPFD_CLOEXEC, 3);
		if (found >= 0 && um_kernel_evict(found, ptr, bytes, UM_ANY_NODE)) {
			close(found);
			found = -1;
		}
	}
	if (fds)
		closedir(fds);
	return found;
}
