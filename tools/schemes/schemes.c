/* SPDX-License-Identifier: Apache-2.0 */
#include "schemes/schemes.h"

static const struct um_scheme peers[] = {
	{"vdnn", UM_VDNN_AS_NEEDED, 0, um_scheme_vdnn, NULL},
	{"vdnn-all", UM_VDNN_ALL, 0, um_scheme_vdnn, NULL},
	{"vdnn-conv", UM_VDNN_CONV, 0, um_scheme_vdnn, NULL},
	{"capuchin", 0, 0, um_scheme_capuchin, um_capuchin_drops},
	{"g10", 0, 0, um_scheme_g10, NULL},
	{"swapadvisor", 0, 0, um_scheme_swapadvisor, NULL},
};

void um_schemes_add(void)
{
	um_scheme_add(peers, sizeof peers / sizeof *peers);
}
