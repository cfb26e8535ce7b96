/* SPDX-License-Identifier: Apache-2.0
 *
 * advice_state.c - gives and withdraws memory advice
 */
#include "replay/advice_state.h"

static int call(struct um_advice_state *m, struct um_gpu *gpu, const struct um_compiled_plan_run *r, int advice,
		struct um_location where)
{
	int code = UM_CUDA_NOT_SUPPORTED;

	if (gpu->api->cudaMemAdvise)
		code = gpu->api->cudaMemAdvise(gpu, (void *)(uintptr_t)r->addr, r->bytes, advice, where);
	m->refused += code != UM_CUDA_OK;
	return code;
}

static int set(struct um_advice_state *m, struct um_gpu *gpu, const struct um_compiled_plan_run *r)
{
	struct um_location here = um_on_device(gpu->caps.device);
	int code;

	if (!m->host_resident)
		return call(m, gpu, r, UM_ADV_SET_READ_MOSTLY, here);
	code = call(m, gpu, r, UM_ADV_SET_PREFERRED, um_on_host());
	return code ? code : call(m, gpu, r, UM_ADV_SET_ACCESSED_BY, here);
}

/* Unsetting "accessed by" keeps the mappings; they are removed when the device becomes the preferred location. */
static void unset(struct um_advice_state *m, struct um_gpu *gpu, const struct um_compiled_plan_run *r)
{
	struct um_location here = um_on_device(gpu->caps.device);

	if (!m->host_resident) {
		call(m, gpu, r, UM_ADV_UNSET_READ_MOSTLY, here);
		return;
	}
	call(m, gpu, r, UM_ADV_UNSET_ACCESSED_BY, here);
	call(m, gpu, r, UM_ADV_SET_PREFERRED, here);
	call(m, gpu, r, UM_ADV_UNSET_PREFERRED, here);
}

/* The first run that ends after `addr`. */
static size_t run_after(const struct um_compiled_plan_run *at, size_t n, uint64_t addr)
{
	size_t lo = 0;

	while (lo < n) {
		size_t mid = lo + (n - lo) / 2;

		if (at[mid].addr + at[mid].bytes <= addr)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

static int is_among(const struct um_compiled_plan_run *at, size_t n, const struct um_compiled_plan_run *run)
{
	size_t i = run_after(at, n, run->addr);

	return i < n && at[i].addr == run->addr && at[i].bytes == run->bytes;
}

/* Removes [addr, end) from run `i`, which leaves no run, one, or two if there is room for another. `*gone`: what was
 * removed. Returns the number of remaining runs. */
static size_t cut(struct um_advice_runs *runs, size_t i, uint64_t addr, uint64_t end, struct um_compiled_plan_run *gone)
{
	struct um_compiled_plan_run *r = &runs->at[i], was = *r;
	uint64_t lo = addr > was.addr ? addr : was.addr, hi = end < was.addr + was.bytes ? end : was.addr + was.bytes;
	int before = lo > was.addr, behind = hi < was.addr + was.bytes;
	size_t left;

	if (before && behind && um_vec_reserve(runs, 1)) {
		lo = was.addr;
		hi = was.addr + was.bytes;
		before = behind = 0;
	}
	*gone = (struct um_compiled_plan_run){lo, hi - lo};
	left = (size_t)(before + behind);
	r = &runs->at[i];
	memmove(r + left, r + 1, (runs->n - i - 1) * sizeof *r);
	runs->n = runs->n - 1 + left;
	if (before)
		*r++ = (struct um_compiled_plan_run){was.addr, lo - was.addr};
	if (behind)
		*r = (struct um_compiled_plan_run){hi, was.addr + was.bytes - hi};
	return left;
}

/* Removes a range from runs that are still to be withdrawn, and withdraws the advice for it if a GPU is given. */
static void cut_ended(struct um_advice_state *m, struct um_advice_runs *runs, struct um_gpu *gpu, uint64_t addr,
		      uint64_t end)
{
	struct um_compiled_plan_run gone;

	for (size_t i = 0; i < runs->n;) {
		if (runs->at[i].addr >= end || runs->at[i].addr + runs->at[i].bytes <= addr) {
			i++;
			continue;
		}
		i += cut(runs, i, addr, end, &gone);
		if (gpu)
			unset(m, gpu, &gone);
	}
}

/* The run is to be advised: what has ended there is not withdrawn any more. */
static int renew(struct um_advice_state *m, struct um_gpu *gpu, const struct um_compiled_plan_run *run)
{
	cut_ended(m, &m->ending, NULL, run->addr, run->addr + run->bytes);
	cut_ended(m, &m->due, NULL, run->addr, run->addr + run->bytes);
	return set(m, gpu, run);
}

static void end_run(struct um_advice_state *m, struct um_gpu *gpu, const struct um_compiled_plan_run *run)
{
	if (!m->host_resident || um_vec_push(&m->ending, *run))
		unset(m, gpu, run);
}

int um_advice_state_set(struct um_advice_state *m, struct um_gpu *gpu, const struct um_compiled_plan_run *runs,
			size_t n)
{
	struct um_advice_runs next = {0}, ended = {0};
	int err = um_vec_reserve(&next, n) || um_vec_reserve(&ended, m->runs.n) ? -ENOMEM : 0;

	for (size_t i = 0; i < m->runs.n; i++) {
		if (!err && is_among(runs, n, &m->runs.at[i]))
			continue;
		end_run(m, gpu, &m->runs.at[i]);
		if (!err)
			ended.at[ended.n++] = m->runs.at[i];
	}
	for (size_t i = 0; i < n && !err; i++)
		if ((!m->noted && is_among(m->runs.at, m->runs.n, &runs[i])) || !renew(m, gpu, &runs[i]))
			next.at[next.n++] = runs[i];
	um_vec_fini(&m->runs);
	um_vec_fini(&m->ended);
	m->runs = next;
	m->ended = ended;
	m->noted = 0;
	return err;
}

int um_advice_state_differs(const struct um_advice_state *m, const struct um_compiled_plan_run *runs, size_t n)
{
	return m->noted || m->runs.n != n || (n && memcmp(m->runs.at, runs, n * sizeof *runs));
}

int um_advice_state_note(struct um_advice_state *m, uint64_t addr, uint64_t bytes)
{
	size_t i = run_after(m->runs.at, m->runs.n, addr);
	struct um_compiled_plan_run *before = i ? &m->runs.at[i - 1] : NULL, *behind;
	int joins = before && before->addr + before->bytes == addr, is_joined;

	behind = i < m->runs.n ? &m->runs.at[i] : NULL;
	is_joined = behind && behind->addr == addr + bytes;
	if (!joins && !is_joined && um_vec_reserve(&m->runs, 1))
		return -ENOMEM;
	if (joins) {
		before->bytes += bytes + (is_joined ? behind->bytes : 0);
		if (is_joined)
			memmove(behind, behind + 1, (--m->runs.n - i) * sizeof *behind);
	} else if (is_joined) {
		behind->addr = addr;
		behind->bytes += bytes;
	} else {
		behind = m->runs.at + i;
		memmove(behind + 1, behind, (m->runs.n++ - i) * sizeof *behind);
		*behind = (struct um_compiled_plan_run){addr, bytes};
	}
	m->noted = 1;
	return 0;
}

int um_advice_state_add(struct um_advice_state *m, struct um_gpu *gpu, uint64_t addr, uint64_t bytes)
{
	const struct um_compiled_plan_run run = {addr, bytes};
	size_t i;

	um_advice_state_end(m, gpu, addr, bytes); /* runs are disjoint */
	if (um_vec_reserve(&m->runs, 1))
		return -ENOMEM;
	if (renew(m, gpu, &run))
		return -ENOTSUP;
	i = run_after(m->runs.at, m->runs.n, addr);
	memmove(m->runs.at + i + 1, m->runs.at + i, (m->runs.n - i) * sizeof *m->runs.at);
	m->runs.at[i] = run;
	m->runs.n++;
	return 0;
}

/* Takes the advice from the blocks that the range touches: from now on, or only after other calls. */
static void take(struct um_advice_state *m, struct um_gpu *gpu, uint64_t addr, uint64_t end, int later)
{
	struct um_compiled_plan_run gone;

	for (size_t i = run_after(m->runs.at, m->runs.n, addr); i < m->runs.n && m->runs.at[i].addr < end;) {
		i += cut(&m->runs, i, addr, end, &gone);
		if (!later || um_vec_push(&m->ending, gone))
			unset(m, gpu, &gone);
	}
}

static uint64_t end_of_block(uint64_t addr)
{
	return (addr + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
}

void um_advice_state_clear(struct um_advice_state *m, struct um_gpu *gpu, uint64_t addr, uint64_t bytes)
{
	uint64_t first = addr & ~(UM_BLOCK_BYTES - 1), end = end_of_block(addr + bytes);

	take(m, gpu, first, end, 0);
	cut_ended(m, &m->ending, gpu, first, end);
	cut_ended(m, &m->due, gpu, first, end);
}

void um_advice_state_end(struct um_advice_state *m, struct um_gpu *gpu, uint64_t addr, uint64_t bytes)
{
	take(m, gpu, addr & ~(UM_BLOCK_BYTES - 1), end_of_block(addr + bytes), 1);
}

void um_advice_state_withdraw(struct um_advice_state *m, struct um_gpu *gpu)
{
	struct um_advice_runs done = m->due;

	for (size_t i = 0; i < done.n; i++)
		unset(m, gpu, &done.at[i]);
	um_vec_clear(&done);
	m->due = m->ending;
	m->ending = done;
}

int um_advice_state_search(const struct um_advice_state *m, uint64_t addr, uint64_t bytes)
{
	size_t i = run_after(m->runs.at, m->runs.n, addr);

	return i < m->runs.n && m->runs.at[i].addr < addr + bytes;
}

int um_advice_state_ended(const struct um_advice_state *m, uint64_t addr)
{
	size_t i = run_after(m->ended.at, m->ended.n, addr);

	return i < m->ended.n && m->ended.at[i].addr <= addr;
}

int um_advice_state_has(const struct um_advice_state *m, uint64_t addr, uint64_t bytes)
{
	size_t i = run_after(m->runs.at, m->runs.n, addr);

	return i < m->runs.n && m->runs.at[i].addr <= addr && addr + bytes <= m->runs.at[i].addr + m->runs.at[i].bytes;
}

void um_advice_state_fini(struct um_advice_state *m)
{
	um_vec_fini(&m->runs);
	um_vec_fini(&m->ending);
	um_vec_fini(&m->due);
	um_vec_fini(&m->ended);
}
