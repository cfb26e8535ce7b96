/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor.h"

#include "paint.h"
#include "tool.h"

#include <string.h>

json_t *doctor_text(const char *s)
{
	json_t *all = s ? json_string(s) : json_null();
	char plain[1024];

	if (all)
		return all;
	snprintf(plain, sizeof plain, "%s", s);
	for (char *p = plain; *p; p++)
		*p = *p & 0x80 ? '?' : *p;
	return json_string(plain);
}

static const char *str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int yes(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static double mib(const json_t *o, const char *key)
{
	return (double)json_integer_value(json_object_get(o, key)) / (1 << 20);
}

static void heading(FILE *to, const char *text)
{
	fprintf(to, "%s%s%s\n", paint(PAINT_HEADING), text, paint(PAINT_OFF));
}

static void line(FILE *to, const char *name, const char *value, const char *note)
{
	fprintf(to, "  %-26s ", name);
	fputs(tool_text(value), to);
	if (*note) {
		fprintf(to, "%*s  (", (int)(strlen(value) < 8 ? 8 - strlen(value) : 0), "");
		fputs(tool_text(note), to);
		fputc(')', to);
	}
	fputc('\n', to);
}

static void show_program(const json_t *program, FILE *to)
{
	static const char *const rows[][2] = {{"runtime", "CUDA runtime"},
					      {"cuda", "CUDA version"},
					      {"managed", "managed allocations"},
					      {"library", "calls the library"},
					      {"nvtx", "NVTX"}};
	const json_t *fact;

	if (!program)
		return;
	heading(to, "Program");
	line(to, "file", str(program, "path"), "");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		fact = json_object_get(program, rows[i][0]);
		line(to, rows[i][1], str(fact, "value"), str(fact, "meaning"));
	}
}

static void show_environment(const json_t *found, FILE *to)
{
	const json_t *v;
	size_t i, set = 0;
	char note[400];

	heading(to, "Environment");
	json_array_foreach(json_object_get(found, "environment"), i, v)
	{
		if (json_is_null(json_object_get(v, "value")))
			continue;
		set++;
		snprintf(note, sizeof note, yes(v, "used") ? "%s" : "ignored: accepted: %s",
			 str(v, yes(v, "used") ? "meaning" : "accepted"));
		line(to, str(v, "name"), str(v, "value"), note);
	}
	json_array_foreach(json_object_get(found, "unknown_variables"), i, v)
	{
		snprintf(note, sizeof note, *str(v, "near") ? "did you mean %s?" : "umadvise(7) lists them",
			 str(v, "near"));
		line(to, str(v, "name"), "not a variable of this library", note);
	}
	if (!set && !i)
		fputs("  no UMADVISE_* variable is set\n", to);
}

static void show_libraries(const json_t *found, FILE *to)
{
	char name[64], value[400];
	const json_t *l;
	size_t i;

	heading(to, "Libraries");
	json_array_foreach(json_object_get(found, "libraries"), i, l)
	{
		snprintf(name, sizeof name, "%s %s", str(l, "role"), str(l, "name"));
		snprintf(value, sizeof value, "%s%s%s%s%s", yes(l, "found") ? "found" : "not found",
			 *str(l, "version") ? " " : "", str(l, "version"), *str(l, "path") ? ", " : "", str(l, "path"));
		line(to, name, value, str(l, "note"));
	}
}

static void show_device(const json_t *found, FILE *to)
{
	const json_t *d = json_object_get(found, "device"), *c;
	char value[128];
	size_t i;

	if (!d)
		return;
	heading(to, "Device");
	line(to, "name", str(d, "name"), str(d, "kind"));
	if (strcmp(str(d, "kind"), "none") == 0)
		return;
	snprintf(value, sizeof value, "%.1f MiB", mib(d, "memory_bytes"));
	line(to, "memory for managed data", value, "");
	json_array_foreach(json_object_get(d, "capabilities"), i, c)
		line(to, str(c, "name"), yes(c, "has") ? "yes" : "no", str(c, "meaning"));
	d = json_object_get(found, "choices");
	line(to, "profile", str(d, "profile"), str(d, "profile_from"));
	snprintf(value, sizeof value, "%.1f MiB", mib(d, "budget_bytes"));
	line(to, "budget", value, str(d, "budget_from"));
	line(to, "strategy", str(d, "strategy"), "");
}

void doctor_show(const json_t *found, FILE *to)
{
	int hints = yes(found, "hints");
	const json_t *l;
	size_t i;

	show_program(json_object_get(found, "program"), to);
	show_environment(found, to);
	show_libraries(found, to);
	show_device(found, to);
	if (json_array_size(json_object_get(found, "log")))
		heading(to, "Log of a context that opens");
	json_array_foreach(json_object_get(found, "log"), i, l)
	{
		fprintf(to, "  %s: ", str(l, "level"));
		fputs(tool_text(str(l, "text")), to);
		fputc('\n', to);
	}
	fprintf(to, "\n%s", paint(hints ? PAINT_GOOD : PAINT_HIGH));
	fputs(tool_text(str(found, "verdict")), to);
	fprintf(to, "%s\n", paint(PAINT_OFF));
}
