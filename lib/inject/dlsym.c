/* SPDX-License-Identifier: Apache-2.0
 *
 * dlsym.c - dlsym of the process: answers for the driver's functions with their hooks
 *
 * Only a look-up of a hooked name by a library's handle is answered here. Every other one continues in the C library's
 * dlsym by a jump, as if it had been called directly: the meaning of RTLD_NEXT and RTLD_DEFAULT depends on the caller's
 * address. These two find the hooks by themselves, as exported symbols. The library's own look-ups get the driver.
 */
#include "inject/resolve.h"

#include <dlfcn.h>
#include <string.h>

/* The answer, or where to jump. Returned in two registers. */
struct um_lookup {
	void *value, *jump;
};

__attribute__((visibility("hidden"), used)) struct um_lookup um_lookup(void *handle, const char *name,
								       const void *caller);

void *um_dlsym(void *handle, const char *name);

static int is_own(const void *caller)
{
	Dl_info theirs, ours;

	return dladdr(caller, &theirs) && dladdr((void *)um_lookup, &ours) && theirs.dli_fbase == ours.dli_fbase;
}

UM_EARLY struct um_lookup um_lookup(void *handle, const char *name, const void *caller)
{
	um_dlsym_fn real = um_real_dlsym();
	struct um_lookup to = {NULL, (void *)real};

	if (!real || handle == RTLD_NEXT || handle == RTLD_DEFAULT || !name)
		return to;
	if (name[0] == 'd' && !strcmp(name, "dlsym")) {
		to.value = real(handle, name);
		to.value = to.value == (void *)real ? (void *)um_dlsym : to.value;
		to.jump = NULL;
	} else if (name[0] == 'c' && name[1] == 'u' && um_driver_knows(name) && !is_own(caller)) {
		to.value = real(handle, name);
		to.jump = NULL;
		if (to.value && um_driver_ready())
			to.value = um_resolve_hook(to.value, name);
	}
	return to;
}

/* Each version of the C library's: a look-up of a version finds none but that one. */
#if defined __x86_64__
#define OLD "GLIBC_2.2.5"
__asm__(".text\n"
	".globl um_dlsym\n"
	".hidden um_dlsym\n"
	".type um_dlsym, @function\n"
	"um_dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov 16(%rsp), %rdx\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call um_lookup\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	test %rdx, %rdx\n"
	"	jz 1f\n"
	"	jmp *%rdx\n"
	"1:	ret\n"
	"	.cfi_endproc\n"
	".size um_dlsym, .-um_dlsym\n");
#elif defined __aarch64__
#define OLD "GLIBC_2.17"
__asm__(".text\n"
	".globl um_dlsym\n"
	".hidden um_dlsym\n"
	".type um_dlsym, %function\n"
	"um_dlsym:\n"
	"	.cfi_startproc\n"
	"	hint 34\n"
	"	stp x29, x30, [sp, -32]!\n"
	"	.cfi_adjust_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	stp x0, x1, [sp, 16]\n"
	"	mov x2, x30\n"
	"	bl um_lookup\n"
	"	mov x16, x1\n"
	"	mov x17, x0\n"
	"	ldp x0, x1, [sp, 16]\n"
	"	ldp x29, x30, [sp], 32\n"
	"	.cfi_adjust_cfa_offset -32\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	cbz x16, 1f\n"
	"	br x16\n"
	"1:	mov x0, x17\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size um_dlsym, .-um_dlsym\n");
#else
#define OLD "GLIBC_2.17"
void *um_dlsym(void *handle, const char *name)
{
	struct um_lookup to = um_lookup(handle, name, __builtin_return_address(0));
	um_dlsym_fn real = um_real_dlsym();

	return to.jump ? real(handle, name) : to.value;
}
#endif

#define ALIAS(name, version)                                                                                           \
	__asm__(".globl " #name "\n.set " #name ", um_dlsym\n.symver " #name ", dlsym" version "\n")
ALIAS(um_dlsym_new, "@@GLIBC_2.34");
ALIAS(um_dlsym_old, "@" OLD);
