/* SPDX-License-Identifier: Apache-2.0 */
#include "play_export.h"

#include "io/target.h"
#include "report_form.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int ends_in(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && strcmp(path + n - m, end) == 0;
}

int play_export_open(struct play_export *e, const char *path, const struct um_profile *device,
		     struct play_progress *progress, struct um_activity_sink **watch, struct um_diag *diag)
{
	int err, fd;

	*e = (struct play_export){.path = path, .progress = progress};
	um_diag_init(diag, path);
	if (ends_in(path, ".json") || ends_in(path, ".json.gz")) {
		err = um_target_scratch(&fd, &e->between);
		if (err)
			return um_diag_set(diag, -err, 0, "cannot write a temporary file: %s", strerror(-err));
		close(fd);
	}
	err = um_nsys_create(&e->writer, e->between ? e->between : path, device, diag);
	if (err)
		um_target_forget(e->between);
	else
		*watch = um_nsys_sink(e->writer);
	return err;
}

static int show(void *user, uint64_t rows, uint64_t of)
{
	play_progress_written(((struct play_export *)user)->progress, rows, of);
	return 0;
}

int play_export_close(struct play_export *e, int keep, struct um_diag *diag)
{
	int err = um_nsys_close(e->writer, keep, diag);

	if (!err && keep && e->between)
		err = report_perfetto_convert(e->between, e->path, show, e, diag);
	um_target_forget(e->between);
	return err;
}
