/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of a finding: the observation, the estimate of its saving, and advice. Names are cut, so that each text is one
 * line.
 */
#include "report/findings.h"
#include "report/findings_plan.h"
#include "report/findings_waits.h"

#include "report/report.h"

#include <stdio.h>
#include <string.h>

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
	const struct um_hint_refusal *refusal; /* or NULL */
	uint32_t neighbour; /* row of the tensor that caused the migration, or UM_CAUSES_NONE */
	double ns_per_byte; /* 0: unknown */
};

/* --- the texts ---------------------------------------------------------------------------------------------------- */

#define STALL "%f faults and %m MiB%p, %s ms stall"
#define IDLE "the device was idle until %M MiB%p had been copied: %S ms"
#define SERVED "kernel time while its faults were served, less its bytes at %r"
#define EARLIER "the part that an earlier prefetch could have copied while the link was idle%g"
#define COPIES "the copies, and kernel time while its faults were served"
#define BY_OP "declare kernels' uses with umadv_op, and strategy lookahead prefetches them in time"

struct text {
	const char *evidence, *estimate, *advice;
	const char *several; /* advice for several tensors; NULL: the same */
};

/* expand() knows the letters after '%'. */
static const struct text by_faults = {STALL, SERVED, "prefetch it at least %e ms before %o begins", NULL};
static const struct text by_waits = {IDLE, EARLIER,
				     "prefetch %a up to %l ms%k earlier, on another stream than the kernels'%F", NULL};
static const struct text by_both = {IDLE "; and %f faults and %m MiB, %s ms stall", EARLIER "; and " SERVED,
				    "prefetch %a up to %l ms%k earlier, on another stream than the kernels'%F", NULL};
static const struct text refused = {"%h", "not estimated: other findings show the effect", "%H", NULL};
static const char only_copies[] = "only the copies while kernels ran: page faults cost more, but were not recorded "
				  "(--cuda-um-gpu-page-faults=true)";
static const char first_touch[] = "its first touch faults: cudaMemPrefetchAsync(%t) to the device before %o, or "
				  "declare it with umadv_op";

static const struct text texts[UM_REASONS] = {
	[UM_REASON_DEMAND] = {STALL, SERVED, "cudaMemPrefetchAsync(%t, %b bytes, device, stream) before %o; or " BY_OP,
			      "prefetch each to the device before the kernel that needs it; or " BY_OP},
	[UM_REASON_EARLY] = {"%m MiB%p were prefetched, evicted before their first use, and migrated again; %f faults, "
			     "%s ms stall",
			     "its bytes in both directions at %r, or the stall of its faults if that is longer",
			     "prefetch it later, or less of others before %o: prefetches exceed the device memory; "
			     "UMADVISE_BUDGET limits them",
			     NULL},
	[UM_REASON_CPU] = {"%m MiB%p and %f faults of GPU and CPU%c; %s ms of copies and stalls", COPIES,
			   "avoid the CPU's accesses%c in an iteration (work on a copy), or prefetch it to the host "
			   "before them and to the device after them; if both sides only read it: "
			   "cudaMemAdviseSetReadMostly",
			   NULL},
	[UM_REASON_PING_PONG] = {"%m MiB%p and %f faults of GPU and CPU%c; %s ms of copies and stalls", COPIES,
				 "avoid the CPU's accesses%c, or keep it on the host: "
				 "cudaMemAdviseSetPreferredLocation(host) and SetAccessedBy(device)",
				 NULL},
	[UM_REASON_SHARED] = {"%m MiB%p migrated only because %n shares their 2 MiB block; %s ms", COPIES,
			      "align %t to 2 MiB, apart from %n, or allocate it with umadv_alloc",
			      "align tensors of different use to 2 MiB, or allocate them with umadv_alloc"},
	[UM_REASON_OVERSHOOT] = {"%m MiB%p were migrated beside faulting pages and evicted unused",
				 "its bytes at %r, and their write-backs while kernels waited",
				 "prefetch only the range that %o uses (umadv_op with UMADV_READ_RANGE); for scattered "
				 "look-ups cudaMemAdviseSetAccessedBy(device) leaves it on the host",
				 NULL},
	[UM_REASON_COLLAPSE] = {"%f write faults%p on resident read-mostly pages; %s ms stall", SERVED,
				"cudaMemAdviseUnsetReadMostly: %o writes it", NULL},
	[UM_REASON_DISCARDED] = {STALL, SERVED,
				 "prefetch it after the discard, on the same stream, before %o writes it", NULL},
	[UM_REASON_FRESH] = {STALL, SERVED,
			     "allocate it once, before the iterations, or with umadv_alloc, which reuses memory", NULL},
	[UM_REASON_CLEAN] = {"%m MiB%p were written back while kernels waited, though unchanged%d",
			     "the write-backs while kernels waited for free memory",
			     "if the device only reads it: cudaMemAdviseSetReadMostly; the host keeps a copy, so its "
			     "eviction needs none",
			     NULL},
	[UM_REASON_DEAD] = {"%m MiB%p were written back and then overwritten before the next read",
			    "the write-backs at the recorded rate",
			    "umadv_transient(adv, %t), or cudaMemDiscardBatchAsync after its last use",
			    "discard dead tensors (cudaMemDiscardBatchAsync) after their last use; plans do so for "
			    "tensors of umadv_free, umadv_dead and umadv_transient"},
	[UM_REASON_REDUNDANT] = {"%N prefetches%p of %m MiB moved nothing: the pages were resident",
				 "the shortest prefetch call times their number, on threads that launch kernels",
				 "remove it, or prefetch once before the iterations: the pages stay", NULL},
};

static struct text text_of(const struct words *w)
{
	const struct um_finding *f = w->f;
	struct text t = w->refusal ? refused : texts[f->reason];
	int unnamed = f->tensor == UM_CAUSES_NONE || !w->r->tensors.rows.at[f->tensor].named;

	if (f->reason == UM_REASON_LATE)
		t = !f->waited_ns ? by_faults : f->faults || f->bytes ? by_both : by_waits;
	else if (f->reason == UM_REASON_DEMAND && !f->bytes)
		t.advice = first_touch;
	if (t.several && (f->tensors > 1 || (f->reason == UM_REASON_DEAD && unnamed)))
		t.advice = t.several;
	if (!w->r->causes.saw_faults && !f->faults && strcmp(t.evidence, STALL) == 0)
		t.evidence = "%m MiB%p, %s ms stall";
	if (!w->r->causes.saw_faults && f->reason <= UM_REASON_LATE && !f->waited_ns)
		t.estimate = only_copies;
	return t;
}

/* --- their words -------------------------------------------------------------------------------------------------- */

static const char *refusal_advice(int error)
{
	switch (error) {
	case 101:
		return "the device does not support hints (no concurrent managed access: Windows, WSL, old GPUs), or "
		       "its number is wrong: check umadv_caps_get";
	case 801:
		return "this driver lacks the call: remove it, or use a driver that has it";
	case 1:
		return "pass managed memory, and a range within one allocation";
	case 900:
		return "hints are refused during stream capture: issue them before or after";
	default:
		return "look up the error; without the hint the driver relies on faults";
	}
}

static void name(FILE *to, const char *before, const char *s)
{
	fprintf(to, "%s%.*s", before, NAME, s);
}

static void names(const struct words *w, char letter, FILE *to)
{
	const struct um_finding *f = w->f;
	const struct um_causes *c = &w->r->causes;

	switch (letter) {
	case 't':
		if (f->tensors > 1)
			fprintf(to, "%llu tensors", (unsigned long long)f->tensors);
		else
			name(to, "",
			     f->tensor == UM_CAUSES_NONE ? "its range" : um_report_tensor_name(w->r, f->tensor));
		break;
	case 'o':
		name(to, "", f->op == UM_CAUSES_NONE ? "its kernel" : w->r->ops.at[f->op].name);
		break;
	case 'n':
		name(to, "",
		     w->neighbour == UM_CAUSES_NONE ? "another tensor" : um_report_tensor_name(w->r, w->neighbour));
		break;
	case 'c':
		if (f->caller != UM_CAUSES_NONE)
			name(to, " in ", c->callers.at[f->caller]);
		break;
	case 'h':
		fprintf(to, "%s", w->refusal->name);
		if (f->tensor != UM_CAUSES_NONE)
			name(to, " of ", um_report_tensor_name(w->r, f->tensor));
		fprintf(to, " failed %llu times with error %d", (unsigned long long)w->refusal->n, w->refusal->error);
		break;
	case 'H':
		fputs(refusal_advice(w->refusal->error), to);
		break;
	}
}

static void figure(const struct words *w, char letter, FILE *to)
{
	const struct um_finding *f = w->f;
	const struct {
		char letter, decimals;
		double value;
	} figures[] = {{'m', 1, (double)f->bytes / 1048576.0},
		       {'M', 1, (double)f->waited_bytes / 1048576.0},
		       {'s', 3, (double)f->ns / 1e6},
		       {'S', 3, (double)f->waited_ns / 1e6},
		       {'l', 3, (double)f->longest_ns / 1e6},
		       {'e', 3, (double)f->bytes * w->ns_per_byte / 1e6},
		       {'f', 0, (double)f->faults},
		       {'N', 0, (double)f->n},
		       {'b', 0, (double)f->bytes}};

	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		if (figures[i].letter == letter)
			fprintf(to, "%.*f", figures[i].decimals, figures[i].value);
}

static void phrase(const struct words *w, char letter, FILE *to)
{
	const struct um_causes *c = &w->r->causes;
	const struct um_finding *f = w->f;

	if (letter == 'p' && w->r->findings.iterations)
		fputs(" an iteration", to);
	if (letter == 'd' && c->doubtful)
		fputs(", judging by faults: a write after a read causes none", to);
	if (letter == 'g' && c->guessed)
		fputs(", assuming that a kernel uses the pages copied right before it", to);
	if (letter == 'a')
		fputs(f->tensors > 1 ? "each" : "it", to);
	if (letter == 'k' && f->earlier > 1)
		fprintf(to, ", or %s%u kernels", f->earlier < UM_WAIT_KERNELS ? "" : "more than ",
			(unsigned)f->earlier);
	if (letter == 'F' && f->full)
		fputs(", and first evict tensors that are not used soon: the driver had to free memory", to);
	if (letter == 'r' && w->ns_per_byte > 0)
		fprintf(to, "the recorded %.1f GB/s", 1 / w->ns_per_byte);
	else if (letter == 'r')
		fputs("the link's rate (not measured: too few copies)", to);
}

/* A text with its words, to be freed. NULL: no memory. */
static char *expand(const struct words *w, const char *text)
{
	char *out = NULL;
	size_t size;
	FILE *to = open_memstream(&out, &size);

	if (!to)
		return NULL;
	for (; *text; text++)
		if (*text != '%') {
			fputc(*text, to);
		} else {
			names(w, *++text, to);
			figure(w, *text, to);
			phrase(w, *text, to);
		}
	if (fclose(to)) {
		free(out);
		return NULL;
	}
	return out;
}

int um_finding_describe(struct um_finding *f, const struct um_report *r, const struct um_hint_refusal *refusal)
{
	const struct um_causes *c = &r->causes;
	struct words w = {.r = r, .f = f, .refusal = refusal, .ns_per_byte = um_report_ns_per_byte(r, UM_DIR_H2D)};

	w.neighbour = f->tensor < c->neighbour.n ? c->neighbour.at[f->tensor] : UM_CAUSES_NONE;
	if (f->reason == UM_REASON_WAITED) {
		if (um_finding_waits_evidence(f, r, &f->evidence) < 0)
			f->evidence = NULL;
		if (um_finding_waits_estimate(f, r, &f->estimate) < 0)
			f->estimate = NULL;
		if (um_finding_waits_advice(f, r, &f->advice) < 0)
			f->advice = NULL;
	} else if (f->reason == UM_REASON_UNPLANNED) {
		if (um_finding_plan_evidence(r, &f->evidence) < 0)
			f->evidence = NULL;
		if (um_finding_plan_estimate(&f->estimate) < 0)
			f->estimate = NULL;
		if (um_finding_plan_advice(r, &f->advice) < 0)
			f->advice = NULL;
	} else {
		struct text t = text_of(&w);

		f->evidence = expand(&w, t.evidence);
		f->estimate = expand(&w, t.estimate);
		f->advice = expand(&w, t.advice);
	}
	if (f->evidence && f->estimate && f->advice)
		return 0;
	free(f->evidence);
	free(f->estimate);
	free(f->advice);
	f->evidence = f->estimate = f->advice = NULL;
	return -ENOMEM;
}
