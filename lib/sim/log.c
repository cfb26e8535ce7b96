/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c - the event log of the simulated GPU
 *
 * Locations are allocation number and block, never addresses, which differ from run to run.
 */
#include "sim/state.h"

#include <stdarg.h>
#include <stdio.h>

void um_sim_log(struct um_sim *sim, uint64_t at, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	if (!sim->opt.log)
		return;
	n = snprintf(line, sizeof line, "%llu ", (unsigned long long)at);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
	va_end(ap);
	sim->opt.log(sim->opt.log_user, line);
}

void um_sim_log_block(struct um_sim *sim, uint64_t at, const char *what, const struct um_sim_block *b, uint64_t n)
{
	if (!sim->opt.log)
		return;
	um_sim_log(sim, at, "%s m%u+%u %llu", what, b->mem->serial, (unsigned)(b - b->mem->block),
		   (unsigned long long)n);
}
