/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "io/log.h"
#include "formats/nsys.h"
#include "formats/sheets.h"
#include "report_form.h"
#include "report_survey.h"

static void again(void *user)
{
	um_report_reset(user);
}

static int read_it(struct um_report *r, struct um_iteration_spans *found, const char *path, struct um_capture *c,
		   struct um_diag *diag)
{
	const struct um_nsys_read_options ro = {.again = again, .user = r};
	const struct um_log_read_options lo = {0};
	int err;

	if (um_log_is(path))
		return um_log_read(path, &lo, &r->sink, c, diag);
	um_diag_init(diag, path);
	err = report_survey(r, found, path, NULL, NULL);
	return err ? err : um_nsys_read(path, &ro, &r->sink, c, diag);
}

/* Each cell has a value of its column's kind, or says that it has none. */
static void look(const struct um_findings *f)
{
	for (int t = 0; t < UM_TABLES; t++)
		for (size_t i = 0, n = um_table_rows(um_tables[t], f); i < n; i++)
			for (unsigned c = 0; c < um_tables[t]->n_columns; c++) {
				struct um_value v = um_table_cell(um_tables[t], f, i, c);

				if (um_tables[t]->columns[c].kind == UM_COLUMN_TEXT && !v.none && !v.text)
					abort();
			}
}

/* The document that the report would be is one that `umadvise diff` reads. */
static void write_and_read(const struct um_findings *f)
{
	struct report_args a = {.fail_on = -1};
	const struct report_view v = {.file = "fuzz", .findings = *f};
	struct um_sheets sheets = {0};
	struct um_diag diag;
	struct um_out *out;
	void *text = NULL;
	size_t bytes = 0;

	for (int t = 0; t < UM_TABLES; t++)
		a.tables[a.n_tables++].table = um_tables[t];
	if (um_out_open_mem(&out, 0))
		return;
	report_json(out, &a, &v);
	um_diag_init(&diag, "fuzz");
	if (um_out_take(out, &text, &bytes) == 0 && um_sheets_parse(&sheets, text, bytes, &diag) == -EINVAL)
		abort();
	um_sheets_fini(&sheets);
	free(text);
}

void fuzz_report(const char *path, int views)
{
	struct um_iteration_spans found = {0};
	struct um_report r;
	struct um_capture c;
	struct um_diag diag;
	int err;

	um_report_init(&r, &(struct um_report_options){.views = views});
	um_capture_init(&c);
	r.o.capture = r.causes.capture = &c;
	err = read_it(&r, &found, path, &c, &diag);
	if (!err)
		err = um_report_finish(&r);
	if (!err) {
		const struct um_findings f = {&r, &c, NULL};

		look(&f);
		write_and_read(&f);
	} else if (err == -EINVAL && (!*diag.text || strchr(diag.text, '\n'))) {
		abort();
	}
	um_capture_fini(&c);
	um_report_fini(&r);
	um_iteration_spans_fini(&found);
}
