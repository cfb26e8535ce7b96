/* SPDX-License-Identifier: Apache-2.0 */
#include "schemes/schemes.h"

static const struct um_scheme peers[] = {
	{"vdnn", UM_VDNN_AS_NEEDED, 0, um_scheme_vdnn},
	{"vdnn-all", UM_VDNN_ALL, 0, um_scheme_vdnn},
	{"vdnn-conv", UM_VDNN_CONV, 0, um_scheme_vdnn},
	{"capuchin", 0, 0, um_scheme_capuchin},
	{"g10", 0, 0, um_scheme_g10},
	{"swapadvisor", 0, 0, um_scheme_swapadvisor},
};

void um_schemes_add(void)
{
	um_scheme_add(peers, sizeof peers / sizeof *peers);
}
