/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/signature.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*demangler)(const char *name, char *buffer, size_t *bytes, int *status);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static demangler demangle;

/* One that is loaded, also where it is not visible to all. None is loaded for this: the program may bring its own. */
static void find_demangler(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *function = library ? dlsym(library, "__cxa_demangle") : NULL;

	memcpy(&demangle, &function, sizeof function); /* the reference stays: nothing unloads it */
}

/* The list of parameters, which comes last, between its parentheses. NULL: there is none. */
static const char *parameters_of(const char *name, const char **end)
{
	int depth = 0;

	*end = strrchr(name, ')');
	for (const char *at = *end; at && at >= name; at--) {
		depth += (*at == ')' || *at == '>' || *at == ']' || *at == '}');
		depth -= (*at == '(' || *at == '<' || *at == '[' || *at == '{');
		if (!depth)
			return *at == '(' ? at + 1 : NULL;
	}
	return NULL;
}

static int ends_with(const char *at, size_t bytes, const char *end)
{
	size_t n = strlen(end);

	return bytes >= n && !memcmp(at + bytes - n, end, n);
}

static int is_constant(const char *at, size_t bytes)
{
	static const char *const qualifiers[] = {" __restrict__", " __restrict", " restrict", " const", " volatile"};

	for (unsigned i = 0; i < sizeof qualifiers / sizeof *qualifiers; i++)
		if (ends_with(at, bytes, qualifiers[i]))
			bytes -= strlen(qualifiers[i]);
	return ends_with(at, bytes, " const*") || ends_with(at, bytes, " const volatile*");
}

int um_signature_constants_of(unsigned char *constant, size_t n, const char *demangled)
{
	const char *end, *at = parameters_of(demangled, &end);
	size_t found = 0;
	int depth = 0;

	if (!at || at == end)
		return 0;
	for (const char *from = at; at <= end; at++) {
		if ((*at == ',' && !depth) || at == end) {
			if (found == n)
				return 0;
			constant[found++] = (unsigned char)is_constant(from, (size_t)(at - from));
			from = at + 1;
		}
		depth += (*at == '(' || *at == '<' || *at == '[' || *at == '{');
		depth -= (*at == ')' || *at == '>' || *at == ']' || *at == '}');
	}
	return found == n;
}

int um_signature_constants(unsigned char *constant, size_t n, const char *name)
{
	char *text;
	int known;

	if (!n || strncmp(name, "_Z", 2))
		return 0;
	pthread_once(&once, find_demangler);
	text = demangle ? demangle(name, NULL, NULL, NULL) : NULL;
	known = text && um_signature_constants_of(constant, n, text);
	free(text);
	return known;
}
