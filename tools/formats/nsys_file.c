/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/nsys_file.h"

#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER 100 /* bytes at the beginning of every SQLite file */
#define ROW_MIN 4 /* least bytes of a row */
#define LENGTH_MAX (16 << 20) /* bytes of a text */

int um_nsys_file_error(struct um_nsys_file *f, int code)
{
	const char *text = f->db ? sqlite3_errmsg(f->db) : sqlite3_errstr(code);

	/* A damaged row may claim more than all memory; SQLite reports both as lack of memory. */
	if ((code & 0xff) == SQLITE_NOMEM)
		return um_diag_set(f->diag, ENOMEM, 0, "no memory for its content; perhaps it is damaged");
	if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB)
		return um_diag_set(f->diag, EINVAL, 0, "damaged: %s", text);
	return um_diag_set(f->diag, EINVAL, 0, "cannot be read: %s", text);
}

/* --- what kind of file it is -------------------------------------------------------------------------------------- */

static uint32_t big_endian(const unsigned char *p, unsigned n)
{
	uint32_t x = 0;

	while (n--)
		x = x << 8 | *p++;
	return x;
}

/* Detects a truncated file: its header counts more pages than it has. */
static int check_length(const unsigned char *h, uint64_t bytes, struct um_diag *diag)
{
	uint64_t page = big_endian(h + 16, 2), pages = big_endian(h + 28, 4);

	page = page == 1 ? 65536 : page;
	if (big_endian(h + 24, 4) != big_endian(h + 92, 4) || page * pages <= bytes)
		return 0;
	return um_diag_set(diag, EINVAL, 0, "truncated: %llu of %llu bytes are there", (unsigned long long)bytes,
			   (unsigned long long)(page * pages));
}

static int check_header(const char *path, const unsigned char *h, size_t n, uint64_t bytes, struct um_diag *diag)
{
	if (!bytes)
		return um_diag_set(diag, EINVAL, 0, "is empty");
	if (n == HEADER && memcmp(h, "SQLite format 3", 16) == 0)
		return check_length(h, bytes, diag);
	if (um_text_ends(path, ".nsys-rep") || um_text_ends(path, ".qdrep"))
		return um_diag_set(diag, EINVAL, 0,
				   "is a report, not an export: run 'nsys export --type sqlite' on it");
	if (um_text_ends(path, ".qdstrm"))
		return um_diag_set(diag, EINVAL, 0,
				   "is a raw recording that nsys could not import: QdstrmImporter makes a report of "
				   "it, 'nsys export --type sqlite' an export");
	if (n > 1 && h[0] == 0x1f && h[1] == 0x8b)
		return um_diag_set(diag, EINVAL, 0, "is compressed: unpack it first");
	return um_diag_set(diag, EINVAL, 0, "is not a SQLite file: expected an export of 'nsys export --type sqlite'");
}

/* SQLite treats an empty file as an empty database, and gives unclear errors for others. */
static int check_file(const char *path, uint64_t *bytes, struct um_diag *diag)
{
	unsigned char header[HEADER];
	ssize_t n = 0;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;

	if (fd < 0 || fstat(fd, &st))
		err = um_diag_set(diag, EINVAL, 0, "cannot be read: %s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		err = um_diag_set(diag, EINVAL, 0, "is not a regular file");
	if (!err && (n = read(fd, header, sizeof header)) < 0)
		err = um_diag_set(diag, EINVAL, 0, "cannot be read: %s", strerror(errno));
	if (!err)
		err = check_header(path, header, (size_t)n, (uint64_t)st.st_size, diag);
	if (!err)
		*bytes = (uint64_t)st.st_size;
	if (fd >= 0)
		close(fd);
	return err;
}

/* "file:" and the path, with special characters of URIs written as %xx. */
static char *uri_of(const char *path)
{
	char *uri = malloc(3 * strlen(path) + 64), *to = uri;

	if (!uri)
		return NULL;
	to += sprintf(to, "file:%s", *path == '/' ? "//" : "");
	for (; *path; path++) {
		if (strchr("/._-", *path) || (*path >= '0' && *path <= '9') || (*path >= 'a' && *path <= 'z') ||
		    (*path >= 'A' && *path <= 'Z'))
			*to++ = *path;
		else
			to += sprintf(to, "%%%02x", (unsigned char)*path);
	}
	strcpy(to, "?mode=ro&immutable=1");
	return uri;
}

/* --- tables and columns ------------------------------------------------------------------------------------------- */

int um_nsys_file_step(struct um_nsys_file *f, sqlite3_stmt *s)
{
	int code = sqlite3_step(s);

	if (code == SQLITE_ROW)
		return 1;
	return code == SQLITE_DONE ? 0 : um_nsys_file_error(f, code);
}

static int prepare(struct um_nsys_file *f, const char *sql, sqlite3_stmt **out)
{
	int code = sqlite3_prepare_v2(f->db, sql, -1, out, NULL);

	return code == SQLITE_OK ? 0 : um_nsys_file_error(f, code);
}

/* Does a query with one or two texts have a result? 1, 0 or -errno. */
static int finds(struct um_nsys_file *f, const char *sql, const char *a, const char *b)
{
	sqlite3_stmt *s;
	int got = prepare(f, sql, &s);

	if (got)
		return got;
	sqlite3_bind_text(s, 1, a, -1, SQLITE_STATIC);
	if (b)
		sqlite3_bind_text(s, 2, b, -1, SQLITE_STATIC);
	got = um_nsys_file_step(f, s);
	sqlite3_finalize(s);
	return got;
}

int um_nsys_file_has(struct um_nsys_file *f, const char *table)
{
	return finds(f, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage > 0", table, NULL);
}

/* "SELECT the columns AS c0, c1, ... FROM the table", for existing columns. */
static int select_text(struct um_nsys_file *f, const char *table, const char *const *columns, char *sql, size_t size)
{
	size_t n = (size_t)snprintf(sql, size, "SELECT ");

	for (int i = 0; columns[i]; i++) {
		const char *name = columns[i] + (columns[i][0] == '!');
		int has = finds(f, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?", table, name);

		if (has < 0)
			return has;
		if (!has && columns[i][0] == '!')
			return um_diag_set(f->diag, EINVAL, 0, "table %s has no column %s: unknown kind of export",
					   table, name);
		n += (size_t)snprintf(sql + n, size - n, "%s%s%s%s AS c%d", i ? ", " : "", has ? "\"" : "",
				      has ? name : "NULL", has ? "\"" : "", i);
	}
	snprintf(sql + n, size - n, " FROM main.\"%s\"", table);
	return 0;
}

int um_nsys_file_select(struct um_nsys_file *f, const char *table, const char *const *columns, const char *tail,
			sqlite3_stmt **out)
{
	char text[1024], sql[2048];
	int err = select_text(f, table, columns, text, sizeof text);

	snprintf(sql, sizeof sql, "%s %s", text, tail);
	return err ? err : prepare(f, sql, out);
}

int um_nsys_file_select_where(struct um_nsys_file *f, const char *table, const char *const *columns, const char *tail,
			      const char *condition, sqlite3_stmt **out)
{
	char text[1024], sql[2048];
	int err = select_text(f, table, columns, text, sizeof text);

	snprintf(sql, sizeof sql, "SELECT 1 FROM (%s %s) WHERE %s", text, tail, condition);
	return err ? err : prepare(f, sql, out);
}

uint64_t um_nsys_file_rows(struct um_nsys_file *f, const char *table)
{
	char *sql = sqlite3_mprintf("SELECT max(rowid) FROM main.\"%w\"", table);
	sqlite3_stmt *s = NULL;
	int64_t n = 0;

	if (sql && sqlite3_prepare_v2(f->db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
		n = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_free(sql);
	return n > 0 && (uint64_t)n < f->rows_max ? (uint64_t)n : 0;
}

/* --- strings ------------------------------------------------------------------------------------------------------ */

static struct um_nsys_string *place_of(const struct um_nsys_file *f, int64_t id)
{
	size_t mask = UM_NSYS_STRINGS - 1, i = (size_t)((uint64_t)id * 0x9e3779b97f4a7c15ull >> 32) & mask;

	while (f->strings[i].text && f->strings[i].id != id)
		i = (i + 1) & mask;
	return &f->strings[i];
}

void um_nsys_room_fini(struct um_nsys_room *room)
{
	um_arena_fini(&room->arena);
	room->bytes = 0;
}

const char *um_nsys_file_keep(struct um_nsys_file *f, const char *text, struct um_nsys_room *room)
{
	size_t bytes = strlen(text) + 1;
	const char *copy = um_arena_copy(&room->arena, text, bytes);

	room->bytes += bytes;
	if (!copy)
		f->err = -ENOMEM;
	return copy;
}

/* Keeps the first ones; in a file with very many, others are looked up each time. */
const char *um_nsys_file_string(struct um_nsys_file *f, int64_t id, struct um_nsys_room *room)
{
	struct um_nsys_string *at;
	const char *text;
	int keep = f->n_strings < UM_NSYS_STRINGS / 2;

	if (!f->find_string)
		return NULL;
	if (!f->strings)
		f->strings = calloc(UM_NSYS_STRINGS, sizeof *f->strings);
	if (!f->strings) {
		f->err = -ENOMEM;
		return NULL;
	}
	at = place_of(f, id);
	if (at->text)
		return at->text;
	sqlite3_bind_int64(f->find_string, 1, id);
	text = sqlite3_step(f->find_string) == SQLITE_ROW ? (const char *)sqlite3_column_text(f->find_string, 0) : NULL;
	text = text ? um_nsys_file_keep(f, text, keep ? &f->names : room) : NULL;
	sqlite3_reset(f->find_string);
	if (text && keep) {
		*at = (struct um_nsys_string){id, text};
		f->n_strings++;
	}
	return text;
}

const char *um_nsys_file_text(struct um_nsys_file *f, sqlite3_value *v, struct um_nsys_room *room)
{
	const char *text;

	switch (sqlite3_value_type(v)) {
	case SQLITE_TEXT:
		text = (const char *)sqlite3_value_text(v);
		return text ? um_nsys_file_keep(f, text, room) : NULL;
	case SQLITE_INTEGER:
		return um_nsys_file_string(f, sqlite3_value_int64(v), room);
	default:
		return NULL;
	}
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static int find_tables(struct um_nsys_file *f)
{
	int known = 0, got = 0;

	for (int i = 0; i < UM_NSYS_TABLES; i++) {
		got = um_nsys_file_has(f, um_nsys_tables[i].name);
		if (got < 0)
			return got;
		f->has[i] = got;
		known += got;
	}
	for (int i = 0; i < 2 && got >= 0 && !known; i++) {
		got = um_nsys_file_has(f, i ? "EXPORT_META_DATA" : "META_DATA_EXPORT");
		known += got > 0;
	}
	if (got < 0)
		return got;
	if (!known)
		return um_diag_set(f->diag, EINVAL, 0, "is not an export of Nsight Systems: it has none of its tables");
	got = um_nsys_file_has(f, "StringIds");
	if (got <= 0)
		return got;
	return um_nsys_file_select(f, "StringIds", (const char *const[]){"!value", NULL}, "WHERE id = ?",
				   &f->find_string);
}

int um_nsys_file_open(struct um_nsys_file *f, const char *path, struct um_diag *diag)
{
	uint64_t bytes = 0;
	char *uri;
	int err, code;

	memset(f, 0, sizeof *f);
	f->diag = diag;
	err = check_file(path, &bytes, diag);
	if (err)
		return err;
	f->rows_max = bytes / ROW_MIN;
	uri = uri_of(path);
	if (!uri)
		return um_diag_set(diag, ENOMEM, 0, "no memory");
	code = sqlite3_open_v2(uri, &f->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
	free(uri);
	if (code != SQLITE_OK)
		return um_nsys_file_error(f, code);
	sqlite3_db_config(f->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(f->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(f->db, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
	code = sqlite3_exec(f->db, "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA temp_store = FILE", NULL,
			    NULL, NULL);
	return code == SQLITE_OK ? find_tables(f) : um_nsys_file_error(f, code);
}

void um_nsys_file_close(struct um_nsys_file *f)
{
	sqlite3_finalize(f->find_string);
	sqlite3_close(f->db);
	um_nsys_room_fini(&f->names);
	free(f->strings);
}
