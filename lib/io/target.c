/* SPDX-License-Identifier: Apache-2.0
 *
 * target.c - replaces output files atomically
 *
 * Named temporaries are kept in a small table that a signal handler can read: a slot is a pointer, set and cleared by
 * one store. If the table is full, a signal does not remove the temporary.
 */
#include "io/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define LINKS_MOST 40
#define NAMES_MOST 16
#define PREFIX ".umadvise-"

static struct {
	char *_Atomic name;
	pid_t owner;
} named[NAMES_MOST];

int um_target_always_named;

/* --- names -------------------------------------------------------------------------------------------------------- */

static void remember(char *name)
{
	for (size_t i = 0; i < NAMES_MOST; i++) {
		char *none = NULL;

		if (atomic_load(&named[i].name) && named[i].owner != getpid())
			atomic_store(&named[i].name, NULL); /* of the parent of this forked process */
		if (atomic_compare_exchange_strong(&named[i].name, &none, name)) {
			named[i].owner = getpid();
			return;
		}
	}
}

static void forget(const char *name)
{
	for (size_t i = 0; i < NAMES_MOST; i++)
		if (atomic_load(&named[i].name) == name)
			atomic_store(&named[i].name, NULL);
}

void um_target_remove_named(void)
{
	for (size_t i = 0; i < NAMES_MOST; i++) {
		const char *name = atomic_load(&named[i].name);

		if (name && named[i].owner == getpid())
			unlink(name);
	}
}

/* An unpredictable name in the folder of `path`. NULL: no memory, or no random numbers. */
static char *random_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path) + 1 : 0;
	uint64_t number;
	char *name;

	if (getrandom(&number, sizeof number, 0) != sizeof number ||
	    asprintf(&name, "%.*s" PREFIX "%016llx", folder, path, (unsigned long long)number) < 0)
		return NULL;
	return name;
}

/* Creates a file with an unpredictable name beside `path`. */
static int create_named(const char *path, mode_t mode, int *fd, char **name)
{
	for (;;) {
		*name = random_name(path);
		if (!*name)
			return -ENOMEM;
		remember(*name); /* before it exists: a signal may come at any time */
		*fd = open(*name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (*fd >= 0)
			return 0;
		int err = -errno;

		forget(*name);
		free(*name);
		*name = NULL;
		if (err != -EEXIST)
			return err;
	}
}

int um_target_scratch(int *fd, char **name)
{
	const char *folder = secure_getenv("TMPDIR");
	char *path;
	int err;

	if (asprintf(&path, "%s/", folder && *folder ? folder : "/tmp") < 0)
		return -ENOMEM;
	err = create_named(path, 0600, fd, name);
	free(path);
	return err;
}

void um_target_forget(char *name)
{
	if (!name)
		return;
	unlink(name);
	forget(name);
	free(name);
}

/* --- destination -------------------------------------------------------------------------------------------------- */

/* The path at the end of a chain of links, whether the file exists or not. */
static int follow_links(const char *path, char **out)
{
	char *at = strdup(path), *next, to[PATH_MAX];
	ssize_t n = 0;

	for (int i = 0; at && i < LINKS_MOST; i++) {
		const char *slash = strrchr(at, '/');

		n = readlink(at, to, sizeof to - 1);
		if (n < 0) {
			*out = at;
			return 0;
		}
		to[n] = '\0';
		if (asprintf(&next, "%.*s%s", slash && *to != '/' ? (int)(slash - at) + 1 : 0, at, to) < 0)
			next = NULL;
		free(at);
		at = next;
	}
	free(at);
	return at ? -ELOOP : -ENOMEM;
}

static int is_standard_output(const struct stat *st)
{
	struct stat out;

	return !fstat(STDOUT_FILENO, &out) && out.st_dev == st->st_dev && out.st_ino == st->st_ino;
}

static int open_stdout(struct um_target *t)
{
	t->is_stdout = 1;
	t->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	return t->fd < 0 ? -errno : 0;
}

static int open_in_place(struct um_target *t, const char *path, mode_t mode)
{
	if (S_ISDIR(mode))
		return -EISDIR;
	if (!S_ISFIFO(mode) && !S_ISCHR(mode))
		return -EPERM;
	t->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return t->fd < 0 ? -errno : 0;
}

static int open_nameless(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int fd = -1;

	if (folder && !um_target_always_named && access("/proc/self/fd", X_OK) == 0)
		fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	free(folder);
	return fd;
}

int um_target_open(struct um_target *t, const char *path)
{
	struct stat st;
	int there, err;

	*t = (struct um_target){.fd = -1, .owner = getpid()};
	if (strcmp(path, "-") == 0)
		return open_stdout(t);
	there = stat(path, &st) == 0;
	if (!*path || (!there && errno != ENOENT))
		return *path ? -errno : -ENOENT;
	if (there && !S_ISREG(st.st_mode))
		return open_in_place(t, path, st.st_mode);
	if (there && is_standard_output(&st))
		return open_stdout(t);
	if (there && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		return -errno;
	err = follow_links(path, &t->path);
	if (err)
		return err;
	t->fd = open_nameless(t->path);
	if (t->fd < 0)
		err = create_named(t->path, 0666, &t->fd, &t->name);
	if (!err && there && (fchown(t->fd, st.st_uid, st.st_gid) == 0 || errno == EPERM))
		fchmod(t->fd, st.st_mode & 0777);
	if (err)
		um_target_close(t);
	return err;
}

/* --- commit ------------------------------------------------------------------------------------------------------- */

/* linkat does not replace a file: over an existing one the temporary gets a name of its own, then a rename. */
static int give_name(struct um_target *t)
{
	char from[64];
	int err = -EEXIST;

	snprintf(from, sizeof from, "/proc/self/fd/%d", t->fd);
	if (linkat(AT_FDCWD, from, AT_FDCWD, t->path, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	while (err == -EEXIST) {
		free(t->name);
		t->name = random_name(t->path);
		if (!t->name)
			return -ENOMEM;
		err = linkat(AT_FDCWD, from, AT_FDCWD, t->name, AT_SYMLINK_FOLLOW) ? -errno : 0;
	}
	if (err) {
		free(t->name);
		t->name = NULL;
	}
	return err;
}

/* The data must be on the disk before the name, otherwise a power cut leaves an empty file. */
int um_target_commit(struct um_target *t)
{
	int err = 0;

	if (!t->path)
		return 0;
	if (t->owner != getpid())
		return -ECHILD;
	if (!t->no_sync && fsync(t->fd) && errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (!t->name)
		err = give_name(t);
	if (!err && t->name && rename(t->name, t->path))
		err = -errno;
	if (!err) {
		forget(t->name);
		free(t->name);
		t->name = NULL;
	}
	return err;
}

int um_target_close(struct um_target *t)
{
	int err = 0;

	if (t->fd >= 0 && close(t->fd) && errno != EINTR)
		err = -errno;
	if (t->owner == getpid())
		um_target_forget(t->name);
	else
		free(t->name);
	free(t->path);
	*t = (struct um_target){.fd = -1};
	return err;
}

int um_target_begins(int fd, const char *text)
{
	unsigned char packed[512], plain[64];
	size_t want = strlen(text);
	ssize_t n = pread(fd, packed, sizeof packed, 0);
	z_stream z;

	if (n <= 0 || want > sizeof plain)
		return n == 0;
	if (n < 2 || packed[0] != 0x1f || packed[1] != 0x8b)
		return (size_t)n >= want && memcmp(packed, text, want) == 0;
	memset(&z, 0, sizeof z);
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return 0;
	z.next_in = packed;
	z.avail_in = (uInt)n;
	z.next_out = plain;
	z.avail_out = sizeof plain;
	inflate(&z, Z_SYNC_FLUSH);
	inflateEnd(&z);
	return sizeof plain - z.avail_out >= want && memcmp(plain, text, want) == 0;
}

int um_target_check(const char *path, const char *text)
{
	struct stat st;
	int fd, err;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return 0; /* opening it reports the error */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	err = um_target_begins(fd, text) ? 0 : -EEXIST;
	close(fd);
	return err;
}

int um_write_all(int fd, const void *data, size_t n, int64_t at)
{
	const struct timespec now = {0, 0};
	sigset_t ours, before, pending;
	int err = 0;

	sigemptyset(&ours);
	sigaddset(&ours, SIGXFSZ);
	sigaddset(&ours, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &ours, &before);
	while (n && !err) {
		ssize_t done = at < 0 ? write(fd, data, n) : pwrite(fd, data, n, (off_t)at);

		if (done <= 0) {
			err = done == 0 ? -EIO : errno == EINTR ? 0 : -errno;
			continue;
		}
		data = (const char *)data + done;
		n -= (size_t)done;
		at += at < 0 ? 0 : done;
	}
	/* Consumes the signals that our write raised, not those pending before. */
	if ((err == -EFBIG && !sigismember(&pending, SIGXFSZ)) || (err == -EPIPE && !sigismember(&pending, SIGPIPE)))
		while (sigtimedwait(&ours, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}
