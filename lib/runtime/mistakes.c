/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mistakes.h"

static const char *name_of(const char *name)
{
	return name ? name : "(unnamed)";
}

void um_mistake_pointer(struct um_notices *n, const char *op, const struct um_registry *r, const void *ptr)
{
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	const struct um_registry_freed *past = um_registry_find_freed(r, addr);

	if (past)
		um_notices_warn(n, UM_WARN_FREED,
				"op '%s' uses %p, byte %llu of tensor '%s' (%llu bytes), which was freed: such uses "
				"are ignored and counted",
				op, ptr, (unsigned long long)(addr - past->addr), name_of(past->name),
				(unsigned long long)past->bytes);
	else
		um_notices_warn(
			n, UM_WARN_POINTER,
			"op '%s' uses %p, which is in no tensor: such uses are ignored and counted; register memory "
			"of the program by umadv_adopt",
			op, ptr);
}

void um_mistake_other(struct um_notices *n, const char *op, const void *ptr, int device)
{
	um_notices_warn(n, UM_WARN_OTHER,
			"op '%s' uses %p, which is memory of another context, on device %d: the op is refused; an op "
			"names tensors of its own context",
			op, ptr, device);
}

void um_mistake_other_call(struct um_notices *n, const char *call, const void *ptr, int device)
{
	um_notices_warn(n, UM_WARN_OTHER,
			"%s names %p, which is memory of another context, on device %d: the call is refused", call, ptr,
			device);
}

void um_mistake_range(struct um_notices *n, const char *op, const struct um_tensor *t, uint64_t off, uint64_t bytes)
{
	um_notices_warn(n, UM_WARN_RANGE,
			"op '%s' uses bytes %llu to %llu of tensor '%s', which has %llu bytes: the op is refused", op,
			(unsigned long long)off, (unsigned long long)(off + bytes), name_of(t->name),
			(unsigned long long)t->bytes);
}

void um_mistake_access(struct um_notices *n, const char *op, const struct um_tensor *t, unsigned access)
{
	um_notices_warn(n, UM_WARN_RANGE,
			"op '%s' uses tensor '%s' with access %u: expected UMADV_ACCESS_READ, _WRITE or _UPDATE; the "
			"op is refused",
			op, name_of(t->name), access);
}

void um_mistake_reserved(struct um_notices *n, const char *op)
{
	um_notices_warn(n, UM_WARN_RESERVED,
			"op '%s' has a use with reserved members that are not zero, unknown to umadvise %s: the op "
			"is refused. Fill uses by the macros of umadvise.h",
			op, umadv_version());
}

/* If the CUDA context is lost, the stream is not the reason. */
void um_mistake_stream(struct um_notices *n, const char *op, const struct um_chosen_device *d, um_stream stream,
		       int code)
{
	if (code == UM_CUDA_LOST || um_chosen_device_lost(d))
		return;
	n->errors++;
	um_notices_warn(n, UM_WARN_STREAM,
			"op '%s' is announced on stream %p, which the device refuses with CUDA error %d: use a stream "
			"of this device that is not destroyed",
			op, stream, code);
}

void um_mistake_no_iteration(struct um_notices *n)
{
	um_notices_warn(n, UM_WARN_OUTSIDE,
			"%d ops were announced, umadv_iter was never called, and the ops do not repeat: no plan is "
			"made. Call umadv_iter where an iteration begins",
			UM_OPS_OUTSIDE);
}

void um_mistake_kernel(struct um_notices *n, const char *op, int code)
{
	um_notices_warn(n, UM_WARN_KERNEL,
			"the parameters of the kernel of op '%s' are not known (CUDA error %d; cudaFuncGetParamInfo of "
			"CUDA 12.4 is needed): it is launched, and not launched again",
			op, code);
}
