/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/perfetto_state.h"

#include <inttypes.h>
#include <stdio.h>

#define EXACT (1ull << 53) /* ns: doubles represent all smaller integers */

/* Some readers multiply by a thousand and truncate, others round: a fourth digit gives both the same nanosecond if the
 * nearest double is below it. */
static void microseconds(struct um_out *out, uint64_t ns)
{
	char text[40];
	uint64_t rest = ns % 1000;
	int n;

	if (!rest)
		n = snprintf(text, sizeof text, "%" PRIu64, ns / 1000);
	else
		n = snprintf(text, sizeof text, "%" PRIu64 ".%03" PRIu64 "%s", ns / 1000, rest,
			     ns < EXACT && (uint64_t)((double)ns / 1000.0 * 1000.0) < ns ? "1" : "");
	um_out_write(out, text, (size_t)n);
}

void um_pf_event(struct um_perfetto *w, const char *ph, uint32_t pid, uint32_t tid, uint64_t ts, const char *name)
{
	char head[96];
	int n = snprintf(head, sizeof head, "%s\n{\"ph\":\"%s\",\"pid\":%" PRIu32, w->any ? "," : "", ph, pid);

	w->any = 1;
	if (tid)
		n += snprintf(head + n, sizeof head - (size_t)n, ",\"tid\":%" PRIu32, tid);
	um_out_write(w->out, head, (size_t)n);
	um_out_str(w->out, ",\"ts\":");
	microseconds(w->out, ts);
	um_out_str(w->out, ",\"name\":");
	um_out_json_str(w->out, name);
}

void um_pf_slice_begin(struct um_perfetto *w, const struct um_pf_slice *s, int fits, const char *cat, const char *name)
{
	const struct um_pf_lane *l = &w->lanes.at[s->lane];

	um_pf_event(w, fits ? "X" : "i", w->groups.at[l->group].pid, l->tid, s->begin, name);
	if (fits) {
		um_out_str(w->out, ",\"dur\":");
		microseconds(w->out, s->end - s->begin);
	} else {
		um_out_str(w->out, ",\"s\":\"t\"");
	}
	um_out_str(w->out, ",\"cat\":");
	um_out_json_str(w->out, cat);
	um_out_str(w->out, ",\"args\":{");
}

static void key(struct um_perfetto *w, int *first, const char *key)
{
	if (!*first)
		um_out_str(w->out, ",");
	*first = 0;
	um_out_json_str(w->out, key);
	um_out_str(w->out, ":");
}

void um_pf_key_u64(struct um_perfetto *w, int *first, const char *name, uint64_t value)
{
	key(w, first, name);
	um_out_u64(w->out, value);
}

void um_pf_key_str(struct um_perfetto *w, int *first, const char *name, const char *value)
{
	key(w, first, name);
	um_out_json_str(w->out, value);
}

void um_pf_key_address(struct um_perfetto *w, int *first, uint64_t address)
{
	char text[24];

	if (!address)
		return;
	snprintf(text, sizeof text, "0x%" PRIx64, address);
	um_pf_key_str(w, first, "address", text);
}

void um_pf_meta(struct um_perfetto *w, const char *what, uint32_t pid, uint32_t tid, const char *name)
{
	um_pf_event(w, "M", pid, tid, 0, what);
	um_out_str(w->out, ",\"args\":{\"name\":");
	um_out_json_str(w->out, name);
	um_out_str(w->out, "}}");
}
