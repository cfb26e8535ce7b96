/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];
static pid_t owner;

static void forget(void)
{
	if (getpid() == owner)
		unlink(path);
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
	int fd;

	if (!owner) {
		/* Memory, not a disk, where there is such a folder: libFuzzer writes thousands of files a second. */
		snprintf(path, sizeof path, "%s/um-fuzz-%ld", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
			 (long)getpid());
		owner = getpid();
		atexit(forget);
	}
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd)) {
		perror(path);
		abort();
	}
	return path;
}
