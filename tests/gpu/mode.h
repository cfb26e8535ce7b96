/* SPDX-License-Identifier: Apache-2.0
 *
 * mode.h - one way to run a workload whose data exceed a budget, as speed.cu compares them
 *
 * in    the workload, the budget, the sequence of operations as it comes
 * out   work on `stream`, with the tensors' addresses where operations find them
 *
 * Under the stand-in driver kernels take the time that the library would announce, in every mode.
 */
#ifndef MODE_H
#define MODE_H

#include "run.h"
#include "standin_seen.h"

#include <algorithm>
#include <map>

struct mode {
	struct work *w = NULL;
	uint64_t budget = 0;
	cudaStream_t stream = NULL;

	virtual ~mode()
	{
	}
	virtual void open() = 0;
	virtual void iterate()
	{
	} /* an iteration begins */
	virtual void run(const struct op &o) = 0;
	virtual void sample(int tensor, void *to, size_t bytes) = 0; /* the tensor's first bytes; all is finished */
	virtual void close() = 0;
	virtual struct umadv *advisor()
	{
		return NULL;
	}
};

static inline int64_t mode_block(uint64_t address)
{
	return (int64_t)(address >> 21);
}

/* Tells a simulated device what is launched next, where nothing else does. */
static inline void mode_announce(const struct mode &m, const struct op &o)
{
	static const struct um_standin_table *table = standin_table();
	struct um_announcement next = {};
	struct um_touch touch[16] = {};
	struct um_cost cost = {};

	if (!table)
		return;
	for (const struct use &u : o.uses) {
		struct um_touch *t = &touch[next.n++];

		t->ptr = m.w->tensors[u.tensor].at;
		t->bytes = m.w->tensors[u.tensor].bytes;
		t->touched = u.touched;
		t->access = u.access;
	}
	cost.flops = o.flops;
	cost.bytes = (double)m.w->bytes_of(o);
	next.touch = touch;
	next.ns = um_profile_op_ns(table->profile(), &cost, 0);
	check_cuda((cudaError_t)table->announce((um_stream)m.stream, &next), "announce");
}

/* --- everything fits: memory of the device's own ----------------------------------------------------------------- */

struct mode_core : mode {
	void open() override
	{
		for (struct tensor &t : w->tensors)
			check_cuda(cudaMalloc(&t.at, t.bytes), "cudaMalloc");
	}
	void run(const struct op &o) override
	{
		mode_announce(*this, o);
		o.launch(*w, stream);
	}
	void sample(int tensor, void *to, size_t bytes) override
	{
		check_cuda(cudaMemcpy(to, w->tensors[tensor].at, bytes, cudaMemcpyDefault), "cudaMemcpy");
	}
	void close() override
	{
		for (struct tensor &t : w->tensors)
			check_cuda(cudaFree(t.at), "cudaFree");
	}
};

/* --- the library -------------------------------------------------------------------------------------------------- */

struct mode_advised : mode {
	std::string strategy, trace;
	struct runner r = {};

	mode_advised(const char *strategy) : strategy(strategy)
	{
	}
	void open() override
	{
		r.w = w;
		r.stream = stream;
		r.adv = run_open(UMADV_DEVICE_AUTO, budget, strategy.c_str(), trace.empty() ? NULL : trace.c_str());
		run_place(&r);
	}
	void iterate() override
	{
		must(umadv_iter(r.adv, NULL), "umadv_iter");
	}
	void run(const struct op &o) override
	{
		run_op(&r, o);
	}
	void sample(int tensor, void *to, size_t bytes) override
	{
		memcpy(to, w->tensors[tensor].at, bytes);
	}
	void close() override
	{
		run_free(&r);
		umadv_close(r.adv);
	}
	struct umadv *advisor() override
	{
		return r.adv;
	}
};

#endif
