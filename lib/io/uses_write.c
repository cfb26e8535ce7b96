/* SPDX-License-Identifier: Apache-2.0
 *
 * uses_write.c - writes the keys of an op line
 */
#include "io/uses_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void um_range_write(struct um_out *o, const struct um_uses_view *v, const struct um_use *u)
{
	if (u->off == 0 && u->bytes == v->whole(v->user, u->id.v)) {
		um_out_u64(o, u->id.v - v->base);
		return;
	}
	um_out_str(o, "[");
	um_out_u64(o, u->id.v - v->base);
	um_out_str(o, ",");
	um_out_u64(o, u->off);
	um_out_str(o, ",");
	um_out_u64(o, u->bytes);
	um_out_str(o, "]");
}

static void write_list(struct um_out *o, const struct um_uses_view *v, const char *open, uint32_t access)
{
	const char *comma = "";

	um_out_str(o, open);
	for (uint32_t i = 0; i < v->n; i++) {
		if (!(v->uses[i].access & access))
			continue;
		um_out_str(o, comma);
		um_range_write(o, v, &v->uses[i]);
		comma = ",";
	}
	um_out_str(o, "]");
}

static int is_partial(const struct um_use *u)
{
	return u->touched < u->bytes;
}

/* One number covers all uses of a tensor: the maximum of the partly touched ones, written with the first use. */
static int touched_of(const struct um_uses_view *v, uint32_t i, uint64_t *touched)
{
	uint64_t most = 0;
	int partial = 0;

	for (uint32_t k = 0; k < v->n; k++) {
		if (v->uses[k].id.v != v->uses[i].id.v || !is_partial(&v->uses[k]))
			continue;
		if (k < i)
			return 0; /* written already */
		partial = 1;
		most = v->uses[k].touched > most ? v->uses[k].touched : most;
	}
	*touched = most;
	return partial;
}

void um_uses_write(struct um_out *o, const struct um_uses_view *v)
{
	int any = 0;

	write_list(o, v, ",\"r\":[", UM_READ);
	write_list(o, v, ",\"w\":[", UM_WRITE);
	for (uint32_t i = 0; i < v->n; i++) {
		uint64_t touched;

		if (!is_partial(&v->uses[i]) || !touched_of(v, i, &touched))
			continue;
		um_out_str(o, any ? ",\"" : ",\"touched\":{\"");
		um_out_u64(o, v->uses[i].id.v - v->base);
		um_out_str(o, "\":");
		um_out_u64(o, touched);
		any = 1;
	}
	if (any)
		um_out_str(o, "}");
}

/* An amount that is not finite is unknown. */
static void write_amount(struct um_out *o, const char *key, double x)
{
	if (!isfinite(x) || x <= 0)
		return;
	um_out_str(o, key);
	um_out_double(o, x);
}

void um_cost_write(struct um_out *o, const struct um_cost *cost)
{
	write_amount(o, ",\"flops\":", cost->flops);
	write_amount(o, ",\"bytes\":", cost->bytes);
	if (cost->ns) {
		um_out_str(o, ",\"ns\":");
		um_out_u64(o, cost->ns);
	}
}

void um_launch_write(struct um_out *o, int32_t stream, char phase, int collective)
{
	char text[] = "x";

	if (collective)
		um_out_str(o, ",\"collective\":true");
	if (stream && stream != UM_STREAM_CPU) {
		um_out_str(o, ",\"stream\":");
		um_out_i64(o, stream);
	}
	if (phase) {
		text[0] = phase;
		um_out_str(o, ",\"ph\":");
		um_out_json_str(o, text);
	}
}

void um_ws_write(struct um_out *o, const struct um_workspace *ws, uint32_t n)
{
	if (n == 0)
		return;
	um_out_str(o, ",\"ws\":");
	for (uint32_t i = 0; i < n; i++) {
		um_out_str(o, i ? ",[" : "[[");
		um_out_u64(o, ws[i].bytes);
		um_out_str(o, ",");
		um_out_u64(o, ws[i].ns);
		um_out_str(o, "]");
	}
	um_out_str(o, "]");
}
