/* SPDX-License-Identifier: Apache-2.0
 *
 * uvm_glue.c - the globals of the stand-ins
 */
#include <uvm_va_block.h>

NvU64 uvm_now;
struct delayed_work *uvm_work;
unsigned long uvm_asserts;
uvm_va_space_t uvm_space;
uvm_gpu_t uvm_gpu;
struct uvm_global g_uvm_global;

void uvm_assert_failed(const char *what, const char *file, int line)
{
	const char *name = strrchr(file, '/');

	if (uvm_asserts++ < 10)
		fprintf(stderr, "assertion of the driver failed: %s:%d %s\n", name ? name + 1 : file, line, what);
}
