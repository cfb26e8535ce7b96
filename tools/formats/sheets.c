/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/sheets.h"

#include <ctype.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGINNING 64 /* bytes that contain the schema */
#define SIZE_MAX_BYTES (1ll << 30) /* of a document */

int um_sheets_is(const char *path)
{
	char text[BEGINNING + 1] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, text, BEGINNING);

	if (fd >= 0)
		close(fd);
	return n > 0 && text[0] == '{' && strstr(text, "\"schema\"") && strstr(text, "umreport/");
}

void um_sheets_fini(struct um_sheets *s)
{
	um_arena_fini(&s->arena);
	um_vec_fini(&s->tables);
}

const struct um_sheet *um_sheets_find(const struct um_sheets *s, const char *name)
{
	for (size_t i = 0; i < s->tables.n; i++)
		if (strcmp(s->tables.at[i].name, name) == 0)
			return &s->tables.at[i];
	return NULL;
}

int um_sheet_column(const struct um_sheet *t, const char *key)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (strcmp(t->columns[i], key) == 0)
			return (int)i;
	return -1;
}

/* --- what a document says ----------------------------------------------------------------------------------------- */

/* The keys of the first row, without lists and objects. */
static int read_columns(struct um_sheets *s, struct um_sheet *t, json_t *row)
{
	const char **columns = calloc(json_object_size(row) + 1, sizeof *columns);
	const char *key;
	json_t *v;
	int err = columns ? 0 : -ENOMEM;

	json_object_foreach(row, key, v) if (!err && !json_is_array(v) && !json_is_object(v))
	{
		columns[t->n_columns] = um_arena_intern(&s->arena, key);
		err = columns[t->n_columns++] ? 0 : -ENOMEM;
	}
	if (!err)
		t->columns = um_arena_copy(&s->arena, columns, (t->n_columns + 1) * sizeof *columns);
	free(columns);
	return t->columns ? 0 : -ENOMEM;
}

static int read_value(struct um_sheets *s, const json_t *v, struct um_sheet_value *to)
{
	*to = (struct um_sheet_value){UM_SHEET_NONE, NULL, 0};
	if (json_is_number(v)) {
		to->kind = UM_SHEET_NUMBER;
		to->number = json_number_value(v);
	} else if (json_is_string(v)) {
		to->kind = UM_SHEET_TEXT;
		to->text = um_arena_intern(&s->arena, json_string_value(v));
	}
	return to->kind == UM_SHEET_TEXT && !to->text ? -ENOMEM : 0;
}

static int read_row(struct um_sheets *s, const struct um_sheet *t, const json_t *row, struct um_sheet_value *to)
{
	int err = 0;

	for (size_t c = 0; c < t->n_columns && !err; c++)
		err = read_value(s, json_object_get(row, t->columns[c]), &to[c]);
	return err;
}

/* A table of one object, or of an array of them. */
static int read_table(struct um_sheets *s, const char *name, json_t *v)
{
	size_t n = json_is_object(v) ? 1 : json_array_size(v);
	json_t *first = json_is_object(v) ? v : json_array_get(v, 0);
	struct um_sheet t = {.name = um_arena_intern(&s->arena, name), .n_rows = n};
	struct um_sheet_value *cells;
	int err = t.name ? 0 : -ENOMEM;

	if (n && !json_is_object(first))
		return 0;
	if (!err)
		err = read_columns(s, &t, first);
	cells = err ? NULL : calloc(n * t.n_columns + 1, sizeof *cells);
	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = read_row(s, &t, json_is_object(v) ? v : json_array_get(v, i), &cells[i * t.n_columns]);
	if (!err)
		t.cells = um_arena_copy(&s->arena, cells, (n * t.n_columns + 1) * sizeof *cells);
	free(cells);
	return !err && t.cells && um_vec_push(&s->tables, t) == 0 ? 0 : -ENOMEM;
}

static int read_document(struct um_sheets *s, json_t *root, struct um_diag *diag)
{
	const char *schema = json_string_value(json_object_get(root, "schema")), *key;
	json_t *v;
	int err = 0;

	if (!schema || strcmp(schema, UM_SHEETS_SCHEMA) != 0)
		return um_diag_set(diag, EINVAL, 0, "is not a report: expected \"schema\": \"" UM_SHEETS_SCHEMA "\"");
	json_object_foreach(root, key, v) if (!err && (json_is_array(v) || json_is_object(v))) err =
		read_table(s, key, v);
	return err ? um_diag_set(diag, -err, 0, "no memory") : 0;
}

int um_sheets_parse(struct um_sheets *s, const char *text, size_t bytes, struct um_diag *diag)
{
	json_error_t error;
	json_t *root;
	int err;

	memset(s, 0, sizeof *s);
	root = json_loadb(text, bytes, 0, &error);
	if (!root && (json_error_code(&error) == json_error_out_of_memory || !*error.text))
		return um_diag_set(diag, ENOMEM, 0, "no memory");
	for (char *c = error.text; !root && *c; c++)
		*c = isprint((unsigned char)*c) ? *c : '?'; /* it quotes the text */
	if (!root)
		return um_diag_set(diag, EINVAL, error.line > 0 ? (uint64_t)error.line : 0,
				   "%s: expected one document of 'umadvise report --format json'", error.text);
	err = read_document(s, root, diag);
	json_decref(root);
	return err;
}

int um_sheets_read(struct um_sheets *s, const char *path, struct um_diag *diag)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *text = NULL;
	size_t n = 0;
	int err = 0;

	memset(s, 0, sizeof *s);
	um_diag_init(diag, path);
	if (!f || fstat(fileno(f), &st) || !S_ISREG(st.st_mode))
		err = um_diag_set(diag, EINVAL, 0, "cannot be read: %s", f ? "is not a regular file" : strerror(errno));
	else if (st.st_size > SIZE_MAX_BYTES)
		err = um_diag_set(diag, EINVAL, 0, "is larger than any report");
	else if (!(text = malloc((size_t)st.st_size + 1)))
		err = um_diag_set(diag, ENOMEM, 0, "no memory");
	else
		n = fread(text, 1, (size_t)st.st_size, f);
	if (!err && ferror(f))
		err = um_diag_set(diag, EINVAL, 0, "cannot be read: %s", strerror(errno));
	if (!err)
		err = um_sheets_parse(s, text, n, diag);
	free(text);
	if (f)
		fclose(f);
	return err;
}
