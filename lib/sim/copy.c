/* SPDX-License-Identifier: Apache-2.0
 *
 * copy.c - copies and fills on the simulated GPU
 *
 * On its stream each is a kernel that walks its managed memory one block at a time, as a copy engine faults, and then
 * moves the data. Between host and device that takes an engine for the link's time, at the link's own rate; inside the
 * device memory bandwidth, twice for a copy. Host memory that is not pinned goes through a pinned buffer: half the
 * rate, on the caller's time, except small sources, which are copied aside when the call is made. Between two devices
 * it takes an engine of each.
 */
#include "sim/state.h"

#define ASIDE_BYTES 65536u /* pageable sources up to this size do not block their caller */
#define STAGED 2 /* times as long as from pinned memory */

struct um_sim_xfer {
	struct um_sim_copy copy; /* of a fill: without a source */
	uint32_t value;
	unsigned size; /* of an element of a fill; 0: a copy */
	int engine; /* enum um_sim_engine_id, or -1: none */
	int peer; /* between two devices, through the host; engine: H2D */
	int staged;
	int host; /* between two host addresses */
	int real; /* both have real memory */
	int to_ours, from_ours; /* the device's memory, or pinned: it may be freed early */
	char aside[];
};

/* One end (source or destination) of a copy. */
struct end {
	const struct um_sim_mem *mem; /* NULL: pageable host memory */
	struct um_sim *sim; /* the device that has it, or that reaches it */
	uint64_t bytes; /* from its first row to its last */
	int on_device; /* or managed */
	int real;
};

static int end_find(struct um_sim *sim, const void *ptr, uint64_t pitch, uint64_t bytes, uint64_t rows, struct end *out)
{
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	const struct um_sim_mem *m = um_sim_mem_find(sim, addr);

	out->sim = sim;
	if (!m)
		m = um_sim_mem_any(&out->sim, addr);
	if (!ptr || (rows > 1 && (pitch < bytes || pitch > UINT64_MAX / rows)))
		return UM_CUDA_INVALID_VALUE;
	out->mem = m;
	out->bytes = (rows - 1) * pitch + bytes;
	if (m && out->bytes > m->bytes - (addr - m->addr))
		return UM_CUDA_INVALID_VALUE;
	out->on_device = m && (m->kind == UM_SIM_DEVICE || m->kind == UM_SIM_MANAGED);
	out->real = !out->on_device || sim->opt.backed;
	return UM_CUDA_OK;
}

/* Enqueues a walk over the managed ends. Takes `x`. `*seq`: of the command. */
static int push(struct um_sim *sim, struct um_sim_stream *s, struct um_sim_xfer *x, const struct um_touch *touch,
		uint32_t n, uint64_t *seq)
{
	struct um_sim_walk *w = um_sim_walk_new(&(struct um_sim_kernel){
		.name = x->size ? "(fill)" : "(copy)", .access = touch, .n_access = n, .pattern = UM_PATTERN_NARROW});
	int err;

	if (!w) {
		free(x);
		return UM_CUDA_NO_MEMORY;
	}
	um_sim_walk_xfer(w, x);
	um_sim_walk_called(w, um_sim_watch_call(sim, x->size ? "cudaMemsetAsync_v3020" : "cudaMemcpyAsync_v3020",
						*um_sim_clock(sim)));
	err = um_sim_stream_push(sim, s, &(struct um_sim_cmd){.kind = UM_SIM_CMD_KERNEL, .kernel = w});
	if (err)
		um_sim_walk_free(w);
	*seq = sim->node->seq;
	return err;
}

static void rows_copy(void *to, uint64_t to_pitch, const void *from, uint64_t from_pitch, uint64_t bytes, uint64_t rows)
{
	for (uint64_t i = 0; i < rows; i++)
		memmove((char *)to + i * to_pitch, (const char *)from + i * from_pitch, bytes);
}

static struct um_sim_xfer *copy_make(const struct um_sim_copy *c, const struct end *to, const struct end *from)
{
	int pageable = !to->mem || !from->mem, aside = !from->mem && to->on_device && c->bytes * c->rows <= ASIDE_BYTES;
	struct um_sim_xfer *x = calloc(1, sizeof *x + (aside ? c->bytes * c->rows : 0));

	if (!x)
		return NULL;
	x->copy = *c;
	x->engine = to->on_device == from->on_device ? -1 : to->on_device ? UM_SIM_H2D : UM_SIM_D2H;
	x->peer = to->on_device && from->on_device && to->sim != from->sim;
	if (x->peer)
		x->engine = UM_SIM_H2D;
	x->host = !to->on_device && !from->on_device;
	x->staged = pageable && !aside && !x->host;
	x->real = to->real && from->real;
	x->to_ours = to->mem != NULL;
	x->from_ours = from->mem != NULL;
	if (aside) {
		rows_copy(x->aside, c->bytes, c->from, c->from_pitch, c->bytes, c->rows);
		x->copy.from = x->aside;
		x->copy.from_pitch = c->bytes;
	}
	return x;
}

int um_sim_copy(struct um_gpu *gpu, um_stream stream, const struct um_sim_copy *copy, int wait)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_touch touch[2];
	struct um_sim_stream *s;
	struct um_sim_xfer *x;
	struct end to, from;
	uint64_t seq;
	uint32_t n = 0;
	int err;

	if (!copy || !copy->bytes || !copy->rows)
		return copy ? UM_CUDA_OK : UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "a copy");
	s = um_sim_stream_of(sim, stream);
	err = s ? sim->error : UM_CUDA_INVALID_HANDLE;
	err = err ? err : end_find(sim, copy->to, copy->to_pitch, copy->bytes, copy->rows, &to);
	err = err ? err : end_find(sim, copy->from, copy->from_pitch, copy->bytes, copy->rows, &from);
	if (err)
		return um_sim_leave(sim, err);
	x = copy_make(copy, &to, &from);
	if (!x)
		return um_sim_leave(sim, UM_CUDA_NO_MEMORY);
	/* To pageable host memory, between host addresses, through a buffer: the call returns after the copy. */
	wait = x->host || (!to.mem && from.on_device) || x->staged || (wait && x->engine >= 0);
	if (wait && sim->node->lane) {
		free(x);
		return um_sim_leave(sim, UM_CUDA_NOT_SUPPORTED);
	}
	if (from.mem && from.mem->kind == UM_SIM_MANAGED)
		touch[n++] = (struct um_touch){copy->from, from.bytes, copy->bytes * copy->rows, UM_READ};
	if (to.mem && to.mem->kind == UM_SIM_MANAGED)
		touch[n++] = (struct um_touch){copy->to, to.bytes, copy->bytes * copy->rows, UM_WRITE};
	err = push(sim, s, x, touch, n, &seq);
	if (!err && wait)
		err = um_sim_stream_await(sim, s, seq);
	return um_sim_leave(sim, err);
}

int um_sim_set(struct um_gpu *gpu, um_stream stream, const struct um_sim_set *set)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;
	struct um_sim_xfer *x;
	struct um_touch touch;
	struct end at;
	uint64_t bytes, seq;
	int err;

	if (!set || (set->size != 1 && set->size != 2 && set->size != 4) || set->width > UINT64_MAX / 4)
		return UM_CUDA_INVALID_VALUE;
	bytes = set->width * set->size;
	if (!bytes || !set->rows)
		return UM_CUDA_OK;
	if ((uintptr_t)set->at % set->size || (set->rows > 1 && set->pitch % set->size))
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "a fill");
	s = um_sim_stream_of(sim, stream);
	err = s ? sim->error : UM_CUDA_INVALID_HANDLE;
	err = err ? err : end_find(sim, set->at, set->pitch, bytes, set->rows, &at);
	if (!err && !at.mem) /* the device cannot reach it */
		err = UM_CUDA_INVALID_VALUE;
	if (err)
		return um_sim_leave(sim, err);
	x = calloc(1, sizeof *x);
	if (!x)
		return um_sim_leave(sim, UM_CUDA_NO_MEMORY);
	x->copy = (struct um_sim_copy){set->at, NULL, set->pitch, 0, bytes, set->rows};
	x->value = set->value;
	x->size = set->size;
	x->engine = at.on_device ? -1 : UM_SIM_D2H;
	x->real = at.real;
	x->to_ours = 1;
	touch = (struct um_touch){set->at, at.bytes, bytes * set->rows, UM_WRITE};
	err = push(sim, s, x, &touch, at.mem->kind == UM_SIM_MANAGED, &seq);
	return um_sim_leave(sim, err);
}

/* Fills the first element, then doubles the filled part. */
static void fill(const struct um_sim_xfer *x)
{
	const uint16_t half = (uint16_t)x->value;
	const uint64_t bytes = x->copy.bytes;

	for (uint64_t i = 0; i < x->copy.rows && bytes; i++) {
		char *row = (char *)x->copy.to + i * x->copy.to_pitch;

		if (x->size == 1) {
			memset(row, (int)x->value, bytes);
			continue;
		}
		memcpy(row, x->size == 2 ? (const void *)&half : (const void *)&x->value, x->size);
		for (uint64_t n = x->size; n < bytes; n *= 2)
			memcpy(row + n, row, n < bytes - n ? n : bytes - n);
	}
}

/* Has the program freed an end of the copy? */
static int lost(struct um_sim *sim, const struct um_sim_xfer *x)
{
	return (x->to_ours && !um_sim_mem_any(&sim, (uint64_t)(uintptr_t)x->copy.to)) ||
	       (x->from_ours && !um_sim_mem_any(&sim, (uint64_t)(uintptr_t)x->copy.from));
}

static uint64_t at_rate(uint64_t bytes, double rate)
{
	return rate > 0 ? (uint64_t)((double)bytes * 1e9 / rate + 0.5) : 0;
}

/* The device of an end: managed memory is read and written by the one that copies. */
static struct um_sim *device_of(struct um_sim *sim, const void *ptr)
{
	struct um_sim *of = sim;

	if (!um_sim_mem_find(sim, (uint64_t)(uintptr_t)ptr))
		um_sim_mem_any(&of, (uint64_t)(uintptr_t)ptr);
	return of;
}

/* One half of a copy: over the link of the device at that end. Returns its end. */
static uint64_t over_link(struct um_sim *sim, const struct um_sim_xfer *x, enum um_sim_engine_id id, uint64_t t)
{
	struct um_sim *of = device_of(sim, id == UM_SIM_H2D ? x->copy.to : x->copy.from);
	uint64_t bytes = x->copy.bytes * x->copy.rows;
	uint64_t work = at_rate(bytes, id == UM_SIM_H2D ? of->profile.h2d : of->profile.d2h);

	*(id == UM_SIM_H2D ? &of->tally.copied_h2d : &of->tally.copied_d2h) += bytes;
	return um_sim_engine_book(of, id, t, of->profile.o_seg + work * (x->staged ? STAGED : 1));
}

uint64_t um_sim_xfer_run(struct um_sim *sim, const struct um_sim_xfer *x, uint64_t t, uint64_t remote_ns)
{
	const struct um_profile *p = &sim->profile;
	uint64_t bytes = x->copy.bytes * x->copy.rows, work = p->o_seg, end;

	if (lost(sim, x)) {
		um_sim_log(sim, t, "illegal-address");
		sim->error = UM_CUDA_ILLEGAL_ADDRESS;
		return t;
	}
	sim->node->follow_ran |= x->real;
	if (x->real && x->size)
		fill(x);
	else if (x->real)
		rows_copy(x->copy.to, x->copy.to_pitch, x->copy.from, x->copy.from_pitch, x->copy.bytes, x->copy.rows);
	um_sim_log(sim, t, "%s %s %llu", x->size ? "fill" : "copy",
		   x->peer		     ? "peer"
		   : x->engine == UM_SIM_H2D ? "h2d"
		   : x->engine == UM_SIM_D2H ? "d2h"
		   : x->host		     ? "h2h"
					     : "d2d",
		   (unsigned long long)bytes);
	if (x->engine < 0) {
		work += x->host ? at_rate(bytes, p->h2d) : at_rate(x->size ? bytes : 2 * bytes, p->mem_bandwidth);
		return t + um_sim_later(work, remote_ns);
	}
	end = over_link(sim, x, (enum um_sim_engine_id)x->engine, t);
	if (x->peer) /* both halves at once, piece by piece */
		end = um_sim_later(end, over_link(sim, x, UM_SIM_D2H, t));
	return um_sim_later(end, t + remote_ns);
}

void um_sim_xfer_watch(struct um_sim *sim, const struct um_sim_stream *s, const struct um_sim_xfer *x,
		       uint64_t correlation, uint64_t begin, uint64_t end)
{
	enum um_activity_dir dir = x->engine == UM_SIM_H2D   ? UM_DIR_H2D
				   : x->engine == UM_SIM_D2H ? UM_DIR_D2H
				   : x->host		     ? UM_DIR_OTHER
							     : UM_DIR_D2D;

	um_sim_watch_copy(sim, s, x->size ? UM_ACT_FILL : UM_ACT_COPY, dir, x->copy.bytes * x->copy.rows, correlation,
			  begin, end);
}
