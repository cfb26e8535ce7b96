/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of a finding: the observation, the estimate of its saving, and advice. Names are cut, so that each text is one
 * line.
 */
#include "report/findings.h"
#include "report/findings_waits.h"

#include "report/report.h"

#include <stdio.h>

#define NAME 64 /* bytes of a name that are shown */
#define LINK_BYTES (4ull << 20) /* fewest copied bytes that show a rate */

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
		return asprintf(out, "%llu faults and %.1f MiB%s, %.3f ms stall", faults, w->mib, w->per, w->ms);
	if (!f->faults && !f->bytes)
		return asprintf(out, "the device was idle until %.1f MiB%s had been copied: %.3f ms", mib, w->per, ms);
	return asprintf(out,
			"the device was idle until %.1f MiB%s had been copied: %.3f ms; and %llu faults and %.1f "
			"MiB, %.3f ms stall",
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
				"%.1f MiB%s were prefetched, evicted before their first use, and migrated again; "
				"%llu faults, %.3f ms stall",
				w->mib, w->per, faults, w->ms);
	case UM_REASON_CPU:
	case UM_REASON_PING_PONG:
		return asprintf(out, "%.1f MiB%s and %llu faults of CPU and GPU%s%s; %.3f ms of copies and stalls",
				w->mib, w->per, faults, *w->caller ? ", the CPU's in " : "", w->caller, w->ms);
	case UM_REASON_SHARED:
		return asprintf(out, "%.1f MiB%s migrated only because %s shares their 2 MiB block; %.3f ms", w->mib,
				w->per, w->neighbour, w->ms);
	case UM_REASON_OVERSHOOT:
		return asprintf(out, "%.1f MiB%s were migrated beside faulting pages and evicted unused", w->mib,
				w->per);
	case UM_REASON_COLLAPSE:
		return asprintf(out, "%llu write faults%s on resident read-mostly pages; %.3f ms stall", faults, w->per,
				w->ms);
	case UM_REASON_CLEAN:
		return asprintf(out, "%.1f MiB%s were written back while kernels waited, though unchanged%s", w->mib,
				w->per,
				w->r->causes.doubtful ? ", judging by faults: a write after a read causes none" : "");
	case UM_REASON_DEAD:
		return asprintf(out, "%.1f MiB%s were written back and then overwritten before the next read", w->mib,
				w->per);
	case UM_REASON_WAITED:
		return um_finding_waits_evidence(f, w->r, out);
	case UM_REASON_REDUNDANT:
		return asprintf(out, "%llu prefetches%s of %.1f MiB moved nothing: the pages were resident", n, w->per,
				w->mib);
	default:
		if (!faults && !w->r->causes.saw_faults)
			return asprintf(out, "%.1f MiB%s, %.3f ms stall", w->mib, w->per, w->ms);
		return asprintf(out, "%llu faults and %.1f MiB%s, %.3f ms stall", faults, w->mib, w->per, w->ms);
	}
}

/* --- how its saving is estimated ---------------------------------------------------------------------------------- */

static int estimate(const struct words *w, char **out)
{
	const char *guess =
		w->r->causes.guessed ? ", assuming that a kernel uses the pages copied right before it" : "";
	double in = um_report_ns_per_byte(w->r, UM_DIR_H2D);
	char rate[64] = "the link's rate (not measured: too few copies)";

	if (w->f->reason == UM_REASON_WAITED)
		return um_finding_waits_estimate(w->f, w->r, out);
	if (in > 0)
		snprintf(rate, sizeof rate, "the recorded %.1f GB/s", 1 / in);
	if (!w->r->causes.saw_faults && w->f->reason <= UM_REASON_LATE && !w->f->waited_ns)
		return asprintf(out, "only the copies while kernels ran: page faults cost more, but were not "
				     "recorded (--cuda-um-gpu-page-faults=true)");
	if (w->f->waited_ns && !w->f->faults && !w->f->bytes)
		return asprintf(out, "the part that an earlier prefetch could have copied while the link was idle%s",
				guess);
	switch (w->f->reason) {
	case UM_REASON_LATE:
		if (w->f->waited_ns)
			return asprintf(out,
					"the part that an earlier prefetch could have copied while the link was "
					"idle%s; and kernel time while its faults were served, less its bytes at %s",
					guess, rate);
		/* fall through */
	case UM_REASON_DEMAND:
	case UM_REASON_DISCARDED:
	case UM_REASON_FRESH:
	case UM_REASON_COLLAPSE:
		return asprintf(out, "kernel time while its faults were served, less its bytes at %s", rate);
	case UM_REASON_EARLY:
		return asprintf(out, "its bytes in both directions at %s, or the stall of its faults if that is longer",
				rate);
	case UM_REASON_CPU:
	case UM_REASON_PING_PONG:
	case UM_REASON_SHARED:
		return asprintf(out, "the copies, and kernel time while its faults were served");
	case UM_REASON_OVERSHOOT:
		return asprintf(out, "its bytes at %s, and their write-backs while kernels waited", rate);
	case UM_REASON_CLEAN:
		return asprintf(out, "the write-backs while kernels waited for free memory");
	case UM_REASON_DEAD:
		return asprintf(out, "the write-backs at the recorded rate");
	case UM_REASON_REDUNDANT:
		return asprintf(out, "the shortest prefetch call times their number, on threads that launch kernels");
	default:
		return asprintf(out, "not estimated: other findings show the effect");
	}
}

/* --- what to do --------------------------------------------------------------------------------------------------- */

static int advice_late(const struct words *w, char **out)
{
	double in = um_report_ns_per_byte(w->r, UM_DIR_H2D);
	const struct um_finding *f = w->f;
	char kernels[48] = "";

	if (!f->waited_ns)
		return asprintf(out, "prefetch it at least %.3f ms before %s begins", (double)f->bytes * in / 1e6,
				w->op);
	if (f->earlier > 1)
		snprintf(kernels, sizeof kernels, ", or %s%u kernels", f->earlier < UM_WAIT_KERNELS ? "" : "more than ",
			 (unsigned)f->earlier);
	return asprintf(out, "prefetch %s up to %.3f ms%s earlier, on another stream than the kernels'%s",
			f->tensors > 1 ? "each" : "it", (double)f->longest_ns / 1e6, kernels,
			f->full ? ", and first evict tensors that are not used soon: the driver had to free memory"
				: "");
}

static int advice_refused(const struct words *w, const struct um_hint_refusal *refusal, char **out)
{
	int e = refusal ? refusal->error : 0;

	return asprintf(out, "%s",
			e == 101   ? "the device does not support hints (no concurrent managed access: Windows, "
				     "WSL, old GPUs), or its number is wrong: check umadv_caps_get"
			: e == 801 ? "this driver lacks the call: remove it, or use a driver that has it"
			: e == 1   ? "pass managed memory, and a range within one allocation"
			: e == 900 ? "hints are refused during stream capture: issue them before or after"
				   : "look up the error; without the hint the driver relies on faults");
	(void)w;
}

static int advice(const struct words *w, const struct um_hint_refusal *refusal, char **out)
{
	const struct um_finding *f = w->f;
	unsigned long long bytes = f->bytes;

	switch (f->reason) {
	case UM_REASON_DEMAND:
		if (f->tensors > 1)
			return asprintf(out, "prefetch each to the device before the kernel that needs it; or "
					     "declare kernels' uses with umadv_op, and strategy lookahead "
					     "prefetches them in time");
		if (!f->bytes)
			return asprintf(out,
					"its first touch faults: cudaMemPrefetchAsync(%s) to the device before %s, "
					"or declare it with umadv_op",
					w->tensor, w->op);
		return asprintf(out,
				"cudaMemPrefetchAsync(%s, %llu bytes, device, stream) before %s; or declare "
				"kernels' uses with umadv_op, and strategy lookahead prefetches them in time",
				w->tensor, bytes, w->op);
	case UM_REASON_LATE:
		return advice_late(w, out);
	case UM_REASON_WAITED:
		return um_finding_waits_advice(f, w->r, out);
	case UM_REASON_EARLY:
		return asprintf(out,
				"prefetch it later, or less of others before %s: prefetches exceed the device "
				"memory; UMADVISE_BUDGET limits them",
				w->op);
	case UM_REASON_CPU:
		return asprintf(out,
				"avoid the CPU's accesses%s%s in an iteration (work on a copy), or prefetch it to "
				"the host before them and to the device after them; if both sides only read it: "
				"cudaMemAdviseSetReadMostly",
				*w->caller ? ", in " : "", w->caller);
	case UM_REASON_PING_PONG:
		return asprintf(out,
				"access it from one side only, or keep it on the host: "
				"cudaMemAdviseSetPreferredLocation(host) and SetAccessedBy(device)%s%s",
				*w->caller ? "; the CPU accesses it in " : "", w->caller);
	case UM_REASON_SHARED:
		if (f->tensors > 1)
			return asprintf(out, "align tensors of different use to 2 MiB, or allocate them with "
					     "umadv_alloc");
		return asprintf(out, "align %s to 2 MiB, apart from %s, or allocate it with umadv_alloc", w->tensor,
				w->neighbour);
	case UM_REASON_OVERSHOOT:
		return asprintf(out,
				"prefetch only the range that %s uses (umadv_op with UMADV_READ_RANGE); for "
				"scattered look-ups cudaMemAdviseSetAccessedBy(device) leaves it on the host",
				w->op);
	case UM_REASON_COLLAPSE:
		return asprintf(out, "cudaMemAdviseUnsetReadMostly: %s writes it", w->op);
	case UM_REASON_DISCARDED:
		return asprintf(out, "prefetch it after the discard, on the same stream, before %s writes it", w->op);
	case UM_REASON_FRESH:
		return asprintf(out, "allocate it once, before the iterations, or with umadv_alloc, which reuses "
				     "memory");
	case UM_REASON_CLEAN:
		return asprintf(out, "if the device only reads it: cudaMemAdviseSetReadMostly; the host keeps a "
				     "copy, so its eviction needs none");
	case UM_REASON_DEAD:
		if (f->tensors > 1 || f->tensor == UM_CAUSES_NONE || !w->r->tensors.rows.at[f->tensor].named)
			return asprintf(out, "discard dead tensors (cudaMemDiscardBatchAsync) after their last use; "
					     "plans do so for tensors of umadv_free, umadv_dead and umadv_transient");
		return asprintf(out, "umadv_transient(adv, %s), or cudaMemDiscardBatchAsync after its last use",
				w->tensor);
	case UM_REASON_REDUNDANT:
		return asprintf(out, "remove it, or prefetch once before the iterations: the pages stay");
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
