/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime_directory.h - a runtime directory of the test's own, removed as it ends
 */
#ifndef UM_TESTS_RUNTIME_DIRECTORY_H
#define UM_TESTS_RUNTIME_DIRECTORY_H

#include "tap.h"

#include <unistd.h>

static char runtime_directory_[] = "/tmp/um-runtime-XXXXXX";
static pid_t runtime_directory_owner_;

static void runtime_directory_remove_(void)
{
	if (getpid() == runtime_directory_owner_)
		rmdir(runtime_directory_); /* a file that is left stays, and shows */
}

static inline void runtime_directory(void)
{
	runtime_directory_owner_ = getpid();
	if (!mkdtemp(runtime_directory_) || setenv("XDG_RUNTIME_DIR", runtime_directory_, 1))
		tap_bail("no runtime directory");
	atexit(runtime_directory_remove_);
}

#endif
