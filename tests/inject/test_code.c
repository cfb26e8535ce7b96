/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels write, from the PTX of the modules that they are in.
 */
#include "inject/code.h"
#include "inject/driver.h"

#include "tap.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#define PARAMS ".param .u64 a, .param .u64 b"
/* Reads its first parameter and writes its second one; the other way round; has a third one. */
#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry "
#define COPY(from, to)                                                                                                 \
	"{\n.reg .f32 %f<2>;\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [" from "];\nld.param.u64 %rd2, [" to              \
	"];\nld.global.f32 %f1, [%rd1];\nst.global.f32 [%rd2], %f1;\nret;\n}\n"

static const char forth[] = HEAD "kernel(" PARAMS ")\n" COPY("a", "b");
static const char back[] = HEAD "kernel(" PARAMS ")\n" COPY("b", "a");
static const char other[] = HEAD "other(" PARAMS ")\n" COPY("a", "b");
static const unsigned char elf[64] = {0x7f, 'E', 'L', 'F'};

/* --- no driver ---------------------------------------------------------------------------------------------------- */

struct um_real um_real;
atomic_int um_driver_state = 1;

int um_driver_search(void)
{
	return 0;
}

um_dlsym_fn um_real_dlsym(void)
{
	return dlsym;
}

/* A function is a pointer to the handle of its module. */
static int module_of(void **module, void *function)
{
	*module = *(void **)function;
	return *module ? 0 : 400;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static int handles[4];

/* "rw": the second parameter may be written through; "": nothing is known. */
static const char *known(void *module, const char *name, size_t words)
{
	static char all[4];
	unsigned char written[3];

	if (!um_code_written(written, words, &module, name))
		return "";
	for (size_t i = 0; i < words; i++)
		all[i] = written[i] ? 'w' : 'r';
	all[words] = 0;
	return all;
}

static void test_modules(void)
{
	um_code_loaded(&handles[0], UM_CODE_MODULE, forth);
	is_str(known(&handles[0], "kernel", 2), "rw", "what a kernel writes is read from the PTX of its module");
	is_str(known(&handles[0], "kernel", 3), "", "nothing is known of a kernel with other parameters");
	is_str(known(&handles[0], "lost", 2), "", "nor of one that the PTX does not have");
	um_code_loaded(&handles[1], UM_CODE_MODULE, back);
	is_str(known(&handles[1], "kernel", 2), "wr", "a kernel of the same name in another module is another one");
	is_str(known(&handles[0], "kernel", 2), "rw", "the first one stays the same");
	um_code_loaded(&handles[2], UM_CODE_MODULE, elf);
	is_str(known(&handles[2], "kernel", 2), "", "of a module without PTX nothing is known, whatever the name");
	is_str(known(&handles[3], "kernel", 2), "", "a module whose load was not seen is not taken for another one");
	um_code_unloaded(&handles[0]);
	um_code_loaded(&handles[0], UM_CODE_MODULE, back);
	is_str(known(&handles[0], "kernel", 2), "wr", "a module with the handle of an unloaded one has its own code");
	for (int i = 0; i < 3; i++)
		um_code_unloaded(&handles[i]);
	is_str(known(&handles[1], "kernel", 2), "", "nothing is known of an unloaded module");
}

static void test_libraries(void)
{
	um_code_loaded(&handles[0], UM_CODE_LIBRARY, forth);
	um_code_loaded(&handles[1], UM_CODE_LIBRARY, other);
	is_str(known(&handles[0], "kernel", 2), "rw", "a library's code is found by its handle");
	is_str(known(&handles[3], "kernel", 2), "rw", "by a name, if the handle is that of the library's module");
	is_str(known(NULL, "other", 2), "rw", "and if the driver does not tell a handle");
	um_code_unloaded(&handles[0]);
	um_code_unloaded(&handles[1]);
}

static void test_files(void)
{
	char path[] = "/tmp/umadvise-test-code-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f || fputs(forth, f) < 0 || fclose(f))
		tap_bail("no file");
	um_code_loaded_file(&handles[0], UM_CODE_MODULE, path);
	is_str(known(&handles[0], "kernel", 2), "rw", "the PTX of a file is read");
	um_code_unloaded(&handles[0]);
	unlink(path);
	um_code_loaded_file(&handles[0], UM_CODE_MODULE, path);
	is_str(known(&handles[0], "kernel", 2), "", "a file that is gone tells nothing");
	um_code_unloaded(&handles[0]);
}

/* A comment makes the code as long as that. */
static void test_limit(void)
{
	size_t bytes = 40ull << 20;
	char *text = malloc(bytes + sizeof forth + 1);

	if (!text)
		tap_bail("no memory");
	strcpy(text, forth);
	strcat(text, "//");
	memset(text + sizeof forth + 1, '.', bytes - 1);
	text[sizeof forth + bytes] = 0;
	um_code_loaded(&handles[0], UM_CODE_MODULE, text);
	um_code_loaded(&handles[1], UM_CODE_MODULE, text);
	is_str(known(&handles[1], "kernel", 2), "", "code beyond 64 MiB that wait to be read is not kept");
	is_str(known(&handles[0], "kernel", 2), "rw", "code that was kept before is");
	um_code_unloaded(&handles[1]);
	um_code_loaded(&handles[1], UM_CODE_MODULE, text);
	is_str(known(&handles[1], "kernel", 2), "rw", "code that was read does not count any more");
	um_code_unloaded(&handles[0]);
	um_code_unloaded(&handles[1]);
	free(text);
}

int main(void)
{
	um_real.cuFuncGetModule = module_of;
	test_modules();
	test_libraries();
	test_files();
	test_limit();
	return tap_done();
}
