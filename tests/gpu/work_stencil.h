/* SPDX-License-Identifier: Apache-2.0
 *
 * work_stencil.h - heat in a box, cut into slabs of planes; two buffers that swap
 */
#ifndef WORK_STENCIL_H
#define WORK_STENCIL_H

#include "work.h"

struct stencil_sweep {
	const float *below, *here, *above; /* slabs of the old buffer; NULL beyond the box */
	const float *conduct;
	float *out;
	long side, planes;

	BODY void operator()(long i) const
	{
		long plane = side * side, x = i % side, y = i / side % side, z = i / plane;
		float me = here[i], sum;

		sum = x > 0 ? here[i - 1] : me;
		sum += x < side - 1 ? here[i + 1] : me;
		sum += y > 0 ? here[i - side] : me;
		sum += y < side - 1 ? here[i + side] : me;
		sum += z > 0 ? here[i - plane] : below ? below[(planes - 1) * plane + i] : me;
		sum += z < planes - 1 ? here[i + plane] : above ? above[i - (planes - 1) * plane] : me;
		out[i] = me + (0.1f + 0.05f * conduct[i]) * (sum - 6 * me);
	}
};

/* `slabs` slabs of `planes` planes of `side` squared floats, three arrays of that. */
static inline struct work work_stencil(int slabs, long planes, long side)
{
	long n = planes * side * side;
	std::vector<int> heat[2], conduct;
	struct work w;

	w.name = "stencil";
	for (int s = 0; s < slabs; s++) {
		heat[0].push_back(w.add("a" + std::to_string(s), n * sizeof(float), UMADV_OTHER));
		heat[1].push_back(w.add("b" + std::to_string(s), n * sizeof(float), UMADV_OTHER));
		conduct.push_back(w.add("c" + std::to_string(s), n * sizeof(float), UMADV_PARAM));
		work_fill(&w, heat[0][s], 100);
		work_fill(&w, heat[1][s], 0);
		work_fill(&w, conduct[s], 1);
	}
	for (int turn = 0; turn < 2; turn++)
		for (int s = 0; s < slabs; s++) {
			int below = s ? heat[turn][s - 1] : -1, here = heat[turn][s], c = conduct[s];
			int above = s < slabs - 1 ? heat[turn][s + 1] : -1, out = heat[!turn][s];
			struct op o = {"sweep",
				       {{here, R}, {c, R}, {out, W}},
				       9.0 * (double)n,
				       [=](const struct work &k, stream_t stream) {
					       each(stream, n,
						    (struct stencil_sweep){
							    below < 0 ? NULL : k.at<float>(below), k.at<float>(here),
							    above < 0 ? NULL : k.at<float>(above), k.at<float>(c),
							    k.at<float>(out), side, planes});
				       }};

			if (below >= 0)
				o.uses.push_back({below, R});
			if (above >= 0)
				o.uses.push_back({above, R});
			w.step[turn].push_back(o);
		}
	return w;
}

#endif
