/* SPDX-License-Identifier: Apache-2.0 */
#include "report_survey.h"

#include "formats/nsys.h"
#include "report/survey.h"

struct reading {
	struct um_survey survey;
	int (*progress)(void *user, uint64_t rows, uint64_t of);
	void *user;
};

static void again(void *user)
{
	struct reading *r = user;

	um_survey_reset(&r->survey);
}

static int show_progress(void *user, uint64_t rows, uint64_t of)
{
	struct reading *r = user;

	return r->progress(r->user, rows, of);
}

/* 0, 1: no iterations found, or -errno. */
static int look(const struct um_survey_options *o, struct reading *r, struct um_iteration_spans *f, const char *path)
{
	struct um_nsys_read_options ro = {.progress = show_progress,
					  .again = again,
					  .user = r,
					  .shapes = o->shapes,
					  .kinds = 1u << UM_ACT_KERNEL | 1u << UM_ACT_RANGE};
	struct um_capture capture;
	struct um_diag diag;
	int err, none;

	um_survey_init(&r->survey, o);
	err = um_nsys_read(path, &ro, &r->survey.sink, &capture, &diag);
	um_capture_fini(&capture);
	if (!err)
		err = um_survey_find(&r->survey, f);
	none = !err && !f->name && r->survey.kernels;
	for (size_t i = 0; i < f->processes.n && none; i++)
		none = !f->processes.at[i].spans.n;
	um_survey_fini(&r->survey);
	return none ? 1 : err;
}

int report_survey(struct um_report *r, struct um_iteration_spans *f, const char *path,
		  int (*progress)(void *user, uint64_t rows, uint64_t of), void *user)
{
	struct um_survey_options so = {
		.from = r->o.from, .to = r->o.to, .within = r->o.within, .no_ranges = r->o.seek == UM_SEEK_REPETITION};
	struct reading reading = {.progress = progress, .user = user};
	int got;

	um_iteration_spans_fini(f);
	r->o.found = NULL;
	if (r->o.seek != UM_SEEK_AUTO && r->o.seek != UM_SEEK_REPETITION)
		return 0;
	got = look(&so, &reading, f, path);
	if (got == 1) {
		/* Kernels of one name may differ in launch dimensions. */
		so.shapes = 1;
		um_iteration_spans_fini(f);
		got = look(&so, &reading, f, path);
	}
	if (got >= 0)
		r->o.found = f;
	return got == -ENOMEM ? got : 0;
}
