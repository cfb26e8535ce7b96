/* SPDX-License-Identifier: Apache-2.0
 *
 * speed.cu - five ways to run a workload that needs more than a budget, side by side
 *
 *     speed --work vector|stencil|cg|train|table|product [--size MIB] [--ratio 1.5] [--rounds 3] [--iterations 8] [--out FILE]
 *           [--trace FILE] [--only MODE] [--check]
 *
 * In every round each mode runs once, from allocation to free, the order rotating; a mode's figures are over the
 * steady iterations of all rounds, timed by events on the stream. --out appends a line of JSON for each mode. --trace
 * records one more run of the library, not timed, to be simulated. --check: kernels compute under the stand-in
 * driver, too, so that all modes can be seen to come to the same numbers.
 */
#include "ask.h"
#include "mode_expert.h"
#include "mode_plain.h"
#include "work_cg.h"
#include "work_product.h"
#include "work_stencil.h"
#include "work_table.h"
#include "work_train.h"
#include "work_vector.h"

#include <memory>

enum { WARM = 4 }; /* iterations before those that count: learning, planning, filling */

struct settings {
	std::string work = "vector", out, trace, only;
	long mib = 64;
	double ratio = 1.5;
	int rounds = 3, iterations = 8;
	bool check = false;
};

struct figures {
	std::string mode;
	std::vector<double> ms;
	double faults = -1; /* of an iteration; -1: not counted */
	uint64_t sample = 0; /* of what came out */
	struct umadv_stats stats = {};
};

static struct work make(const struct settings &s)
{
	double bytes = (double)s.mib * (1 << 20);
	long side;

	if (s.work == "stencil") {
		for (side = 64; 3.0 * 16 * side / 16 * side * side * 4 < bytes; side += 16)
			;
		return work_stencil(16, side / 16, side);
	}
	if (s.work == "cg") {
		for (side = 32; 116.0 * side * side * side < bytes; side += 16)
			;
		return work_cg(16, side);
	}
	if (s.work == "train") {
		/* As wide as a transformer's layers are, where the size allows twelve of them. */
		for (side = 4096; side > 256 && 12.0 * 4 * side * side * 4 > bytes; side -= 256)
			;
		return work_train((int)std::max(2.0, bytes / (4.0 * (double)side * (double)side * 4)), side, side / 2);
	}
	if (s.work == "table")
		return work_table((s.mib << 20) * 3 / 8 / TABLE_ROW / 4, 8, (s.mib << 20) / 128);
	if (s.work == "product")
		return work_product(256 << 10, (s.mib << 20) / 5 * 3 / (256 << 10) / 4, 8, (s.mib << 20) / 80);
	return work_vector(24, (long)(bytes / 24 / sizeof(float)));
}

static uint64_t sample(struct mode *m)
{
	std::vector<uint32_t> words((64 << 10) / 4);
	uint64_t sum = 14695981039346656037ull;

	for (size_t t = 0; t < m->w->tensors.size(); t++) {
		size_t bytes = std::min<uint64_t>(m->w->tensors[t].bytes, words.size() * 4);

		if (m->w->tensors[t].transient)
			continue;
		m->sample((int)t, words.data(), bytes);
		for (size_t i = 0; i < bytes / 4; i++)
			sum = (sum ^ words[i]) * 1099511628211ull;
	}
	return sum;
}

static double faults_now(void)
{
	static const struct um_standin_table *table = standin_table();
	struct um_tally t = {};

	if (!table)
		return -1;
	table->tally(&t);
	return (double)t.faults;
}

/* One run of one mode. */
static void once(struct mode *m, const struct settings &s, struct figures *f)
{
	int all = WARM + s.iterations;
	std::vector<cudaEvent_t> mark(all + 1);
	double before = -1;

	for (cudaEvent_t &e : mark)
		check_cuda(cudaEventCreate(&e), "event");
	check_cuda(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking), "stream");
	m->open();
	for (const struct op &o : m->w->setup)
		m->run(o);
	check_cuda(cudaStreamSynchronize(m->stream), "set-up"); /* first faults can take seconds */
	for (int k = 0; k < all; k++) {
		if (k == WARM) {
			check_cuda(cudaStreamSynchronize(m->stream), "warm");
			before = faults_now();
		}
		check_cuda(cudaEventRecord(mark[k], m->stream), "mark");
		m->iterate();
		for (const struct op &o : m->w->step[k % 2])
			m->run(o);
	}
	check_cuda(cudaEventRecord(mark[all], m->stream), "mark");
	check_cuda(cudaDeviceSynchronize(), f->mode.c_str());
	for (int k = WARM; k < all; k++) {
		float ms;

		check_cuda(cudaEventElapsedTime(&ms, mark[k], mark[k + 1]), "elapsed");
		f->ms.push_back(ms);
	}
	if (before >= 0)
		f->faults = (faults_now() - before) / s.iterations;
	f->sample = sample(m);
	if (m->advisor()) {
		f->stats.struct_size = sizeof(f->stats);
		must(umadv_stats_get(m->advisor(), &f->stats), "umadv_stats_get");
	}
	m->close();
	check_cuda(cudaStreamDestroy(m->stream), "stream");
	for (cudaEvent_t e : mark)
		check_cuda(cudaEventDestroy(e), "event");
}

static double quantile(std::vector<double> v, double q)
{
	std::sort(v.begin(), v.end());
	return v[(size_t)(q * (double)(v.size() - 1) + 0.5)];
}

static void write_line(FILE *to, const struct settings &s, const struct work &w, uint64_t budget,
		       const struct figures &f)
{
	fprintf(to, "{\"work\": \"%s\", \"bytes\": %llu, \"budget\": %llu, \"ratio\": %g, \"mode\": \"%s\", ",
		s.work.c_str(), (unsigned long long)w.bytes(), (unsigned long long)budget, s.ratio, f.mode.c_str());
	fprintf(to, "\"median_ms\": %.4f, \"min_ms\": %.4f, \"max_ms\": %.4f, \"samples\": %zu, ",
		quantile(f.ms, 0.5), quantile(f.ms, 0), quantile(f.ms, 1), f.ms.size());
	if (f.faults >= 0)
		fprintf(to, "\"faults\": %.1f, ", f.faults);
	if (f.stats.iterations)
		fprintf(to, "\"iterations\": %llu, \"hinted\": %llu, ", (unsigned long long)f.stats.iterations,
			(unsigned long long)f.stats.hinted_iterations);
	fprintf(to, "\"plan_ms\": %.4f, \"hints_refused\": %llu, \"hints_dropped\": %llu, \"sample\": \"%016llx\"}\n",
		(double)f.stats.plan_ns / 1e6, (unsigned long long)f.stats.hints_refused,
		(unsigned long long)f.stats.hints_dropped, (unsigned long long)f.sample);
}

/* All operations that a run consists of, and an iteration more: what comes next is known at the end, too. */
static std::vector<const struct op *> sequence(const struct work &w, int iterations)
{
	std::vector<const struct op *> all;

	for (const struct op &o : w.setup)
		all.push_back(&o);
	for (int k = 0; k <= iterations; k++)
		for (const struct op &o : w.step[k % 2])
			all.push_back(&o);
	return all;
}

static int compare(const struct settings &s)
{
	struct work w = make(s);
	uint64_t budget = (uint64_t)((double)w.bytes() / s.ratio) >> 21 << 21;
	struct mode_core core;
	struct mode_plain plain;
	struct mode_expert expert;
	struct mode_on_use on_use;
	struct mode_advised ours("lookahead");
	std::vector<struct mode *> all = {&core, &plain, &on_use, &ours, &expert};
	const char *const names[] = {"in-core", "plain", "prefetch-on-use", "umadvise", "expert"};
	std::vector<struct figures> figures;
	FILE *to = s.out.empty() ? stdout : fopen(s.out.c_str(), "a");
	int differ = 0;

	if (!to) {
		perror(s.out.c_str());
		return 1;
	}
	ask(w.bytes(), budget);
	if (!expert.can(w, budget))
		all.pop_back();
	figures.resize(all.size());
	expert.sequence = sequence(w, WARM + s.iterations);
	expert.end = (long)sequence(w, WARM + s.iterations - 1).size();
	for (size_t i = 0; i < figures.size(); i++) {
		figures[i].mode = names[i];
		all[i]->w = &w;
		all[i]->budget = budget;
	}
	for (int round = 0; round < s.rounds; round++)
		for (size_t i = 0; i < figures.size(); i++) {
			size_t m = (i + round) % figures.size();

			if (s.only.empty() || s.only == names[m])
				once(all[m], s, &figures[m]);
		}
	for (const struct figures &f : figures) {
		if (f.ms.empty())
			continue;
		write_line(to, s, w, budget, f);
		differ |= s.only.empty() && f.sample != figures[0].sample;
	}
	if (to != stdout)
		fclose(to);
	if (!s.trace.empty()) {
		struct figures unused;

		ours.trace = s.trace;
		once(&ours, s, &unused);
	}
	if (differ)
		fprintf(stderr, "speed: the modes did not come to the same numbers\n");
	return differ;
}

int main(int argc, char **argv)
{
	struct settings s;

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	for (int i = 1; i < argc; i++) {
		std::string arg = argv[i], value = i + 1 < argc ? argv[i + 1] : "";

		if (arg == "--check") {
			s.check = true;
			continue;
		}
		i++;
		if (arg == "--work")
			s.work = value;
		else if (arg == "--out")
			s.out = value;
		else if (arg == "--only")
			s.only = value;
		else if (arg == "--trace")
			s.trace = value;
		else if (arg == "--size" && atol(value.c_str()) > 0)
			s.mib = atol(value.c_str());
		else if (arg == "--ratio" && atof(value.c_str()) > 0)
			s.ratio = atof(value.c_str());
		else if (arg == "--rounds" && atoi(value.c_str()) > 0)
			s.rounds = atoi(value.c_str());
		else if (arg == "--iterations" && atoi(value.c_str()) > 0)
			s.iterations = atoi(value.c_str());
		else {
			fprintf(stderr, "speed: what is `%s %s'?\n", arg.c_str(), value.c_str());
			return 2;
		}
	}
	launch_computes = s.check;
	return compare(s);
}
