/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h - runs a workload's operations, with the library or on plain managed memory, and keeps its result
 */
#ifndef RUN_H
#define RUN_H

#include "work.h"

struct runner {
	struct work *w;
	struct umadv *adv; /* NULL: plain managed memory, the driver alone */
	stream_t stream;
};

static inline void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, umadv_strerror(err));
	exit(1);
}

static inline struct umadv *run_open(enum umadv_device device, uint64_t budget, const char *strategy, const char *trace)
{
	struct umadv_options options;
	struct umadv *adv;

	umadv_options_init(&options);
	options.device = device;
	options.budget = budget;
	options.strategy = strategy;
	if (trace)
		options.trace = trace;
	must(umadv_open(&adv, &options), "umadv_open");
	return adv;
}

static inline void run_place(struct runner *r)
{
	for (struct tensor &t : r->w->tensors) {
		if (r->adv) {
			must(umadv_alloc(r->adv, &t.at, t.bytes, t.name.c_str(), t.role), t.name.c_str());
			if (t.transient)
				must(umadv_transient(r->adv, t.at), t.name.c_str());
			continue;
		}
#ifdef __CUDACC__
		check_cuda(cudaMallocManaged(&t.at, t.bytes), t.name.c_str());
#else
		abort();
#endif
	}
}

static inline void run_free(struct runner *r)
{
	for (struct tensor &t : r->w->tensors) {
		if (r->adv)
			must(umadv_free(r->adv, t.at), t.name.c_str());
#ifdef __CUDACC__
		else
			check_cuda(cudaFree(t.at), t.name.c_str());
#endif
		t.at = NULL;
	}
}

/* Says what the operation uses. `ns`: its time where it is known, else 0. */
static inline void run_say(const struct runner *r, const struct op &o, uint64_t ns)
{
	struct umadv_op_info info = {};
	struct umadv_use uses[16];
	size_t n = 0;

	if (!r->adv)
		return;
	for (const struct use &u : o.uses)
		uses[n++] = umadv_use_(r->w->tensors[u.tensor].at, r->w->tensors[u.tensor].bytes, u.touched, u.access);
	info.struct_size = sizeof(info);
	info.uses = uses;
	info.n_uses = n;
	info.flops = o.flops;
	info.bytes = (double)r->w->bytes_of(o);
	info.ns = ns;
	must(umadv_op_ex(r->adv, (void *)r->stream, o.name.c_str(), &info), o.name.c_str());
}

static inline void run_op(const struct runner *r, const struct op &o)
{
	run_say(r, o, 0);
	o.launch(*r->w, r->stream);
}

static inline void run_list(const struct runner *r, const std::vector<struct op> &list)
{
	for (const struct op &o : list)
		run_op(r, o);
}

static inline void run_iteration(const struct runner *r, int k)
{
	if (r->adv)
		must(umadv_iter(r->adv, NULL), "umadv_iter");
	run_list(r, r->w->step[k % 2]);
}

/* Setup, then iterations; not waited for. */
static inline void run_all(const struct runner *r, int iterations)
{
	run_list(r, r->w->setup);
	for (int k = 0; k < iterations; k++)
		run_iteration(r, k);
}

/* What counts at the end, as bytes. Everything must have finished. */
static inline std::vector<std::string> run_result(const struct runner *r)
{
	std::vector<std::string> out;

	for (const struct tensor &t : r->w->tensors)
		if (!t.transient)
			out.push_back(std::string((const char *)t.at, t.bytes));
	return out;
}

static inline uint64_t run_checksum(const struct runner *r)
{
	uint64_t sum = 14695981039346656037ull;

	for (const struct tensor &t : r->w->tensors)
		for (uint64_t i = 0; !t.transient && i < t.bytes / 4; i++)
			sum = (sum ^ ((const uint32_t *)t.at)[i]) * 1099511628211ull;
	return sum;
}

#endif
