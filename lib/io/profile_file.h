/* SPDX-License-Identifier: Apache-2.0
 *
 * profile_file.h - profile files: `key = value` (doc/profiles.md)
 */
#ifndef UM_IO_PROFILE_FILE_H
#define UM_IO_PROFILE_FILE_H

#include "base/diag.h"
#include "model/profile.h"

/* Reads a profile. 0, or -errno with file, line and reason in `diag`, which is initialised here and may be NULL; then
 * `out` is unchanged. */
int um_profile_read(const char *path, struct um_profile *out, struct um_diag *diag);
int um_profile_read_mem(const void *data, size_t bytes, const char *name, struct um_profile *out, struct um_diag *diag);

/* A comment at the top, and one after each key for which `note` returns a text: one line each. */
struct um_profile_notes {
	const char *top; /* NULL: none */
	const char *(*note)(void *user, const char *key); /* NULL: none */
	void *user;
};

/* Writes a profile as a whole file. `notes` may be NULL. 0 or -errno. */
int um_profile_write(const char *path, const struct um_profile *p, const struct um_profile_notes *notes,
		     struct um_diag *diag);

/* A built-in profile by name, otherwise a file. */
int um_profile_get(const char *name_or_path, struct um_profile *out, struct um_diag *diag);

#endif
