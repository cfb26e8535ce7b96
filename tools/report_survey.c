/* SPDX-License-Identifier: Apache-2.0 */
#include "report_survey.h"

#include "io/nsys.h"
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

int report_survey(struct um_report *r, struct um_found *f, const char *path,
                  int (*progress)(void *user, uint64_t rows, uint64_t of), void *user)
{
	const struct um_survey_options so = {.from = r->o.from,
	                                     .to = r->o.to,
	                                     .within = r->o.within,
	                                     .no_ranges = r->o.seek == UM_SEEK_REPETITION};
	struct reading reading = {.progress = progress, .user = user};
	struct um_nsys_read_options ro = {.progress = show_progress,
	                                  .again = again,
	                                  .user = &reading,
	                                  .kinds = 1u << UM_ACT_KERNEL | 1u << UM_ACT_RANGE};
	struct um_capture capture;
	struct um_diag diag;
	int err;

	um_found_fini(f);
	r->o.found = NULL;
	if (r->o.seek != UM_SEEK_AUTO && r->o.seek != UM_SEEK_REPETITION)
		return 0;
	um_survey_init(&reading.survey, &so);
	err = um_nsys_read(path, &ro, &reading.survey.sink, &capture, &diag);
	um_capture_fini(&capture);
	if (!err)
		err = um_survey_find(&reading.survey, f);
	if (!err)
		r->o.found = f;
	um_survey_fini(&reading.survey);
	return err == -ENOMEM ? err : 0;
}
