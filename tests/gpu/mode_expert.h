/* SPDX-License-Identifier: Apache-2.0
 *
 * mode_expert.h - offloading as an expert writes it by hand: device memory, pinned buffers, two copy streams
 *
 * The sequence of operations is known in advance. A tensor that is missing is copied in from its pinned buffer, as soon
 * as the tensor that gives its place has been used for the last time and, where it was changed, saved; the one that is
 * used again the latest gives place. What the last operations used is spared, so that copies run beside them. What will
 * be overwritten before it is read is never copied.
 */
#ifndef MODE_EXPERT_H
#define MODE_EXPERT_H

#include "mode.h"

enum { SPARE = 2 }; /* operations before the current one whose tensors stay */

struct mode_expert : mode {
	struct place {
		int64_t offset = -1; /* in the arena; -1: not on the device */
		void *host = NULL;
		bool dirty = false;
		cudaEvent_t used = NULL, saved = NULL; /* last operation; last copy to the host */
		std::vector<long> position; /* of its uses in the sequence */
		std::vector<bool> overwritten; /* that use writes the whole and reads nothing */
	};
	struct vacated {
		int64_t from, to;
		cudaEvent_t when;
	};
	std::vector<struct place> place;
	std::vector<const struct op *> sequence; /* set before open(): all that will be run, and an iteration more */
	long end = 0; /* likewise: number of those that will be run */
	std::vector<struct vacated> vacated;
	std::vector<cudaEvent_t> events;
	cudaStream_t in = NULL, out = NULL;
	char *arena = NULL;
	long now = 0;

	/* Each operation's tensors have places as wholes. */
	static bool can(const struct work &w, uint64_t budget)
	{
		uint64_t most = 0;

		for (const std::vector<struct op> &step : w.step)
			for (const struct op &o : step) {
				uint64_t sum = 0;

				for (const struct use &u : o.uses)
					sum += w.tensors[u.tensor].bytes + 512;
				most = std::max(most, sum);
			}
		return most <= budget;
	}

	void open() override
	{
		place.assign(w->tensors.size(), {});
		check_cuda(cudaMalloc((void **)&arena, budget), "cudaMalloc");
		check_cuda(cudaStreamCreateWithFlags(&in, cudaStreamNonBlocking), "stream");
		check_cuda(cudaStreamCreateWithFlags(&out, cudaStreamNonBlocking), "stream");
		for (size_t t = 0; t < place.size(); t++)
			check_cuda(cudaHostAlloc(&place[t].host, w->tensors[t].bytes, 0), "cudaHostAlloc");
		for (size_t i = 0; i < sequence.size(); i++)
			for (const struct use &u : sequence[i]->uses) {
				place[u.tensor].position.push_back((long)i);
				place[u.tensor].overwritten.push_back(u.access == W);
			}
		now = 0;
	}
	void close() override
	{
		for (struct place &p : place)
			check_cuda(cudaFreeHost(p.host), "cudaFreeHost");
		for (cudaEvent_t e : events)
			check_cuda(cudaEventDestroy(e), "event");
		check_cuda(cudaStreamDestroy(in), "stream");
		check_cuda(cudaStreamDestroy(out), "stream");
		check_cuda(cudaFree(arena), "cudaFree");
		events.clear();
		vacated.clear();
	}
	void sample(int tensor, void *to, size_t bytes) override
	{
		const struct place &p = place[tensor];

		check_cuda(cudaMemcpy(to, p.offset < 0 ? p.host : arena + p.offset, bytes, cudaMemcpyDefault), "copy");
	}

	cudaEvent_t record(cudaStream_t s)
	{
		cudaEvent_t e;

		check_cuda(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "event");
		check_cuda(cudaEventRecord(e, s), "record");
		events.push_back(e);
		return e;
	}
	static void wait(cudaStream_t s, cudaEvent_t e)
	{
		if (e)
			check_cuda(cudaStreamWaitEvent(s, e, 0), "wait");
	}

	/* Which of its uses comes next: an index into `position`. */
	static size_t next_use(const struct place &p, long from)
	{
		return std::lower_bound(p.position.begin(), p.position.end(), from) - p.position.begin();
	}
	long next_position(int tensor) const
	{
		size_t i = next_use(place[tensor], now);

		return i < place[tensor].position.size() ? place[tensor].position[i] : (long)sequence.size();
	}
	bool used_since(int tensor, long from) const
	{
		size_t i = next_use(place[tensor], from);

		return i < place[tensor].position.size() && place[tensor].position[i] <= now;
	}
	/* The next op that uses the tensor overwrites it. After the last op that is run, the content is a result. */
	bool dead(int tensor) const
	{
		size_t i = next_use(place[tensor], now);

		return i < place[tensor].position.size() && place[tensor].position[i] < end &&
		       place[tensor].overwritten[i];
	}

	void evict(int tensor)
	{
		struct place *p = &place[tensor];
		struct vacated v = {p->offset, p->offset + (int64_t)w->tensors[tensor].bytes, p->used};

		if (p->dirty && !dead(tensor)) {
			wait(out, p->used);
			check_cuda(cudaMemcpyAsync(p->host, arena + p->offset, w->tensors[tensor].bytes,
						   cudaMemcpyDeviceToHost, out),
				   "copy out");
			v.when = p->saved = record(out);
		}
		p->offset = -1;
		p->dirty = false;
		vacated.push_back(v);
	}

	/* The lowest gap of that size, or -1. */
	int64_t gap(uint64_t bytes) const
	{
		std::map<int64_t, int64_t> taken;
		int64_t at = 0, need = (int64_t)bytes;

		for (size_t t = 0; t < place.size(); t++)
			if (place[t].offset >= 0)
				taken[place[t].offset] =
					place[t].offset + (int64_t)((w->tensors[t].bytes + 511) & ~511ull);
		for (const auto &range : taken) {
			if (range.first - at >= need)
				return at;
			at = range.second;
		}
		return (int64_t)budget - at >= need ? at : -1;
	}

	/* The tensor that gives its place: used the latest from now. First without, then with those of late; never one
	 * of the current operation. */
	int victim() const
	{
		for (long spared = SPARE; spared >= 0; spared--) {
			int best = -1;

			for (size_t t = 0; t < place.size(); t++)
				if (place[t].offset >= 0 && !used_since((int)t, now - spared) &&
				    (best < 0 || next_position((int)t) > next_position(best)))
					best = (int)t;
			if (best >= 0)
				return best;
		}
		fprintf(stderr, "expert: an operation needs more than the budget\n");
		exit(1);
	}

	void bring(int tensor, bool content)
	{
		uint64_t bytes = w->tensors[tensor].bytes;
		struct place *p = &place[tensor];
		cudaStream_t first = content ? in : stream;
		int64_t at;

		while ((at = gap(bytes)) < 0)
			evict(victim());
		for (const struct vacated &v : vacated)
			if (v.from < at + (int64_t)bytes && at < v.to)
				wait(first, v.when);
		vacated.erase(std::remove_if(vacated.begin(), vacated.end(),
					     [&](const struct vacated &v) {
						     return at <= v.from && v.to <= at + (int64_t)bytes;
					     }),
			      vacated.end());
		p->offset = at;
		if (!content)
			return;
		wait(in, p->saved);
		check_cuda(cudaMemcpyAsync(arena + at, p->host, bytes, cudaMemcpyHostToDevice, in), "copy in");
		wait(stream, record(in));
	}

	void run(const struct op &o) override
	{
		cudaEvent_t done;

		for (const struct use &u : o.uses) {
			if (place[u.tensor].offset < 0)
				bring(u.tensor, u.access != W);
			w->tensors[u.tensor].at = arena + place[u.tensor].offset;
		}
		mode_announce(*this, o);
		o.launch(*w, stream);
		done = record(stream);
		for (const struct use &u : o.uses) {
			place[u.tensor].used = done;
			place[u.tensor].dirty |= u.access != R;
		}
		now++;
	}
};

#endif
