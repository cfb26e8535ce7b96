/* SPDX-License-Identifier: Apache-2.0
 *
 * mode_plain.h - plain managed memory on a card of `budget` bytes, on one that has much more
 *
 * Nothing may be oversubscribed on a real GPU, so what the driver would have evicted is evicted by hand: before an
 * operation, blocks of 2 MiB that it will fault in are given room by prefetching others to the host, in the driver's
 * order, which is that of their last service and not of their last use (doc/simulator.md). The operation then faults
 * on what is missing. What this leaves out: a driver evicts while it serves faults, this does it before the operation;
 * so an operation's own blocks are spared where others are left.
 *
 * mode_on_use: the same card, and the tensors of each operation are prefetched just before it, as programs do that
 * know no more than that. A prefetch is a service: what was used last is then evicted last.
 */
#ifndef MODE_PLAIN_H
#define MODE_PLAIN_H

#include "mode.h"

#include <list>

struct mode_plain : mode {
	struct block {
		int tensor;
		int64_t at; /* address / 2 MiB */
		bool operator<(const struct block &b) const
		{
			return tensor != b.tensor ? tensor < b.tensor : at < b.at;
		}
	};
	std::list<struct block> order; /* resident; the first was served longest ago */
	std::map<struct block, std::list<struct block>::iterator> resident;

	void open() override
	{
		for (struct tensor &t : w->tensors)
			check_cuda(cudaMallocManaged(&t.at, t.bytes), "cudaMallocManaged");
	}
	void close() override
	{
		for (struct tensor &t : w->tensors)
			check_cuda(cudaFree(t.at), "cudaFree");
		order.clear();
		resident.clear();
	}
	void sample(int tensor, void *to, size_t bytes) override
	{
		memcpy(to, w->tensors[tensor].at, bytes);
	}

	/* Blocks `from` up to and without `to` of a tensor go home. */
	void send_home(int tensor, int64_t from, int64_t to)
	{
		uint64_t start = (uint64_t)w->tensors[tensor].at, end = start + w->tensors[tensor].bytes;

		start = std::max(start, (uint64_t)from << 21);
		end = std::min(end, (uint64_t)to << 21);
		prefetch((void *)start, end - start, true);
	}

	void prefetch(void *at, uint64_t bytes, bool home)
	{
#if CUDART_VERSION >= 13000
		struct cudaMemLocation where = {home ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, 0};

		check_cuda(cudaMemPrefetchAsync(at, bytes, where, 0, stream), "cudaMemPrefetchAsync");
#else
		check_cuda(cudaMemPrefetchAsync(at, bytes, home ? cudaCpuDeviceId : 0, stream), "cudaMemPrefetchAsync");
#endif
	}

	/* Room for `blocks` more: neighbours leave in one call. */
	void evict(size_t blocks, const struct op &o)
	{
		struct block first = {-1, 0}, last = {-1, 0};
		size_t capacity = budget >> 21;

		while (resident.size() + blocks > capacity && !order.empty()) {
			auto victim = std::find_if(order.begin(), order.end(), [&](const struct block &b) {
				return std::none_of(o.uses.begin(), o.uses.end(),
						    [&](const struct use &u) { return u.tensor == b.tensor; });
			});

			if (victim == order.end())
				victim = order.begin();
			if (victim->tensor != last.tensor || victim->at != last.at + 1) {
				if (last.tensor >= 0)
					send_home(first.tensor, first.at, last.at + 1);
				first = *victim;
			}
			last = *victim;
			resident.erase(*victim);
			order.erase(victim);
		}
		if (last.tensor >= 0)
			send_home(first.tensor, first.at, last.at + 1);
	}

	/* The operation's blocks that are not there; what is there is served again where `touch`. */
	std::vector<struct block> missing_of(const struct op &o, bool touch)
	{
		std::vector<struct block> missing;

		for (const struct use &u : o.uses) {
			const struct tensor &t = w->tensors[u.tensor];
			int64_t to = mode_block((uint64_t)t.at + t.bytes - 1);

			for (int64_t at = mode_block((uint64_t)t.at); at <= to; at++)
				if (!resident.count({u.tensor, at}))
					missing.push_back({u.tensor, at});
				else if (touch)
					order.splice(order.end(), order, resident[{u.tensor, at}]);
		}
		return missing;
	}

	void make_room(const struct op &o, bool touch)
	{
		std::vector<struct block> missing = missing_of(o, touch);

		if (!missing.empty())
			evict(missing.size(), o);
		for (const struct block &b : missing)
			resident[b] = order.insert(order.end(), b);
	}

	void run(const struct op &o) override
	{
		make_room(o, false);
		mode_announce(*this, o);
		o.launch(*w, stream);
	}
};

struct mode_on_use : mode_plain {
	void run(const struct op &o) override
	{
		make_room(o, true);
		for (const struct use &u : o.uses)
			prefetch(w->tensors[u.tensor].at, w->tensors[u.tensor].bytes, false);
		mode_announce(*this, o);
		o.launch(*w, stream);
	}
};

#endif
