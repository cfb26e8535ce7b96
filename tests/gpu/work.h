/* SPDX-License-Identifier: Apache-2.0
 *
 * work.h - a workload as a value: its tensors, and its operations with what they read and write
 *
 * Who runs one (run.h, speed.cu) decides where tensors lie and what is said before an operation, so the same operations
 * run on plain managed memory, with the library, by hand-written offloading and in core. An operation finds its
 * addresses at launch time. Tensors are used as wholes or looked up in; work that is cut up has a tensor for each
 * piece.
 */
#ifndef WORK_H
#define WORK_H

#include "launch.h"

#include <algorithm>
#include <functional>
#include <stdint.h>
#include <string>
#include <vector>

struct tensor {
	std::string name;
	uint64_t bytes;
	enum umadv_role role;
	bool transient; /* its content counts for nothing between iterations */
	void *at;
};

struct use {
	int tensor;
	unsigned access; /* enum umadv_access */
	uint64_t touched = 0; /* bytes, scattered over the tensor; 0: all */
};

struct work;

struct op {
	std::string name;
	std::vector<use> uses;
	double flops;
	std::function<void(const struct work &, stream_t)> launch;
};

struct work {
	std::string name;
	std::vector<struct tensor> tensors;
	std::vector<struct op> setup, step[2]; /* iterations go by turns */

	int add(const std::string &tensor_name, uint64_t bytes, enum umadv_role role, bool transient = false)
	{
		tensors.push_back({tensor_name, bytes, role, transient, NULL});
		return (int)tensors.size() - 1;
	}
	template <typename T> T *at(int t) const
	{
		return (T *)tensors[t].at;
	}
	uint64_t bytes() const
	{
		uint64_t sum = 0;

		for (const struct tensor &t : tensors)
			sum += t.bytes;
		return sum;
	}
	uint64_t bytes_of(const struct op &o) const
	{
		uint64_t sum = 0;

		for (const struct use &u : o.uses)
			sum += u.touched ? u.touched : tensors[u.tensor].bytes;
		return sum;
	}
	/* What one operation of an iteration may need, in blocks of 2 MiB: a tensor may begin and end within one. */
	uint64_t largest() const
	{
		uint64_t most = 0;

		for (const std::vector<struct op> &list : step)
			for (const struct op &o : list)
				most = std::max<uint64_t>(most, bytes_of(o) + o.uses.size() * (2u << 20));
		return most;
	}
};

enum { R = UMADV_ACCESS_READ, W = UMADV_ACCESS_WRITE, RW = UMADV_ACCESS_UPDATE };

/* Numbers that look like chance; the same everywhere. */
struct fill_body {
	float *x;
	float scale;
	unsigned seed;

	BODY void operator()(long i) const
	{
		unsigned h = (unsigned)i * 2654435761u + seed;

		h = (h ^ h >> 15) * 2246822519u;
		h = (h ^ h >> 13) * 3266489917u;
		x[i] = ((float)(h >> 8) / 16777216.0f - 0.5f) * scale;
	}
};

static inline void work_fill(struct work *w, int t, float scale)
{
	w->setup.push_back({"fill", {{t, W}}, 0, [=](const struct work &k, stream_t s) {
				    each(s, (long)(k.tensors[t].bytes / sizeof(float)),
					 (struct fill_body){k.at<float>(t), scale, 7u + t});
			    }});
}

#endif
