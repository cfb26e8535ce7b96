/* SPDX-License-Identifier: Apache-2.0
 *
 * about.c - constant texts of the public header: errors in words, the version
 */
#include "umadvise.h"

#include <errno.h>

const char *umadv_strerror(int err)
{
	switch (err < 0 ? -err : err) {
	case 0:
		return "success";
	case EINVAL:
		return "invalid argument";
	case ENOMEM:
		return "out of memory";
	case ENODEV:
		return "no such device";
	case EEXIST:
		return "overlaps a live tensor in part";
	case ENODATA:
		return "nothing has been learned yet";
	case E2BIG:
		return "one operation alone exceeds the budget";
	case ENOTSUP:
		return "not supported by this device";
	case EIO:
		return "the device reported an error";
	case ENOENT:
		return "no such file";
	case EACCES:
		return "permission denied";
	case ENOSPC:
		return "no space left";
	default:
		return "unknown error";
	}
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *umadv_version(void)
{
	return TEXT(UMADV_VERSION_MAJOR) "." TEXT(UMADV_VERSION_MINOR) "." TEXT(UMADV_VERSION_PATCH);
}
