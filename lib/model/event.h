/* SPDX-License-Identifier: Apache-2.0
 *
 * event.h - events of a program: alloc, free, op, iter (the lines of a umtrace), and dead
 *
 * An event borrows everything that it points to: a sink copies the names and lists that it keeps. Events are fed in
 * program order.
 */
#ifndef UM_MODEL_EVENT_H
#define UM_MODEL_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "model/collective.h"

/* The stream of an access of the CPU (umadv_host). It takes no time on the device, and its ranges are on the host
 * afterwards. */
#define UM_STREAM_CPU (-1)

#define UM_BLOCK_BYTES (2ull << 20) /* the driver's unit of residency and eviction */

/* One allocation of a tensor; numbers are never reused. 0: none. (In a umtrace file `t` starts at 0: id = t + 1.) */
struct um_tensor_id {
	uint64_t v;
};

enum um_role {
	UM_ROLE_OTHER,
	UM_ROLE_PARAM,
	UM_ROLE_GRAD,
	UM_ROLE_OPTIM,
	UM_ROLE_ACT,
	UM_ROLE_INPUT,
	UM_ROLE_WORKSPACE,
	UM_ROLE_COMM,
	UM_ROLES
};

const char *um_role_name(enum um_role role); /* "other", "param", ... */
int um_role_parse(const char *name); /* the enum, or -EINVAL */

enum um_access {
	UM_READ = 1,
	UM_WRITE = 2, /* without READ: the range is overwritten as a whole, its previous content is dead */
	UM_UPDATE = UM_READ | UM_WRITE
};

struct um_tensor; /* model/tensor.h */

/* One range of one tensor that an op uses. A tensor appears at most once per (off, bytes). */
struct um_use {
	struct um_tensor_id id;
	struct um_tensor *tensor; /* the live tensor; NULL in events from a file */
	uint64_t off; /* bytes from the tensor's start */
	uint64_t bytes; /* > 0, off + bytes <= the tensor's bytes */
	uint64_t touched; /* bytes actually touched, scattered over the range; `bytes` by default */
	uint32_t access; /* enum um_access */
};

/* Cost of an op. Zero fields are unknown. */
struct um_cost {
	double flops; /* floating-point operations */
	double bytes; /* device-memory traffic */
	uint64_t ns; /* measured on a device */
};

/* One alternative algorithm of an op: bytes of workspace, and the op's time with it. */
struct um_workspace {
	uint64_t bytes;
	uint64_t ns;
};

#define UM_MOST_WORKSPACES 64 /* of an op */

struct um_op {
	const char *name; /* never NULL */
	const char *label; /* for people, not compared. NULL: none */
	const struct um_use *uses;
	uint32_t n_uses;
	struct um_cost cost;
	int32_t stream; /* number, or UM_STREAM_CPU */
	char phase; /* 'f', 'b', 'o', or 0 */
	uint8_t collective; /* declared so, see um_op_is_collective */
	const struct um_tensor_id *relaunch; /* see umtrace; NULL: must not be launched again */
	uint32_t n_relaunch;
	int relaunchable; /* `relaunch` is given, possibly empty */
	const struct um_workspace *ws; /* what the program offers to choose from; NULL: nothing */
	uint32_t n_ws;
};

/* Declared as a collective, or named as one. */
static inline int um_op_is_collective(const struct um_op *op)
{
	return op->collective || um_collective_is(op->name);
}

/* Bytes that `n` uses touch, counted per use. */
double um_uses_touched(const struct um_use *uses, uint32_t n);

/* Does an op of this cost, whose uses touch `touched` bytes, access each byte about once, and compute little with it?
 * Then it may access them over the link. Products of matrices read their operands several times. 0 where no cost is
 * known. */
int um_cost_streams(const struct um_cost *cost, double touched);

enum um_event_kind { UM_EV_ALLOC, UM_EV_FREE, UM_EV_OP, UM_EV_ITER, UM_EV_DEAD };

struct um_event {
	enum um_event_kind kind;
	union {
		struct {
			struct um_tensor_id id;
			struct um_tensor *tensor; /* NULL in events from a file */
			uint64_t bytes;
			const char *name; /* may be NULL */
			enum um_role role;
		} alloc;
		struct {
			struct um_tensor_id id;
			struct um_tensor *tensor;
		} free; /* free, and dead: the content is not needed any more, the tensor lives on */
		struct um_op op;
		struct {
			uint64_t n;
			const char *name; /* may be NULL */
		} iter;
	};
};

#endif
