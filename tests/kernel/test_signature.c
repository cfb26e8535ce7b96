/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointers to const in the names of kernels.
 */
#include "kernel/signature.h"
#include "tap.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each of `n` parameters, as a string of 0 and 1; "": nothing is known. */
static const char *constants(int (*find)(unsigned char *, size_t, const char *), size_t n, const char *name)
{
	static char out[16];
	unsigned char mark[16];

	memset(mark, 7, sizeof mark);
	if (!find(mark, n, name))
		return "";
	for (size_t i = 0; i < n; i++)
		out[i] = (char)('0' + mark[i]);
	out[n] = '\0';
	return out;
}

#define OF(n, name) constants(um_signature_constants_of, n, name)
#define MANGLED(n, name) constants(um_signature_constants, n, name)

static void demangled(void)
{
	is_str(OF(3, "saxpy(float const*, float*, int)"), "100", "a pointer to const is marked");
	is_str(OF(2, "k(float const* __restrict__, float* __restrict)"), "10", "so is one with restrict");
	is_str(OF(2, "k(float const* const, float* const)"), "10", "const of the pointer itself says nothing");
	is_str(OF(2, "k(char const* const*, char const**)"), "10", "the last pointer counts");
	is_str(OF(2, "k(float volatile*, float const volatile*)"), "01", "const comes before the star");
	is_str(OF(2, "void k<float const*, std::array<char*, 3ul> >(std::array<char const*, 3ul>, int const*)"), "01",
	       "a template's arguments are no parameters, and a struct of pointers is none");
	is_str(OF(2, "void (anonymous namespace)::k<(int)4, f(int, char)::{lambda(float const*)#1}>(int, int const*)"),
	       "01", "nor are those of lambdas");
	is_str(OF(2, "k(void (*)(float const*, int), float const (*) [4])"), "00",
	       "a function and an array that are pointed to are not marked");
	is_str(OF(2, "k(float const*)"), "", "with another number of parameters nothing is known");
	is_str(OF(1, "k(float const*, int)"), "", "with more of them, too");
	is_str(OF(1, "k()"), "", "a kernel without parameters has none");
	is_str(OF(1, "k"), "", "a name without a list says nothing");
	is_str(OF(1, ")"), "", "nor does half of one");
	is_str(OF(1, "a>)"), "", "nor one that is no name");
}

/* In a process of its own: whether there is a demangler is asked once. */
static void with_demangler(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(!dlopen("libstdc++.so.6", RTLD_NOW) ? 77 : strcmp(MANGLED(3, "_Z1kPKfPfi"), "100") != 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		tap_bail("no process");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(1, "no C++ library here");
	else
		ok(status == 0, "a mangled name tells its pointers to const");
}

static void mangled(void)
{
	is_str(MANGLED(1, "triton_poi_fused_add_0"), "", "a name that is not mangled says nothing");
	is_str(MANGLED(1, "_Z"), "", "nor does a damaged one");
	is_str(MANGLED(0, "_Z1kv"), "", "nor one without parameters");
}

int main(void)
{
	demangled();
	with_demangler();
	if (dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD))
		skip(1, "the C++ library is loaded by a sanitizer");
	else
		is_str(MANGLED(2, "_Z1kPKfPf"), "", "without a demangler in the process nothing is known");
	mangled();
	return tap_done();
}
