/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to the driver's kernel module, which this test plays: its device is a file, its ioctl() is below.
 */
#include "gpu/kernel_evict.h"

#include "gpu/device_state.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGE ((uint64_t)sysconf(_SC_PAGESIZE))
#define REFUSED 22 /* of a descriptor that knows no memory */
#define NO_MEMORY 0x51

/* Offsets in the request. */
enum { BASE = 0, BYTES = 8, DESTINATION = 16, FLAGS = 32, SEMAPHORE = 40, NODE = 52, STATUS = 72 };

static struct {
	unsigned calls, refuse; /* the module answers the first `refuse` calls with REFUSED */
	int err; /* errno of the next call */
	uint32_t status;
	unsigned long number;
	int fd;
	unsigned char request[STATUS];
} module;

int ioctl(int fd, unsigned long number, ...)
{
	unsigned char *request;
	uint32_t status;
	va_list ap;

	va_start(ap, number);
	request = va_arg(ap, unsigned char *);
	va_end(ap);
	module.calls++;
	module.fd = fd;
	module.number = number;
	memcpy(module.request, request, STATUS);
	if (module.err) {
		errno = module.err;
		module.err = 0;
		return -1;
	}
	status = module.calls <= module.refuse ? REFUSED : module.status;
	memcpy(request + STATUS, &status, sizeof status);
	return 0;
}

static uint64_t field(int at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, module.request + at, size);
	return value;
}

static unsigned count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void begin(unsigned refuse)
{
	memset(&module, 0, sizeof module);
	module.refuse = refuse;
}

static void test_open(const char *device, void *memory)
{
	int one = open(device, O_RDWR | O_CREAT, 0600), other = open(device, O_RDWR), fd;
	unsigned before = count_descriptors();

	begin(1);
	fd = um_kernel_evict_open(device, memory, 2 * PAGE);
	ok(fd >= 0, "of two descriptors the one that knows the memory is found");
	is_u64(module.calls, 2, "each is asked once");
	ok(fd == module.fd && fd != one && fd != other, "the library has a duplicate of its own");
	is_int(fcntl(fd, F_GETFD), FD_CLOEXEC, "programs that are executed do not get it");
	is_u64(count_descriptors(), before + 1, "no other descriptor is left open");
	close(fd);
	begin(9);
	is_int(um_kernel_evict_open(device, memory, 2 * PAGE), -1, "where both refuse there is none");
	is_u64(count_descriptors(), before, "and none is left open");
	close(one);
	close(other);
	begin(0);
	is_int(um_kernel_evict_open(device, memory, 2 * PAGE), -1, "without a descriptor of the device there is none");
	is_u64(module.calls, 0, "and no other descriptor is asked");
}

static void test_request(void)
{
	static const unsigned char cpu[16] = {0xa6, 0x5e, 0x0f, 0x4e, 0xd7, 0xd4, 0x7b, 0xa2,
					      0x50, 0x47, 0x41, 0x2c, 0x14, 0x2a, 0x77, 0x73};
	const char *at = (const char *)(16 * PAGE + 100);

	begin(0);
	is_int(um_kernel_evict(5, at, 2 * PAGE, UM_ANY_NODE), UM_CUDA_OK, "a request succeeds");
	is_u64(module.number, 51, "it is a migration");
	is_int(module.fd, 5, "on the given descriptor");
	is_u64(field(BASE, 8), 16 * PAGE, "from the first byte's page");
	is_u64(field(BYTES, 8), 3 * PAGE, "up to the last byte's page, inclusive");
	ok(!memcmp(module.request + DESTINATION, cpu, sizeof cpu), "to the CPU");
	is_u64(field(FLAGS, 4), 1, "without a wait for tools");
	is_u64(field(SEMAPHORE, 8), 0, "and without a semaphore");
	is_int((int32_t)field(NODE, 4), -1, "to memory of any node");
	is_int(um_kernel_evict(5, at, PAGE, 3), UM_CUDA_OK, "a request to a node succeeds");
	is_int((int32_t)field(NODE, 4), 3, "it names the node");
	module.status = NO_MEMORY;
	is_int(um_kernel_evict(5, at, PAGE, UM_ANY_NODE), UM_CUDA_NO_MEMORY, "a host without memory is reported");
	module.status = 30;
	is_int(um_kernel_evict(5, at, PAGE, UM_ANY_NODE), UM_CUDA_INVALID_VALUE,
	       "memory that is not managed is reported");
	begin(0);
	module.err = EINTR;
	is_int(um_kernel_evict(5, at, PAGE, UM_ANY_NODE), UM_CUDA_OK,
	       "a request that a signal interrupts is made again");
	is_u64(module.calls, 2, "it is made once more");
	module.err = ENOMEM;
	is_int(um_kernel_evict(5, at, PAGE, UM_ANY_NODE), UM_CUDA_NO_MEMORY, "a kernel without memory is reported");
	module.err = ENOTTY;
	is_int(um_kernel_evict(5, at, PAGE, UM_ANY_NODE), UM_CUDA_INVALID_VALUE,
	       "a kernel module without that request is reported");
}

/* The table's entry, of a device that has nothing else. */
static void test_table(void)
{
	struct um_device d = {.uvm = 5, .info.host = {UM_LOC_HOST, 0}};
	char memory[64] = {0};

	begin(0);
	is_int(um_device_evict(&d.gpu, memory, sizeof memory), UM_CUDA_OK, "a device evicts");
	is_int((int32_t)field(NODE, 4), -1, "without a node its data go to any");
	d.info.host = (struct um_location){UM_LOC_HOST_NUMA, 1};
	um_device_evict(&d.gpu, memory, sizeof memory);
	is_int((int32_t)field(NODE, 4), 1, "with a node they go there");
}

int main(void)
{
	char device[] = "/tmp/umadvise-module-XXXXXX", memory[64];
	int fd = mkstemp(device);

	if (fd < 0)
		tap_bail("no file");
	close(fd);
	test_open(device, memory);
	test_request();
	test_table();
	unlink(device);
	return tap_done();
}
