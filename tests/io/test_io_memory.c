/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory runs out somewhere in reading or writing: it is said, nothing is lost, no half file is left, and the next try
 * succeeds. By itself this test only runs the workload; tests/io/io_memory.sh runs it with each allocation failing in
 * turn.
 */
#include "io/plan_file.h"
#include "io/profile_file.h"
#include "io/umtrace.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long failmalloc_live(void) __attribute__((weak));

static const char trace_text[] = "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"small\"}\n"
				 "{\"ev\":\"alloc\",\"t\":0,\"bytes\":64,\"name\":\"x\",\"role\":\"act\"}\n"
				 "{\"ev\":\"alloc\",\"t\":1,\"bytes\":64}\n"
				 "{\"ev\":\"iter\",\"n\":0,\"name\":\"train\"}\n"
				 "{\"ev\":\"op\",\"name\":\"a\",\"r\":[0],\"w\":[[1,0,8],1],\"touched\":{\"0\":5},"
				 "\"relaunch\":[1],\"ws\":[[1,2]]}\n"
				 "{\"ev\":\"free\",\"t\":0}\n";

static const char plan_text[] =
	"{\"umplan\":1,\"source\":\"s\",\"signature\":\"ab\",\"ops\":1,\"slots\":2,\"budget\":99,\"h2d\":1e9,\"d2h\":"
	"1e9}\n"
	"{\"ev\":\"slot\",\"s\":0,\"bytes\":64,\"birth\":-1,\"death\":-1,\"name\":\"x\"}\n"
	"{\"ev\":\"slot\",\"s\":1,\"bytes\":64,\"birth\":0,\"death\":1}\n"
	"{\"ev\":\"op\",\"i\":0,\"name\":\"a\",\"r\":[0],\"w\":[1],\"order\":[1,0],\"ns\":5}\n"
	"{\"ev\":\"hint\",\"at\":0,\"after\":-1,\"kind\":\"prefetch\",\"s\":0,\"off\":0,\"bytes\":64}\n";

static const char profile_text[] =
	"name = x\ncapacity = 1 GiB\nflops = 1e12\nmem_bandwidth = 1e9\nlaunch_ns = 1\nh2d = 1e9\nd2h = 1e9\n";

static char path[] = "io_memory-XXXXXX/file.gz";

/* What a failed allocation inside the JSON parser is taken for is not ours to say: some are told as a wrong text. */
static int may_fail_so(int rc)
{
	return rc == -ENOMEM || rc == -EINVAL;
}

static int trace_once(int *failed)
{
	struct um_umtrace_header h;
	struct um_trace *t;
	struct um_sink *w;
	struct um_diag d;
	int rc = um_trace_load_mem(&t, trace_text, strlen(trace_text), &d);

	if (rc) {
		*failed = 1;
		return may_fail_so(rc) && d.text[0];
	}
	h = *um_trace_header(t);
	rc = um_umtrace_writer_open(&w, path, h.source, h.workload, &d);
	if (!rc) {
		for (size_t i = 0; !rc && i < um_trace_length(t); i++)
			rc = um_sink_feed(w, um_trace_event(t, i));
		if (rc)
			um_umtrace_writer_close(w, 0);
		else
			rc = um_umtrace_writer_close(w, 1);
	}
	um_trace_free(t);
	*failed = rc != 0;
	return rc == 0 || rc == -ENOMEM;
}

static int plan_once(int *failed)
{
	struct um_plan p;
	struct um_diag d;
	int rc, fine;

	um_plan_init(&p);
	rc = um_plan_read_mem(plan_text, strlen(plan_text), &p, &d);
	fine = rc ? may_fail_so(rc) && d.text[0] && p.sched.slots.n == 0 : p.sched.slots.n == 2 && p.hints.n == 1;
	if (!rc) {
		rc = um_plan_write(path, &p, &d);
		fine = fine && (rc == 0 || (rc == -ENOMEM && d.text[0]));
	}
	um_plan_fini(&p);
	*failed = rc != 0;
	return fine;
}

static int profile_once(int *failed)
{
	struct um_profile p;
	struct um_diag d;
	int rc = um_profile_read_mem(profile_text, strlen(profile_text), "memory", &p, &d);

	if (!rc)
		rc = um_profile_write(path, &p, NULL, &d);
	*failed = rc != 0;
	return rc == 0 || (rc == -ENOMEM && d.text[0]);
}

/* Files in our folder, and away with them. */
static int sweep(void)
{
	char file[512];
	struct dirent *e;
	DIR *dir;
	int n = 0;

	*strchr(path, '/') = '\0';
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		n++;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		unlink(file);
	}
	if (dir)
		closedir(dir);
	path[strlen(path)] = '/';
	return dir ? n : -1;
}

static int run(const char *what, int (*once)(int *failed))
{
	long live = failmalloc_live ? failmalloc_live() : 0;
	int failed = 0, fine = once(&failed), files;

	if (failmalloc_live && failmalloc_live() != live) {
		printf("not ok - %s leaks %ld\n", what, failmalloc_live() - live);
		return 1;
	}
	files = sweep();
	if (!fine || (files >= 0 && files != !failed)) { /* the sweep needs memory too */
		printf("not ok - %s: %s, %d files\n", what, fine ? "fine" : "a wrong word", files);
		return 1;
	}
	if (!failed)
		return 0;
	fine = once(&failed) && !failed;
	sweep();
	printf("%s - %s: the next try succeeds\n", fine ? "ok" : "not ok", what);
	return !fine;
}

int main(void)
{
	int bad;

	setvbuf(stdout, NULL, _IONBF, 0); /* printf must not be what fails */
	*strchr(path, '/') = '\0';
	if (!mkdtemp(path))
		return 99;
	path[strlen(path)] = '/';
	bad = run("umtrace", trace_once) | run("umplan", plan_once) | run("profile", profile_once);
	sweep(); /* the one before may have had no memory */
	*strchr(path, '/') = '\0';
	rmdir(path);
	printf("%s 1 - memory may run out\n1..1\n", bad ? "not ok" : "ok");
	return bad;
}
