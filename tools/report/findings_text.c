/* SPDX-License-Identifier: Apache-2.0
 *
 * What a finding says: what was seen, how its saving is estimated, what to do. Names are cut, so that each is a line.
 */
#include "report/findings.h"
#include "report/findings_waits.h"

#include "report/report.h"

#include <stdio.h>

#define NAME 64 /* bytes of a name that are shown */
#define LINK_BYTES (4ull << 20) /* fewer do not tell a rate */

double um_report_ns_per_byte(const struct um_report *r, enum um_activity_dir dir)
{
	const struct um_report_moves *m = r->all.moves[dir];
	uint64_t bytes = m[UM_CAUSE_PREFETCH].bytes, ns = m[UM_CAUSE_PREFETCH].ns;

	for (int c = 0; c < UM_CAUSES && m[UM_CAUSE_PREFETCH].bytes < LINK_BYTES; c++) {
		bytes += c == UM_CAUSE_PREFETCH ? 0 : m[c].bytes;
		ns += c == UM_CAUSE_PREFETCH ? 0 : m[c].ns;
	}
	return bytes >= LINK_BYTES ? (double)ns / (double)bytes : 0;
}

struct words {
	const struct um_report *r;
	const struct um_finding *f;
	char tensor[NAME + 32], op[NAME + 16], caller[NAME + 16], neighbour[NAME + 16];
	char per[24]; /* " an iteration", or nothing */
	double mib, ms;
};

static void cut(char *to, size_t size, const char *before, const char *name)
{
	snprintf(to, size, "%s%.*s", before, NAME, name);
}

static void words_init(struct words *w, const struct um_finding *f, const struct um_report *r)
{
	const struct um_causes *c = &r->causes;
	uint32_t near = f->tensor < c->neighbour.n ? c->neighbour.at[f->tensor] : UM_CAUSES_NONE;

	*w = (struct words){.r = r, .f = f, .mib = (double)f->bytes / 1048576.0, .ms = (double)f->ns / 1e6};
	if (f->tensors > 1)
		snprintf(w->tensor, sizeof w->tensor, "%llu tensors", (unsigned long long)f->tensors);
	else
		cut(w->tensor, sizeof w->tensor, "",
		    f->tensor == UM_CAUSES_NONE ? "what it uses" : um_report_tensor_name(r, f->tensor));
	cut(w->op, sizeof w->op, "", f->op == UM_CAUSES_NONE ? "its kernel" : r->ops.at[f->op].name);
	cut(w->caller, sizeof w->caller, "", f->caller == UM_CAUSES_NONE ? "" : c->callers.at[f->caller]);
	cut(w->neighbour, sizeof w->neighbour, "",
	    near == UM_CAUSES_NONE ? "another tensor" : um_report_tensor_name(r, near));
	snprintf(w->per, sizeof w->per, "%s", r->findings.iterations ? " an iteration" : "");
}

/* --- what was seen ------------------------------------------------------------------------------------------------ */

static int evidence_late(const struct words *w, char **out)
{
	const struct um_finding *f = w->f;
	double mib = (double)f->waited_bytes / 1048576.0, ms = (double)f->waited_ns / 1e6;
	unsigned long long faults = f->faults;

	if (!f->waited_ns)
		return asprintf(out, "%llu faults and %.1f MiB%s, %.3f ms waiting", faults, w->mib, w->per, w->ms);
	if (!f->faults && !f->bytes)
		return asprintf(out, "the device stood still until its %.1f MiB%s had come: %.3f ms", mib, w->per, ms);
	return asprintf(out,
			"the device stood still until %.1f MiB%s had come: %.3f ms; and %llu faults and %.1f MiB, "
			"%.3f ms waiting",
			mib, w->per, ms, faults, w->mib, w->ms);
}

static int evidence(const struct words *w, char **out)
{
	const struct um_finding *f = w->f;
	unsigned long long faults = f->faults, n = f->n;

	switch (f->reason) {
	case UM_REASON_LATE:
		return evidence_late(w, out);
	case UM_REASON_EARLY:
		return asprintf(out,
				"%.1f MiB%s were prefetched, evicted before anything used them, and brought "
				"again; %llu faults, %.3f ms waiting",
				w->mib, w->per, faults, w->ms);
	case UM_REASON_CPU:
	case UM_REASON_PING_PONG:
		return asprintf(out,
				"%.1f MiB%s and %llu faults, on both sides%s%s; %.3f ms copying and "
				"waiting",
				w->mib, w->per, faults, *w->caller ? ", the CPU's in " : "", w->caller, w->ms);
	case UM_REASON_SHARED:
		return asprintf(out,
				"%.1f MiB%s moved though not they were asked for, but %s in the same 2 MiB; %.3f "
				"ms",
				w->mib, w->per, w->neighbour, w->ms);
	case UM_REASON_OVERSHOOT:
		return asprintf(out,
				"%.1f MiB%s came with what was faulted on and were evicted "
				"unused",
				w->mib, w->per);
	case UM_REASON_COLLAPSE:
		return asprintf(out, "%llu write faults%s on pages that were on the device; %.3f ms waiting", faults,
				w->per, w->ms);
	case UM_REASON_CLEAN:
		return asprintf(out, "%.1f MiB%s were written back while kernels waited, and had not been written%s",
				w->mib, w->per,
				w->r->causes.doubtful ? ", as far as faults tell: a write to what was read first "
							"shows in "
							"none"
						      : "");
	case UM_REASON_DEAD:
		return asprintf(out,
				"%.1f MiB%s were written back and then overwritten before anything read "
				"them",
				w->mib, w->per);
	case UM_REASON_WAITED:
		return um_finding_waits_evidence(f, w->r, out);
	case UM_REASON_REDUNDANT:
		return asprintf(out,
				"%llu prefetches%s of %.1f MiB moved nothing: the pages were "
				"there",
				n, w->per, w->mib);
	default:
		if (!faults && !w->r->causes.saw_faults)
			return asprintf(out, "%.1f MiB%s, %.3f ms waiting", w->mib, w->per, w->ms);
		return asprintf(out, "%llu faults and %.1f MiB%s, %.3f ms waiting", faults, w->mib, w->per, w->ms);
	}
}

/* --- how its saving is estimated ---------------------------------------------------------------------------------- */

static int estimate(const struct words *w, char **out)
{
	const char *guess = w->r->causes.guessed ? ", where a kernel is taken to use what came right before it" : "";
	double in = um_report_ns_per_byte(w->r, UM_DIR_H2D);
	char rate[64] = "the link's rate, of which this recording shows none";

	if (w->f->reason == UM_REASON_WAITED)
		return um_finding_waits_estimate(w->f, w->r, out);
	if (in > 0)
		snprintf(rate, sizeof rate, "the %.1f GB/s that this recording shows", 1 / in);
	if (!w->r->causes.saw_faults && w->f->reason <= UM_REASON_LATE && !w->f->waited_ns)
		return asprintf(out, "the copies alone, while kernels ran: page faults were not recorded "
				     "(--cuda-um-gpu-page-faults=true), and cost more");
	if (w->f->waited_ns && !w->f->faults && !w->f->bytes)
		return asprintf(out, "of that, what could have come before, while the link was idle%s", guess);
	switch (w->f->reason) {
	case UM_REASON_LATE:
		if (w->f->waited_ns)
			return asprintf(out,
					"what could have come while the link was idle%s; and kernels' time while "
					"its faults were served, less its bytes at %s",
					guess, rate);
		/* fall through */
	case UM_REASON_DEMAND:
	case UM_REASON_DISCARDED:
	case UM_REASON_FRESH:
	case UM_REASON_COLLAPSE:
		return asprintf(out, "kernels' time while its faults were served, less its bytes at %s", rate);
	case UM_REASON_EARLY:
		return asprintf(out,
				"its bytes there and back at %s, or the wait for its faults where that is "
				"longer",
				rate);
	case UM_REASON_CPU:
	case UM_REASON_PING_PONG:
	case UM_REASON_SHARED:
		return asprintf(out, "the copies, and kernels' time while its faults were served");
	case UM_REASON_OVERSHOOT:
		return asprintf(out, "its bytes at %s, and their copies back while kernels waited", rate);
	case UM_REASON_CLEAN:
		return asprintf(out, "the copies back while kernels waited for room");
	case UM_REASON_DEAD:
		return asprintf(out, "the copies back, at the rate that this recording shows");
	case UM_REASON_REDUNDANT:
		return asprintf(out, "as many times the shortest call that prefetches, where a thread that launches "
				     "kernels calls");
	default:
		return asprintf(out, "not estimated: what the hint was for shows as other findings");
	}
}

/* --- what to do --------------------------------------------------------------------------------------------------- */

static int advice_late(const struct words *w, char **out)
{
	double in = um_report_ns_per_byte(w->r, UM_DIR_H2D);
	const struct um_finding *f = w->f;
	char kernels[48] = "";

	if (!f->waited_ns)
		return asprintf(out, "ask for it at least %.3f ms before %s begins", (double)f->bytes * in / 1e6,
				w->op);
	if (f->earlier > 1)
		snprintf(kernels, sizeof kernels, ", or %s%u kernels", f->earlier < UM_WAIT_KERNELS ? "" : "more than ",
			 (unsigned)f->earlier);
	return asprintf(out, "ask for %s up to %.3f ms%s earlier, on another stream than the kernels'%s",
			f->tensors > 1 ? "each" : "it", (double)f->longest_ns / 1e6, kernels,
			f->full ? ", and send home before what is not used soon: the driver had to make room" : "");
}

static int advice_refused(const struct words *w, const struct um_hint_refusal *refusal, char **out)
{
	int e = refusal ? refusal->error : 0;

	return asprintf(out, "%s",
			e == 101   ? "the device takes no hints (no concurrent managed access: Windows, WSL, older "
				     "ones), or "
				     "its number is wrong: ask umadv_caps_get"
			: e == 801 ? "this driver has no such call: leave it out, or use one with it"
			: e == 1   ? "give it managed memory, and no range that goes beyond the allocation"
			: e == 900 ? "hints are refused while a stream captures: give them before or after"
				   : "look up the error; without the hint the driver works by faults");
	(void)w;
}

static int advice(const struct words *w, const struct um_hint_refusal *refusal, char **out)
{
	const struct um_finding *f = w->f;
	unsigned long long bytes = f->bytes;

	switch (f->reason) {
	case UM_REASON_DEMAND:
		if (f->tensors > 1)
			return asprintf(out, "prefetch each to the device before the kernel that needs it; or say to "
					     "umadv_op "
					     "what kernels use, and strategy lookahead does it ahead of time");
		if (!f->bytes)
			return asprintf(out,
					"its first touch faults: cudaMemPrefetchAsync(%s) to the device before "
					"%s, or name "
					"it to umadv_op",
					w->tensor, w->op);
		return asprintf(out,
				"cudaMemPrefetchAsync(%s, %llu bytes, device, stream) before %s; or say to "
				"umadv_op what "
				"kernels use, and strategy lookahead does it ahead of time",
				w->tensor, bytes, w->op);
	case UM_REASON_LATE:
		return advice_late(w, out);
	case UM_REASON_WAITED:
		return um_finding_waits_advice(f, w->r, out);
	case UM_REASON_EARLY:
		return asprintf(out,
				"prefetch it later, or less of others before %s: more is asked for than there is "
				"room; "
				"UMADVISE_BUDGET keeps to what fits",
				w->op);
	case UM_REASON_CPU:
		return asprintf(out,
				"keep the CPU%s%s off it in an iteration (work on a copy), or ask for it on the "
				"host "
				"before and on the device behind; only read on both sides: cudaMemAdviseSetReadMostly",
				*w->caller ? ", in " : "", w->caller);
	case UM_REASON_PING_PONG:
		return asprintf(out,
				"let one side do it, or keep it on the host: "
				"cudaMemAdviseSetPreferredLocation(host) and "
				"SetAccessedBy(device)%s%s",
				*w->caller ? "; the CPU's touch is in " : "", w->caller);
	case UM_REASON_SHARED:
		if (f->tensors > 1)
			return asprintf(out, "let tensors of different use begin at multiples of 2 MiB, or allocate "
					     "them with "
					     "umadv_alloc");
		return asprintf(out,
				"let %s begin at a multiple of 2 MiB, apart from %s: pad it, or allocate it with "
				"umadv_alloc",
				w->tensor, w->neighbour);
	case UM_REASON_OVERSHOOT:
		return asprintf(out,
				"prefetch what %s uses of it and no more (umadv_op with UMADV_READ_RANGE); "
				"scattered "
				"look-ups: cudaMemAdviseSetAccessedBy(device) leaves it on the host",
				w->op);
	case UM_REASON_COLLAPSE:
		return asprintf(out, "cudaMemAdviseUnsetReadMostly: %s writes it", w->op);
	case UM_REASON_DISCARDED:
		return asprintf(out, "prefetch it behind the discard, on the same stream, before %s writes it", w->op);
	case UM_REASON_FRESH:
		return asprintf(out, "allocate it once, before the iterations; or with umadv_alloc, which keeps the "
				     "memory");
	case UM_REASON_CLEAN:
		return asprintf(out, "cudaMemAdviseSetReadMostly where the device only reads it: the host keeps a "
				     "copy, and it "
				     "leaves without one");
	case UM_REASON_DEAD:
		if (f->tensors > 1 || f->tensor == UM_CAUSES_NONE || !w->r->tensors.rows.at[f->tensor].named)
			return asprintf(out, "discard what is dead (cudaMemDiscardBatchAsync) behind its last use; "
					     "plans do so "
					     "with what umadv_free, umadv_dead or umadv_transient tell them");
		return asprintf(out,
				"umadv_transient(adv, %s), or cudaMemDiscardBatchAsync behind its last "
				"use",
				w->tensor);
	case UM_REASON_REDUNDANT:
		return asprintf(out, "leave it out, or prefetch once before the iterations: it stays");
	default:
		return advice_refused(w, refusal, out);
	}
}

static int evidence_refused(const struct words *w, const struct um_hint_refusal *refusal, char **out)
{
	return asprintf(out, "%s%s%s failed %llu times with error %d", refusal->name,
			w->f->tensor == UM_CAUSES_NONE ? "" : " of ", w->f->tensor == UM_CAUSES_NONE ? "" : w->tensor,
			(unsigned long long)refusal->n, refusal->error);
}

int um_finding_describe(struct um_finding *f, const struct um_report *r, const struct um_hint_refusal *refusal)
{
	struct words w;

	words_init(&w, f, r);
	f->evidence = f->estimate = f->advice = NULL;
	if ((refusal ? evidence_refused(&w, refusal, &f->evidence) : evidence(&w, &f->evidence)) < 0)
		f->evidence = NULL;
	else if (estimate(&w, &f->estimate) < 0)
		f->estimate = NULL;
	else if (advice(&w, refusal, &f->advice) < 0)
		f->advice = NULL;
	if (f->advice)
		return 0;
	free(f->evidence);
	free(f->estimate);
	return -ENOMEM;
}
