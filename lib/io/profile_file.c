/* SPDX-License-Identifier: Apache-2.0
 *
 * profile_file.c - reads and writes profile files
 *
 * Every key is a row of one table: its name, its offset in struct um_profile, and its bounds. Reader and writer both
 * use the table.
 */
#include "io/profile_file.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "io/lines.h"
#include "io/number.h"
#include "io/out.h"

enum kind { NAME, SIZE, RATE, TIME, SHARE, FLAG, WHOLE };

/* The bounds keep arithmetic within 64 bits and refuse values that can only be a mistake of the unit. */
static const struct key {
	const char *name;
	enum kind kind;
	size_t at;
	int required;
	double min, max;
} keys[] = {
#define FIELD(f, kind, required, min, max)                                                                             \
	{                                                                                                              \
#f, kind, offsetof(struct um_profile, f), required, min, max                                           \
	}
	FIELD(name, NAME, 1, 0, 0),
	FIELD(capacity, SIZE, 1, 2.0 * 1024 * 1024, 1e15),
	FIELD(flops, RATE, 1, 1e6, 1e18),
	FIELD(mem_bandwidth, RATE, 1, 1e6, 1e16),
	FIELD(launch_ns, TIME, 1, 0, 1e9),
	FIELD(h2d, RATE, 1, 1e6, 1e15),
	FIELD(d2h, RATE, 1, 1e6, 1e15),
	FIELD(duplex, SHARE, 0, 0, 1),
	FIELD(duplex_evict, SHARE, 0, 0, 1),
	FIELD(eta, SHARE, 0, 0.01, 1),
	FIELD(measured, FLAG, 0, 0, 1),
	FIELD(coherent, FLAG, 0, 0, 1),
	FIELD(serial_host, FLAG, 0, 0, 1), /* prefetches to the host */
	FIELD(c_batch, TIME, 0, 0, 1e9),
	FIELD(c_fault, TIME, 0, 0, 1e9),
	FIELD(c_blk, TIME, 0, 0, 1e9),
	FIELD(c_perm, TIME, 0, 0, 1e9),
	FIELD(c_unmap, TIME, 0, 0, 1e9),
	FIELD(c_dma, TIME, 0, 0, 1e9),
	FIELD(c_dma_4k, TIME, 0, 0, 1e9),
	FIELD(c_hostpop, TIME, 0, 0, 1e9),
	FIELD(c_hostzero, TIME, 0, 0, 1e9),
	FIELD(c_evict, TIME, 0, 0, 1e9),
	FIELD(c_evict_unused, TIME, 0, 0, 1e9),
	FIELD(c_zero, TIME, 0, 0, 1e9),
	FIELD(c_api, TIME, 0, 0, 1e9),
	FIELD(c_pf, TIME, 0, 0, 1e9),
	FIELD(c_pf_res, TIME, 0, 0, 1e9),
	FIELD(c_pf_cpu, TIME, 0, 0, 1e9),
	FIELD(c_disc, TIME, 0, 0, 1e9),
	FIELD(c_disc_u, TIME, 0, 0, 1e9),
	FIELD(c_adv, TIME, 0, 0, 1e9),
	FIELD(c_adv_ab, TIME, 0, 0, 1e9),
	FIELD(c_cpuf, TIME, 0, 0, 1e9),
	FIELD(o_seg, TIME, 0, 0, 1e9),
	FIELD(b_remote, SHARE, 0, 0.001, 1),
	FIELD(driver, WHOLE, 0, 300, 9999),
	FIELD(link_devices, WHOLE, 0, 1, 1024),
#undef FIELD
};

#define N_KEYS (sizeof keys / sizeof *keys)
#define SHOWN 40 /* bytes of the file's text that a message quotes */

/* Text of the file for a message: short and printable. */
struct shown {
	char text[SHOWN + 4];
};

static struct shown show(const char *text, size_t n)
{
	struct shown s;
	size_t len = n < SHOWN ? n : SHOWN;

	for (size_t i = 0; i < len; i++)
		s.text[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	strcpy(s.text + len, n > SHOWN ? "..." : "");
	return s;
}

static void trim(const char **text, size_t *n)
{
	while (*n && isspace((unsigned char)**text))
		++*text, --*n;
	while (*n && isspace((unsigned char)(*text)[*n - 1]))
		--*n;
}

static const char *wants(enum kind kind)
{
	switch (kind) {
	case SIZE:
		return "bytes, or a number with B, KiB, MiB or GiB (16 GiB)";
	case RATE:
		return "bytes/s or FLOP/s as a plain number (12e9)";
	case TIME:
		return "whole nanoseconds without a unit (5000)";
	case SHARE:
		return "a plain number from 0 to 1 (0.9)";
	case FLAG:
		return "yes or no";
	case WHOLE:
		return "a whole number (595)";
	default:
		return "1 to 63 printable bytes";
	}
}

/* "12 GiB", "12884901888", "1.5 GiB": whole bytes. */
static int parse_size(const char *text, size_t n, double *out)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {{"KiB", 1024.0}, {"MiB", 1024.0 * 1024}, {"GiB", 1024.0 * 1024 * 1024}, {"B", 1}, {"", 1}};
	size_t digits = 0, unit;
	double x;

	while (digits < n && strchr("0123456789.eE+-", text[digits]))
		digits++;
	for (unit = digits; unit < n && text[unit] == ' ';)
		unit++;
	if (um_number_parse(text, digits, &x))
		return -EINVAL;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (n - unit != strlen(units[i].name) || memcmp(text + unit, units[i].name, n - unit) != 0)
			continue;
		x *= units[i].bytes;
		if (x < 1e18 && x != (double)(uint64_t)x)
			return -EINVAL;
		*out = x;
		return 0;
	}
	return -EINVAL;
}

static int parse_number(const struct key *key, const char *text, size_t n, double *out)
{
	uint64_t whole;
	int rc;

	switch (key->kind) {
	case SIZE:
		return parse_size(text, n, out);
	case TIME:
	case WHOLE:
		rc = um_number_parse_u64(text, n, &whole);
		if (!rc)
			*out = (double)whole;
		return rc;
	case FLAG:
		*out = n == 3;
		return (n == 3 && memcmp(text, "yes", 3) == 0) || (n == 2 && memcmp(text, "no", 2) == 0) ? 0 : -EINVAL;
	default:
		return um_number_parse(text, n, out);
	}
}

static int set_name(struct um_profile *p, const char *text, size_t n)
{
	if (n == 0 || n >= sizeof p->name)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return -EINVAL;
	memcpy(p->name, text, n);
	p->name[n] = '\0';
	return 0;
}

static int set_value(struct um_profile *p, const struct key *key, const char *text, size_t n, uint64_t line,
		     struct um_diag *diag)
{
	char *at = (char *)p + key->at;
	double x = 0;
	int rc = key->kind == NAME ? set_name(p, text, n) : parse_number(key, text, n, &x);

	if (rc == -ERANGE || (!rc && (x < key->min || x > key->max)))
		return um_diag_set(diag, EINVAL, line, "`%s` is out of range: %s, want %g to %g", key->name,
				   show(text, n).text, key->min, key->max);
	if (rc)
		return um_diag_set(diag, EINVAL, line, "`%s` cannot be %s: want %s", key->name,
				   n ? show(text, n).text : "empty", wants(key->kind));
	if (key->kind == SIZE || key->kind == TIME || key->kind == WHOLE)
		*(uint64_t *)(void *)at = (uint64_t)x;
	else if (key->kind == FLAG)
		*(int *)(void *)at = (int)x;
	else if (key->kind != NAME)
		*(double *)(void *)at = x;
	return 0;
}

static size_t find_key(const char *text, size_t n)
{
	size_t i = 0;

	while (i < N_KEYS && (strlen(keys[i].name) != n || memcmp(keys[i].name, text, n) != 0))
		i++;
	return i;
}

/* `seen[i]`: the line that set key i, 0 if none. */
static int read_line(struct um_profile *p, const char *text, size_t n, uint64_t line, uint64_t seen[N_KEYS],
		     struct um_diag *diag)
{
	const char *end = memchr(text, '#', n), *eq, *value;
	size_t value_n, k;

	if (end)
		n = (size_t)(end - text);
	trim(&text, &n);
	if (n == 0)
		return 0;
	eq = memchr(text, '=', n);
	if (!eq)
		return um_diag_set(diag, EINVAL, line, "no '=' in \"%s\": want key = value", show(text, n).text);
	value = eq + 1;
	value_n = n - (size_t)(value - text);
	n = (size_t)(eq - text);
	trim(&text, &n);
	trim(&value, &value_n);
	k = find_key(text, n);
	if (k == N_KEYS)
		return um_diag_set(diag, EINVAL, line,
				   "unknown key \"%s\": want name, capacity, flops, mem_bandwidth, "
				   "launch_ns, h2d, d2h or another of doc/profiles.md",
				   show(text, n).text);
	if (seen[k])
		return um_diag_set(diag, EINVAL, line, "`%s` again: line %" PRIu64 " has it, want it once",
				   keys[k].name, seen[k]);
	seen[k] = line;
	return set_value(p, &keys[k], value, value_n, line, diag);
}

static int read_lines(struct um_lines *lines, struct um_profile *out, struct um_diag *diag)
{
	struct um_profile p;
	uint64_t seen[N_KEYS] = {0};
	const char *text;
	size_t n;
	int rc;

	um_profile_init(&p);
	while ((rc = um_lines_next(lines, &text, &n)) > 0) {
		rc = read_line(&p, text, n, um_lines_number(lines), seen, diag);
		if (rc)
			return rc;
	}
	if (rc)
		return rc;
	for (size_t i = 0; i < N_KEYS; i++)
		if (keys[i].required && !seen[i])
			return um_diag_set(diag, EINVAL, um_lines_number(lines), "`%s` is missing: want a line %s = %s",
					   keys[i].name, keys[i].name, wants(keys[i].kind));
	if (!seen[find_key("duplex_evict", strlen("duplex_evict"))])
		p.duplex_evict = p.duplex;
	*out = p;
	return 0;
}

int um_profile_read(const char *path, struct um_profile *out, struct um_diag *diag)
{
	struct um_lines *lines;
	int rc = um_lines_open(&lines, path, diag);

	if (rc)
		return rc;
	rc = read_lines(lines, out, diag);
	um_lines_close(lines);
	return rc;
}

int um_profile_read_mem(const void *data, size_t bytes, const char *name, struct um_profile *out, struct um_diag *diag)
{
	struct um_lines *lines;
	int rc = um_lines_open_mem(&lines, data, bytes, name, diag);

	if (rc)
		return rc;
	rc = read_lines(lines, out, diag);
	um_lines_close(lines);
	return rc;
}

static void write_value(struct um_out *o, const struct um_profile *p, const struct key *key)
{
	const void *at = (const char *)p + key->at;

	switch (key->kind) {
	case NAME:
		um_out_str(o, at);
		break;
	case SIZE:
		um_out_u64(o, *(const uint64_t *)at);
		um_out_str(o, " B");
		break;
	case TIME:
	case WHOLE:
		um_out_u64(o, *(const uint64_t *)at);
		break;
	case FLAG:
		um_out_str(o, *(const int *)at ? "yes" : "no");
		break;
	default:
		um_out_double(o, *(const double *)at);
	}
}

int um_profile_write(const char *path, const struct um_profile *p, const struct um_profile_notes *notes,
		     struct um_diag *diag)
{
	struct um_out *o;
	int rc = um_out_open(&o, path, diag);

	if (rc)
		return rc;
	if (notes && notes->top) {
		um_out_str(o, "# ");
		um_out_str(o, notes->top);
		um_out_str(o, "\n");
	}
	um_out_str(o, "# Sizes in bytes, rates in bytes/s and FLOP/s, times in ns.\n");
	for (size_t i = 0; i < N_KEYS; i++) {
		const char *note = notes && notes->note ? notes->note(notes->user, keys[i].name) : NULL;

		um_out_str(o, keys[i].name);
		um_out_str(o, " = ");
		write_value(o, p, &keys[i]);
		um_out_str(o, note ? " # " : "");
		um_out_str(o, note ? note : "");
		um_out_str(o, "\n");
	}
	return um_out_close(o, 1, diag);
}

int um_profile_get(const char *name_or_path, struct um_profile *out, struct um_diag *diag)
{
	const struct um_profile *builtin = um_profile_find(name_or_path);
	char names[160] = "";
	size_t len = 0;
	int rc;

	if (builtin) {
		*out = *builtin;
		return 0;
	}
	rc = um_profile_read(name_or_path, out, diag);
	if (rc != -ENOENT || !diag)
		return rc;
	for (unsigned i = 0; um_profile_builtin(i) && len < sizeof names; i++)
		len += (size_t)snprintf(names + len, sizeof names - len, " %s", um_profile_builtin(i));
	um_diag_init(diag, name_or_path);
	return um_diag_set(diag, ENOENT, 0, "no such profile: want a file or one of%s", names);
}
