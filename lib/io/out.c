/* SPDX-License-Identifier: Apache-2.0
 *
 * out.c - buffered output, plain or gzip, to a file or memory
 *
 * Text is collected in a buffer that is flushed through deflate or straight to the file.
 */
#include "io/out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/text.h"
#include "base/vec.h"
#include "io/number.h"
#include "io/target.h"

#define CHUNK (64u << 10)

struct um_out {
	struct um_target target;
	int err; /* first error, negative */
	int gz;
	z_stream z;
	int to_mem; /* no file: */
	UM_VEC(unsigned char) mem;
	size_t n;
	unsigned char buf[CHUNK], packed[CHUNK];
};

/* A closed reader of standard output ends the process, as in other programs. */
static int write_plain(int fd, const unsigned char *data, size_t n)
{
	while (n) {
		ssize_t done = write(fd, data, n);

		if (done < 0 && errno != EINTR)
			return -errno;
		data += done < 0 ? 0 : done;
		n -= done < 0 ? 0 : (size_t)done;
	}
	return 0;
}

static void write_raw(struct um_out *o, const unsigned char *data, size_t n)
{
	if (o->to_mem) {
		if (!o->err && um_vec_reserve(&o->mem, n + 1)) {
			o->err = -ENOMEM;
		} else if (!o->err) {
			memcpy(o->mem.at + o->mem.n, data, n);
			o->mem.n += n;
		}
		return;
	}
	if (!o->err && o->target.owner != getpid())
		o->err = -ECHILD; /* the descriptor and its offset are the parent's */
	if (!o->err)
		o->err = o->target.is_stdout ? write_plain(o->target.fd, data, n)
					     : um_write_all(o->target.fd, data, n, -1);
}

static void flush(struct um_out *o, int how)
{
	if (!o->gz) {
		write_raw(o, o->buf, o->n);
	} else {
		o->z.next_in = o->buf;
		o->z.avail_in = (uInt)o->n;
		do {
			o->z.next_out = o->packed;
			o->z.avail_out = sizeof o->packed;
			deflate(&o->z, how);
			write_raw(o, o->packed, sizeof o->packed - o->z.avail_out);
		} while (o->z.avail_out == 0 && !o->err);
	}
	o->n = 0;
}

static void discard(struct um_out *o)
{
	um_target_close(&o->target);
	if (o->gz)
		deflateEnd(&o->z);
	um_vec_fini(&o->mem);
	free(o);
}

int um_out_open(struct um_out **out, const char *path, struct um_diag *diag)
{
	size_t len = strlen(path);
	struct um_out *o = calloc(1, sizeof *o);
	int rc = -ENOMEM;

	if (diag)
		um_diag_init(diag, path);
	if (!o)
		goto refuse;
	o->target.fd = -1;
	if (len > 3 && strcmp(path + len - 3, ".gz") == 0) {
		/* no time stamp, no name in the header: equal content gives equal files */
		if (deflateInit2(&o->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
			goto end;
		o->gz = 1;
	}
	rc = um_target_open(&o->target, path);
	if (rc)
		goto end;
	*out = o;
	return 0;
end:
	discard(o);
refuse:
	return um_diag_set(diag, -rc, 0, "cannot write: %s", strerror(-rc));
}

int um_out_open_mem(struct um_out **out, int gz)
{
	struct um_out *o = calloc(1, sizeof *o);

	if (!o)
		return -ENOMEM;
	o->target.fd = -1;
	o->to_mem = 1;
	if (gz && deflateInit2(&o->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(o);
		return -ENOMEM;
	}
	o->gz = gz;
	*out = o;
	return 0;
}

int um_out_take(struct um_out *o, void **data, size_t *bytes)
{
	int err;

	flush(o, Z_FINISH);
	err = o->err;
	if (!err) {
		*data = o->mem.at;
		*bytes = o->mem.n;
		o->mem.at = NULL;
	}
	discard(o);
	return err;
}

void um_out_write(struct um_out *o, const void *data, size_t n)
{
	const unsigned char *p = data;

	while (n && !o->err) {
		size_t part = n < sizeof o->buf - o->n ? n : sizeof o->buf - o->n;

		memcpy(o->buf + o->n, p, part);
		o->n += part;
		p += part;
		n -= part;
		if (o->n == sizeof o->buf)
			flush(o, Z_NO_FLUSH);
	}
}

void um_out_str(struct um_out *o, const char *s)
{
	um_out_write(o, s, strlen(s));
}

void um_out_u64(struct um_out *o, uint64_t x)
{
	char buf[24];

	um_out_write(o, buf, (size_t)snprintf(buf, sizeof buf, "%" PRIu64, x));
}

void um_out_i64(struct um_out *o, int64_t x)
{
	char buf[24];

	um_out_write(o, buf, (size_t)snprintf(buf, sizeof buf, "%" PRId64, x));
}

void um_out_double(struct um_out *o, double x)
{
	char buf[UM_NUMBER_MAX];

	um_out_write(o, buf, um_number_print(buf, x));
}

/* A hidden character in JSON form, \uNNNN. All of them are below U+10000. */
static size_t json_hidden(char *to, size_t size, const unsigned char *p, size_t n)
{
	unsigned c = n == 1   ? *p
		     : n == 2 ? (*p & 0x1fu) << 6 | (p[1] & 0x3fu)
			      : (*p & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);

	return (size_t)snprintf(to, size, "\\u%04x", c);
}

void um_out_json_str(struct um_out *o, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	char buf[8];

	um_out_str(o, "\"");
	while (*p) {
		size_t n = um_text_utf8((const char *)p);

		if (*p == '"' || *p == '\\') {
			buf[0] = '\\';
			buf[1] = (char)*p;
			um_out_write(o, buf, 2);
		} else if (n == 0) {
			um_out_str(o, "\xef\xbf\xbd");
		} else if (um_text_hidden((const char *)p, n)) {
			um_out_write(o, buf, json_hidden(buf, sizeof buf, p, n));
		} else {
			um_out_write(o, p, n);
		}
		p += n ? n : 1;
	}
	um_out_str(o, "\"");
}

void um_out_key_str(struct um_out *o, const char *key, const char *s)
{
	if (!s)
		return;
	um_out_str(o, key);
	um_out_json_str(o, s);
}

/* The escape of the character of n bytes at p (0: invalid), or NULL if it needs none. */
static const char *html_for(const unsigned char *p, size_t n)
{
	switch (*p) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	case '\t':
	case '\n':
	case '\r':
		return " ";
	default:
		if (um_text_hidden((const char *)p, n))
			return "\xef\xbf\xbd";
		return NULL;
	}
}

size_t um_out_html(struct um_out *o, const char *s, size_t most)
{
	const unsigned char *p = (const unsigned char *)s;

	while (*p && most--) {
		size_t n = um_text_utf8((const char *)p);
		const char *other = html_for(p, n);

		if (other)
			um_out_str(o, other);
		else
			um_out_write(o, p, n);
		p += n ? n : 1;
	}
	return (size_t)(p - (const unsigned char *)s);
}

void um_out_csv(struct um_out *o, const char *s, int quoted)
{
	char *cell = um_text_csv(s, quoted);

	if (cell)
		um_out_str(o, cell);
	else
		um_out_fail(o, ENOMEM);
	free(cell);
}

void um_out_visible(struct um_out *o, const char *s)
{
	char room[1024];

	um_out_str(o, um_text_visible(s, room, sizeof room));
}

void um_out_fail(struct um_out *o, int err)
{
	if (!o->err)
		o->err = err < 0 ? err : -err;
}

int um_out_error(const struct um_out *o)
{
	return o->err;
}

int um_out_close(struct um_out *o, int keep, struct um_diag *diag)
{
	int rc = keep ? o->err : 0, closed;

	if (keep && !rc) {
		flush(o, Z_FINISH);
		rc = o->err ? o->err : um_target_commit(&o->target);
	}
	closed = um_target_close(&o->target);
	if (keep && !rc)
		rc = closed;
	discard(o);
	return rc ? um_diag_set(diag, -rc, 0, "cannot write: %s", strerror(-rc)) : 0;
}
