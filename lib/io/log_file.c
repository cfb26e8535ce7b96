/* SPDX-License-Identifier: Apache-2.0
 *
 * log_file.c - opens, appends to and shrinks the file of a umlog
 */
#include "io/log_file.h"

#include "io/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MOST 1000
#define SUFFIX_MOST 8 /* .2 to .999, and the zero */

/* --- open --------------------------------------------------------------------------------------------------------- */

/* The lock excludes other writers, also of this process. A file that is not a umlog is left unchanged, because the
 * environment may name any file. Links are followed and their target is checked. 0, -EWOULDBLOCK, -EINVAL, -EEXIST or
 * another. */
static int open_locked(const char *path, int *fd)
{
	struct stat st;
	int err = 0;

	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
	if (*fd < 0)
		return -errno;
	if (fstat(*fd, &st) || !S_ISREG(st.st_mode))
		err = -EINVAL;
	else if (flock(*fd, LOCK_EX | LOCK_NB))
		err = -errno;
	else if (!um_target_begins(*fd, "{\"umlog\":"))
		err = -EEXIST;
	else if (ftruncate(*fd, 0))
		err = -errno;
	if (err)
		close(*fd);
	return err;
}

int um_log_file_open(struct um_log_file *f, const char *path, uint64_t limit, struct um_diag *diag)
{
	size_t n = strlen(path), room = n + SUFFIX_MOST;
	int err;

	memset(f, 0, sizeof *f);
	f->fd = -1;
	f->limit = limit;
	f->path = malloc(room);
	if (!f->path)
		return um_diag_set(diag, ENOMEM, 0, "cannot write: %s", strerror(ENOMEM));
	memcpy(f->path, path, n + 1);
	err = open_locked(f->path, &f->fd);
	for (unsigned i = 2; err == -EWOULDBLOCK && i < NAMES_MOST; i++) {
		snprintf(f->path + n, room - n, ".%u", i);
		err = open_locked(f->path, &f->fd);
		f->renamed = 1;
	}
	if (!err)
		return 0;
	f->fd = -1;
	um_log_file_close(f);
	return um_diag_set(diag, -err, 0, "cannot write: %s",
			   err == -EINVAL   ? "not a regular file"
			   : err == -EEXIST ? "the file exists and is not a umlog: remove it, or name another file"
					    : strerror(-err));
}

void um_log_file_close(struct um_log_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	free(f->path);
	f->path = NULL;
	um_vec_fini(&f->members);
}

/* --- smaller ------------------------------------------------------------------------------------------------------ */

static int is_part(const struct um_log_member *m)
{
	return m->kind >= UM_LOG_WHOLE;
}

/* Marks parts from one end until this many bytes, or parts, are kept. */
static void keep_end(const struct um_log_file *f, char *keep, int last, uint64_t bytes, size_t parts)
{
	for (size_t i = 0; i < f->members.n; i++) {
		size_t k = last ? f->members.n - 1 - i : i;
		const struct um_log_member *m = &f->members.at[k];

		if (!is_part(m))
			continue;
		if (m->bytes > bytes || !parts--)
			return;
		bytes -= m->bytes;
		keep[k] = 1;
	}
}

static int is_pinned(const struct um_log_file *f, int64_t n)
{
	for (unsigned i = 0; i < f->n_pinned; i++)
		if (f->pinned[i] == n)
			return 1;
	return n < 0; /* the set-up */
}

static void choose(const struct um_log_file *f, char *keep)
{
	uint64_t middle = f->limit / 8;
	size_t n = UM_LOG_PARTS_MOST / 8;

	keep_end(f, keep, 0, f->limit / 8, UM_LOG_PARTS_MOST / 8);
	keep_end(f, keep, 1, f->limit / 4, UM_LOG_PARTS_MOST / 4);
	for (size_t i = 0; i < f->members.n; i++) {
		const struct um_log_member *m = &f->members.at[i];

		if (!is_part(m) || (m->kind == UM_LOG_WHOLE && is_pinned(f, m->sums.first))) {
			keep[i] = 1;
		} else if (!keep[i] && m->kind == UM_LOG_WHOLE && m->bytes <= middle && n) {
			keep[i] = 1;
			middle -= m->bytes;
			n--;
		}
	}
	for (size_t i = f->members.n, k; i--;) {
		const struct um_log_member *m = &f->members.at[i];

		if (!keep[i] || m->kind != UM_LOG_LIKE)
			continue;
		for (k = i; k-- && !(f->members.at[k].kind == UM_LOG_WHOLE && f->members.at[k].sums.first == m->like);)
			;
		if (k < i)
			keep[k] = 1;
	}
}

static void add_sums(struct um_log_sums *to, const struct um_log_sums *s)
{
	to->last = s->last;
	to->end = s->end;
	if (s->shortest < to->shortest)
		to->shortest = s->shortest;
	if (s->longest > to->longest)
		to->longest = s->longest;
	for (int i = 0; i < UM_LIBRARY_COUNTS; i++)
		to->counts[i] += s->counts[i];
}

static int append(struct um_log_file *f, const struct um_log_member *m, const void *data)
{
	struct um_log_member added = *m, *before;
	int err = um_vec_reserve(&f->members, 1);

	if (!err)
		err = um_write_all(f->fd, data, m->bytes, (int64_t)f->bytes);
	if (err)
		return err;
	before = f->members.n ? &f->members.at[f->members.n - 1] : NULL;
	if (before && before->kind == UM_LOG_DEFS && m->kind == UM_LOG_DEFS) {
		before->bytes += m->bytes;
	} else {
		added.offset = f->bytes;
		f->members.at[f->members.n++] = added;
	}
	f->bytes += m->bytes;
	f->parts += (size_t)is_part(m);
	return 0;
}

static int append_sums(struct um_log_file *to, struct um_log_sums *s)
{
	struct um_log_member m = {.kind = UM_LOG_SUMS, .sums = *s};
	struct um_log_text t;
	int err = um_log_text_sums(&t, s);

	if (err)
		return err;
	m.bytes = t.bytes;
	err = append(to, &m, t.data);
	free(t.data);
	return err;
}

static int copy(struct um_log_file *to, const struct um_log_file *from, const struct um_log_member *m)
{
	char *data = malloc(m->bytes);
	uint64_t got = 0;
	int err = data ? 0 : -ENOMEM;

	while (!err && got < m->bytes) {
		ssize_t n = pread(from->fd, data + got, m->bytes - got, (off_t)(m->offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			err = n ? -errno : -EIO;
		else
			got += (uint64_t)n;
	}
	if (!err)
		err = append(to, m, data);
	free(data);
	return err;
}

/* Copies the kept parts to the new file; consecutive dropped parts become one sum. */
static int move_all(struct um_log_file *to, const struct um_log_file *from, const char *keep)
{
	struct um_log_sums row;
	int any = 0, err = 0;

	for (size_t i = 0; i < from->members.n && !err; i++) {
		const struct um_log_member *m = &from->members.at[i];

		if (!keep[i]) {
			if (any)
				add_sums(&row, &m->sums);
			else
				row = m->sums;
			any = 1;
			continue;
		}
		if (any && is_part(m)) {
			err = append_sums(to, &row);
			any = 0;
		}
		if (!err)
			err = copy(to, from, m);
	}
	return !err && any ? append_sums(to, &row) : err;
}

/* Replaces the file by the smaller one, whose lock is taken before it becomes visible. */
static int shrink(struct um_log_file *f)
{
	struct um_log_file small = {.fd = -1, .limit = f->limit, .n_pinned = f->n_pinned};
	struct um_target target = {.fd = -1};
	char *keep = calloc(f->members.n + 1, 1);
	int err = keep ? um_target_open(&target, f->path) : -ENOMEM;

	if (!err && (!target.path || flock(target.fd, LOCK_EX | LOCK_NB)))
		err = target.path ? -errno : -EINVAL;
	if (err)
		goto out;
	target.no_sync = 1; /* as every write of the log */
	small.fd = target.fd;
	choose(f, keep);
	err = move_all(&small, f, keep);
	if (!err)
		err = um_target_commit(&target);
	if (err) {
		um_vec_fini(&small.members);
		goto out;
	}
	target.fd = -1; /* now owned by the log */
	memcpy(small.pinned, f->pinned, sizeof small.pinned);
	small.path = f->path;
	f->path = NULL;
	um_log_file_close(f);
	*f = small;
out:
	um_target_close(&target);
	free(keep);
	return err;
}

int um_log_file_add(struct um_log_file *f, const struct um_log_member *m, const struct um_log_text *t)
{
	struct um_log_member added = *m;
	int err = 0;

	if (f->bytes + t->bytes > f->limit || f->parts >= UM_LOG_PARTS_MOST)
		err = shrink(f);
	if (!err && f->bytes + t->bytes > f->limit)
		err = -EFBIG;
	if (err)
		return err;
	added.bytes = t->bytes;
	err = append(f, &added, t->data);
	if (err && ftruncate(f->fd, (off_t)f->bytes))
		return err; /* readers ignore data after the last whole member */
	return err;
}
