/* SPDX-License-Identifier: Apache-2.0
 *
 * target.h - the destination of an output, and the temporary that replaces it
 *
 * in    a path
 * out   a descriptor to write to; on commit the file at the path
 * owns  the descriptor and the temporary
 *
 * The rules for every output:
 *   - A regular file is replaced as a whole by one rename, or stays unchanged. It keeps its permissions and, where the
 *     process may set it, its owner. A file that the process may not write is refused.
 *   - A symbolic link stays: the file that it names is replaced, or created.
 *   - A FIFO, a character device and the file that is standard output are written in place.
 *   - A directory, a block device and a socket are refused.
 *
 * The temporary has no name (O_TMPFILE): it vanishes with the process, and a forked child cannot disturb it. If the
 * file system lacks O_TMPFILE, it has an unpredictable name beside the target; um_target_remove_named removes those.
 */
#ifndef UM_IO_TARGET_H
#define UM_IO_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct um_target {
	int fd; /* -1: none */
	int is_stdout;
	int no_sync; /* set if a power cut may lose the file: commit does not wait for the disk */
	char *path; /* NULL: written in place */
	char *name; /* of the temporary; NULL: without a name */
	pid_t owner; /* the process that opened it: a forked child neither commits nor removes it */
};

/* "-" is standard output. 0 or -errno. */
int um_target_open(struct um_target *t, const char *path);
/* Puts the temporary in place of the target; the descriptor stays open. 0 or -errno. */
int um_target_commit(struct um_target *t);
/* Closes, and removes a temporary that was not committed. 0 or -errno of close. */
int um_target_close(struct um_target *t);

/* Creates an empty file with an unpredictable name in $TMPDIR or /tmp, and gives its descriptor and its name, for
 * libraries that need a path. um_target_forget removes the file and frees the name. */
int um_target_scratch(int *fd, char **name);
void um_target_forget(char *name);

/* Removes every named temporary of this process; a forked child removes none. Async-signal-safe: the tool calls it when
 * a signal ends it. The library installs no handler. */
void um_target_remove_named(void);

/* Does the file begin with this text, after decompression if it is gzip? True for an empty file. For files named by the
 * environment: foreign files are not overwritten. */
int um_target_begins(int fd, const char *text);
/* The same for a path; always 0 if it is not a regular file. 0, -EEXIST: it begins otherwise, or -errno. */
int um_target_check(const char *path, const char *text);

/* Writes all bytes, at offset `at` or (negative) at the current position. Neither a file size limit (SIGXFSZ) nor a
 * closed reader (SIGPIPE) ends the process. 0 or -errno. */
int um_write_all(int fd, const void *data, size_t n, int64_t at);

/* For tests: behave as on a file system without O_TMPFILE. */
extern int um_target_always_named;

#endif
