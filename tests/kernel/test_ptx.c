/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel may write through its parameters, from texts as compilers write them.
 */
#include "kernel/ptx.h"
#include "tap.h"

#include <errno.h>

/* Pointers a, b, c at 0, 8, 16, an int at 24, and a struct of 24 bytes at 32. */
static const struct um_ptx_param params[] = {
	{"k_param_0", 0, 8}, {"k_param_1", 8, 8}, {"k_param_2", 16, 8}, {"k_param_3", 24, 4}, {"k_param_4", 32, 24},
};
#define N (sizeof params / sizeof *params)
#define WORDS 7

#define LOAD                                                                                                           \
	".reg .pred %p<2>; .reg .b64 %rd<9>;\n"                                                                        \
	"ld.param.u64 %rd1, [k_param_0];\nld.param.u64 %rd2, [k_param_1];\nld.param.b64 %rd3, [k_param_2];\n"          \
	"ld.param.u32 %r1, [k_param_3];\ncvta.to.global.u64 %rd4, %rd1;\ncvta.to.global.u64 %rd5, %rd2;\n"

/* The words that the code may write through, as a string of 0 and 1 for each. */
static const char *written(const char *body)
{
	static char out[WORDS + 1];
	unsigned char word[WORDS] = {0};
	size_t bytes = strlen(body);
	char *copy = malloc(bytes ? bytes : 1); /* of exactly that size */
	int err;

	if (!copy)
		tap_bail("no memory");
	memcpy(copy, body, bytes);
	err = um_ptx_written(word, copy, bytes, params, N);
	free(copy);
	for (int i = 0; i < WORDS; i++)
		out[i] = err ? '?' : (char)('0' + word[i]);
	return out;
}

static void addresses(void)
{
	is_str(written(LOAD "ld.global.f32 %f1, [%rd4];\nst.global.f32 [%rd5+4], %f1;\nret;"), "0100000",
	       "an address of a store is written, one of a load is not");
	is_str(written(LOAD
		       "mul.wide.s32 %rd6, %r1, 4;\nadd.s64 %rd7, %rd5, %rd6;\nst.global.v2.f32 [%rd7], {%f1, %f2};"),
	       "0101000", "an address is followed through what it is computed with");
	is_str(written(LOAD "@%p1 bra $L;\nmov.u64 %rd6, %rd5;\n$L: selp.b64 %rd7, %rd4, %rd6, %p1;\n"
			    "st.global.u32 [%rd7], %r1;"),
	       "1101000", "each address that a choice may take is written");
	is_str(written(LOAD "$L: st.global.u32 [%rd6], %r9;\nmov.u64 %rd6, %rd4;\nbra $L;"), "1000000",
	       "the order of the text does not matter");
	is_str(written(LOAD "ld.global.u64 %rd6, [%rd4];\nst.global.f32 [%rd6], %f1;"), "0000000",
	       "an address that is loaded from memory leads to no parameter");
	is_str(written(LOAD "@!%p1 st.f32 [%rd1], %f1;"), "1000000", "a store with a condition counts");
	is_str(written(LOAD "ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4+16];\nprefetch.global.L2 [%rd5];"),
	       "0000000", "loads of vectors and prefetches write nothing");
}

static void other_writes(void)
{
	is_str(written(LOAD "atom.global.add.u32 %r2, [%rd4], 1;\nred.global.add.f32 [%rd5], %f1;"), "1100000",
	       "atomics write");
	is_str(written(LOAD "cp.async.ca.shared.global [%r5], [%rd4], 16;\ncp.async.commit_group;"), "0000000",
	       "a copy to shared memory reads");
	is_str(written(LOAD "cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r5], 128;"), "1000000",
	       "a copy from shared memory writes");
	is_str(written(LOAD "st.shared.u64 [%r5], %rd4;"), "1000000",
	       "an address that is stored may be written through");
	is_str(written(LOAD "st.shared.f32 [%rd4], %f1;\nst.local.f32 [%rd5], %f1;"), "0000000",
	       "stores to shared and local memory write no parameter's");
	is_str(written(LOAD "{ .param .b64 param0;\nst.param.b64 [param0], %rd5;\ncall.uni f, (param0); }"), "0100000",
	       "an argument of a call may be written through");
	is_str(written(LOAD "call f, (%rd3);"), "0010000", "so may one that is given as it is");
	is_str(written(LOAD "discard.global.L2 [%rd5], 128;"), "0100000", "a discard writes");
	is_str(written(LOAD "unheard.of.u64 [%rd5], %r1;"), "0101000", "an unknown instruction with an address writes");
}

static void structs(void)
{
	is_str(written("ld.param.u64 %rd1, [k_param_4+8];\nst.global.f32 [%rd1], %f1;"), "0000010",
	       "the offset of a load selects the word of a struct");
	is_str(written("ld.param.u64 %rd1, [k_param_4+0x10];\nst.global.f32 [%rd1], %f1;"), "0000001",
	       "an offset may be hexadecimal");
	is_str(written("ld.param.v2.u64 {%rd1, %rd2}, [k_param_4];\nst.global.f32 [%rd2], %f1;"), "0000110",
	       "a load of two words may be either");
	is_str(written("mov.b64 %rd1, k_param_4;\nld.param.u64 %rd2, [%rd1+8];\nld.global.f32 %f1, [%rd2];"), "0000111",
	       "a parameter whose address is taken is written");
	is_str(written("ld.param.u64 %rd1, [k_param_4+64];\nst.global.f32 [%rd1], %f1;"), "0000000",
	       "an offset past the parameter is none of it");
}

static void texts(void)
{
	is_str(written(""), "0000000", "no code writes nothing");
	is_str(written(LOAD "// st.global.f32 [%rd4], %f1;\n/* st.global.f32 [%rd5], %f1; */"), "0000000",
	       "comments are no code");
	is_str(written(LOAD ".loc 1 7 3\nst.global.f32 [%rd4], %f1;"), "1000000", "a line of .loc ends at its end");
	is_str(written(LOAD ".pragma \"nounroll\";\nst.global.f32 [%rd4], %f1;"), "1000000", "other directives do not");
	is_str(written(LOAD "st.global.f32 [%rd4"), "1000000", "code may end anywhere");
	is_str(written("ld.u8 %r1, [k_param_4], k_param_4;"), "0000111", "damaged code does no harm");
	is_str(written("@"), "0000000", "even after a condition's first character");
}

/* Many names, so that the table of them grows. */
static void large(void)
{
	static char body[1 << 18];
	size_t n = (size_t)sprintf(body, "ld.param.u64 %%rd0, [k_param_1];\n");

	for (int i = 0; i < 5000; i++)
		n += (size_t)sprintf(body + n, "add.s64 %%rd%d, %%rd%d, 4;\n", i + 1, i);
	sprintf(body + n, "st.global.u8 [%%rd5000], 1;\n");
	is_str(written(body), "0100000", "an address is followed through thousands of registers");
}

/* For ptx_memory.sh. */
static int once(void)
{
	static const char code[] = LOAD "mul.wide.s32 %rd6, %r1, 4;\nadd.s64 %rd7, %rd5, %rd6;\nst.f32 [%rd7], %f1;";
	unsigned char word[WORDS] = {0};
	int err = um_ptx_written(word, code, sizeof code - 1, params, N);

	return err == -ENOMEM ? 2 : err || !word[1] || word[0];
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "once"))
		return once();
	addresses();
	other_writes();
	structs();
	texts();
	large();
	return tap_done();
}
