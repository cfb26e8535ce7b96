/* SPDX-License-Identifier: Apache-2.0
 *
 * use.c - a program of a user: opens the installed library on the simulated GPU and prints its version
 */
#include <stdio.h>
#include <umadvise.h>

int main(void)
{
	struct umadv_options o;
	struct umadv *adv;
	void *p;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	if (umadv_open(&adv, &o) || umadv_alloc(adv, &p, 1 << 20, "x", UMADV_OTHER))
		return 1;
	umadv_close(adv);
	puts(umadv_version());
	return 0;
}
