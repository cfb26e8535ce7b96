/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.c - splits a plain or gzip file into lines
 *
 * Three stages: raw bytes (refill), plain bytes appended to a buffer (unpack), lines found in the buffer (next). The
 * buffer keeps only bytes that were not returned yet, so that a long file needs as much memory as its longest line.
 */
#include "io/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "io/umtrace.h"

#define CHUNK (64u << 10)

struct um_lines {
	struct um_diag *diag;
	uint64_t number;
	int fd; /* -1: memory */
	int eof; /* no more raw bytes */
	int gz; /* -1: unknown yet */
	int in_member; /* gz: inside a member, whose end must follow */
	int done; /* no more plain bytes */
	int cut; /* see um_lines_truncated */
	z_stream z; /* next_in, avail_in: raw bytes not yet consumed, gzip or not */
	char *buf;
	size_t start, scan, end, cap; /* returned | searched for a newline | filled | size */
	unsigned char raw[CHUNK];
};

int um_lines_truncated(const struct um_lines *l)
{
	return l->cut;
}

static int refuse(const struct um_lines *l, int err, const char *what)
{
	return um_diag_set(l->diag, err, l->number + 1, "%s", what);
}

static struct um_lines *lines_new(const char *name, struct um_diag *diag)
{
	struct um_lines *l = calloc(1, sizeof *l);

	if (diag)
		um_diag_init(diag, name);
	if (!l) {
		um_diag_set(diag, ENOMEM, 0, "out of memory");
		return NULL;
	}
	l->diag = diag;
	l->fd = -1;
	l->gz = -1;
	return l;
}

int um_lines_open(struct um_lines **out, const char *path, struct um_diag *diag)
{
	struct um_lines *l = lines_new(path, diag);

	if (!l)
		return -ENOMEM;
	l->fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0) {
		int rc = um_diag_set(diag, errno, 0, "cannot open: %s", strerror(errno));

		free(l);
		return rc;
	}
	*out = l;
	return 0;
}

int um_lines_open_mem(struct um_lines **out, const void *data, size_t bytes, const char *name, struct um_diag *diag)
{
	struct um_lines *l;

	if (bytes > UINT32_MAX) /* zlib's counter has 32 bits */
		return -EFBIG;
	l = lines_new(name, diag);
	if (!l)
		return -ENOMEM;
	l->z.next_in = (unsigned char *)(uintptr_t)data; /* zlib only reads it */
	l->z.avail_in = (uInt)bytes;
	l->eof = 1;
	*out = l;
	return 0;
}

void um_lines_close(struct um_lines *l)
{
	if (!l)
		return;
	if (l->gz == 1)
		inflateEnd(&l->z);
	if (l->fd >= 0)
		close(l->fd);
	free(l->buf);
	free(l);
}

/* Reads raw bytes after the unconsumed ones (at most one when this is called). */
static int refill(struct um_lines *l)
{
	size_t left = l->z.avail_in;
	ssize_t n;

	if (l->eof)
		return 0;
	if (left)
		memmove(l->raw, l->z.next_in, left);
	do
		n = read(l->fd, l->raw + left, sizeof l->raw - left);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return um_diag_set(l->diag, errno, l->number + 1, "cannot read: %s", strerror(errno));
	l->eof = n == 0;
	l->z.next_in = l->raw;
	l->z.avail_in = (uInt)(left + (size_t)n);
	return 0;
}

static int looks_gzip(const struct um_lines *l)
{
	return l->z.avail_in >= 2 && l->z.next_in[0] == 0x1f && l->z.next_in[1] == 0x8b;
}

/* At a boundary (start of the file, end of a member): has a member of gzip begun? */
static int member_begins(struct um_lines *l, int *yes)
{
	int rc = 0;

	while (!rc && l->z.avail_in < 2 && !l->eof)
		rc = refill(l);
	*yes = !rc && looks_gzip(l);
	return rc;
}

static int detect(struct um_lines *l)
{
	int yes, rc = member_begins(l, &yes);

	if (rc)
		return rc;
	if (yes && inflateInit2(&l->z, 15 + 16) != Z_OK)
		return refuse(l, ENOMEM, "out of memory");
	l->gz = l->in_member = yes;
	return 0;
}

static int unpack_plain(struct um_lines *l)
{
	size_t room = l->cap - l->end, n = l->z.avail_in < room ? l->z.avail_in : room;

	if (n) {
		memcpy(l->buf + l->end, l->z.next_in, n);
		l->z.next_in += n;
		l->z.avail_in -= (uInt)n;
		l->end += n;
	}
	l->done = n == 0 && l->eof;
	return 0;
}

static int member_ends(struct um_lines *l)
{
	int yes, rc = member_begins(l, &yes);

	l->in_member = 0;
	if (rc)
		return rc;
	if (yes || (l->z.avail_in == 1 && *l->z.next_in == 0x1f)) { /* the first byte of a truncated member */
		inflateReset(&l->z);
		l->in_member = 1;
	} else if (l->z.avail_in) {
		return refuse(l, EINVAL, "bytes after the end of the gzip data: want nothing there");
	} else {
		l->done = 1;
	}
	return 0;
}

static int unpack_gzip(struct um_lines *l)
{
	size_t room = l->cap - l->end;
	int rc;

	l->cut = l->z.avail_in == 0 && l->eof;
	if (l->cut)
		return refuse(l, EINVAL, "the gzip data ends too early: want the whole file");
	l->z.next_out = (unsigned char *)l->buf + l->end;
	l->z.avail_out = (uInt)room;
	rc = inflate(&l->z, Z_NO_FLUSH);
	l->end += room - l->z.avail_out;
	switch (rc) {
	case Z_OK:
	case Z_BUF_ERROR: /* needs more input */
		return 0;
	case Z_STREAM_END:
		return member_ends(l);
	case Z_MEM_ERROR:
		return refuse(l, ENOMEM, "out of memory");
	default:
		return um_diag_set(l->diag, EINVAL, l->number + 1, "damaged gzip data (%s)",
				   l->z.msg ? l->z.msg : "not deflate");
	}
}

/* Room for at least one more byte of this line. */
static int make_room(struct um_lines *l)
{
	size_t used = l->end - l->start, cap = l->cap ? l->cap : CHUNK;
	char *p;

	if (l->start) {
		memmove(l->buf, l->buf + l->start, used);
		l->scan -= l->start;
		l->end = used;
		l->start = 0;
	}
	if (used > UM_IO_LINE_MAX)
		return um_diag_set(l->diag, EINVAL, l->number + 1, "line too long: want at most %u bytes",
				   UM_IO_LINE_MAX);
	if (used < l->cap)
		return 0;
	while (cap <= used)
		cap *= 2;
	p = realloc(l->buf, cap);
	if (!p)
		return refuse(l, ENOMEM, "out of memory");
	l->buf = p;
	l->cap = cap;
	return 0;
}

static int more(struct um_lines *l)
{
	int rc = l->gz < 0 ? detect(l) : 0;

	if (!rc && l->end == l->cap)
		rc = make_room(l);
	if (!rc && l->z.avail_in == 0)
		rc = refill(l);
	if (rc)
		return rc;
	return l->gz ? unpack_gzip(l) : unpack_plain(l);
}

static int give(struct um_lines *l, size_t n, size_t skip, const char **text, size_t *out)
{
	if (n > UM_IO_LINE_MAX)
		return um_diag_set(l->diag, EINVAL, l->number + 1, "line too long: want at most %u bytes",
				   UM_IO_LINE_MAX);
	*text = l->buf + l->start;
	*out = n;
	l->start += n + skip;
	l->scan = l->start;
	l->number++;
	return 1;
}

int um_lines_next(struct um_lines *l, const char **text, size_t *n)
{
	for (;;) {
		char *nl = l->end > l->scan ? memchr(l->buf + l->scan, '\n', l->end - l->scan) : NULL;
		int rc;

		if (nl)
			return give(l, (size_t)(nl - (l->buf + l->start)), 1, text, n);
		l->scan = l->end;
		if (l->done)
			return l->end > l->start ? give(l, l->end - l->start, 0, text, n) : 0;
		rc = more(l);
		if (rc)
			return rc;
	}
}

uint64_t um_lines_number(const struct um_lines *l)
{
	return l->number;
}
