/* SPDX-License-Identifier: Apache-2.0
 *
 * correct.cu - with hints and without, the same numbers to the last bit: six workloads under three budgets
 *
 *     correct [--size MIB] [--only WORK] [--expect-refused]
 *
 * The plain run is managed memory and the driver alone, in the same process. --expect-refused: hints are made to fail
 * from outside (UMADVISE_DRYRUN_FAIL), which must change no number and must be counted. What is not a plain loop is in
 * special.cu.
 */
#include "ask.h"
#include "run.h"
#include "tap.h"
#include "work_cg.h"
#include "work_product.h"
#include "work_stencil.h"
#include "work_table.h"
#include "work_train.h"
#include "work_vector.h"

enum { ITERATIONS = 5 };

static uint64_t refused; /* in all runs */

static const double ratios[] = {1.5, 2, 3};

/* About as large as asked for, in MiB. */
static std::vector<struct work> workloads(long mib)
{
	long square = 64, cube = 32, layer = 256;

	while (3 * 8 * 8 * square * square * 4 < mib << 20)
		square += 32;
	while (116 * cube * cube * cube < mib << 20)
		cube += 16;
	while (3 * 8 * layer * layer * 4 < mib << 20)
		layer += 128;
	return {work_vector(16, (mib << 20) / 64), work_stencil(8, 8, square), work_cg(8, cube),
		work_train(8, layer, 4), work_table((mib << 20) * 3 / 8 / TABLE_ROW / 4, 8, (mib << 20) / 128),
		work_product(16 << 10, (mib << 20) / 5 * 3 / (16 << 10) / 4, 8, (mib << 20) / 80)};
}

static std::vector<std::string> plain(struct work *w)
{
	struct runner r = {w, NULL, 0};
	std::vector<std::string> result;

	run_place(&r);
	run_all(&r, ITERATIONS);
	check_cuda(cudaDeviceSynchronize(), "plain");
	result = run_result(&r);
	run_free(&r);
	return result;
}

static void advised(struct work *w, double ratio, const std::vector<std::string> &want, bool expect_refused)
{
	uint64_t budget = (uint64_t)((double)w->bytes() / ratio);
	struct umadv_stats s = {};
	struct umadv_caps caps = {};
	struct runner r = {w, NULL, 0};
	const char *name = w->name.c_str();

	ask(w->bytes(), budget);
	r.adv = run_open(UMADV_DEVICE_AUTO, budget, "lookahead", NULL);
	run_place(&r);
	run_all(&r, ITERATIONS);
	check_cuda(cudaDeviceSynchronize(), name);
	ok(run_result(&r) == want, "%s, 1/%.1f of %llu MiB: the same bits", name, ratio,
	   (unsigned long long)(w->bytes() >> 20));
	s.struct_size = sizeof(s);
	caps.struct_size = sizeof(caps);
	must(umadv_stats_get(r.adv, &s), "umadv_stats_get");
	must(umadv_caps_get(r.adv, &caps), "umadv_caps_get");
	if (!caps.managed)
		diag("%s", caps.why);
	if (w->largest() > budget)
		diag("%s: an operation may need more than that alone", name);
	ok(s.hinted_iterations > 0 || !caps.managed || expect_refused, "%s: hints were given (%llu, %llu refused)", name,
	   (unsigned long long)s.hints_issued, (unsigned long long)s.hints_refused);
	refused += s.hints_refused + s.errors;
	if (!expect_refused)
		is_u64(s.hints_refused, 0, "%s: none was refused", name);
	ok(s.plan_peak_bytes <= budget, "%s: the plan keeps to the budget", name);
	is_int(cudaPeekAtLastError(), cudaSuccess, "%s: no error was left behind", name);
	run_free(&r);
	umadv_close(r.adv);
}

int main(int argc, char **argv)
{
	bool expect_refused = false;
	std::string only;
	long mib = 48;

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--expect-refused"))
			expect_refused = true;
		else if (!strcmp(argv[i], "--size") && i + 1 < argc && atol(argv[i + 1]) > 0)
			mib = atol(argv[++i]);
		else if (!strcmp(argv[i], "--only") && i + 1 < argc)
			only = argv[++i];
		else
			return 2;
	for (struct work &w : workloads(mib)) {
		std::vector<std::string> want;

		if (!only.empty() && w.name != only)
			continue;
		ask(w.bytes(), w.bytes());
		want = plain(&w);
		for (double ratio : ratios)
			advised(&w, ratio, want, expect_refused);
	}
	if (expect_refused)
		ok(refused > 0, "what failed was counted: %llu", (unsigned long long)refused);
	return tap_done();
}
