/* SPDX-License-Identifier: Apache-2.0
 *
 * umtrace: what events a file becomes, what file events become, and that writing and reading again changes nothing.
 */
#include "io/umtrace.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char tmp[64];

static const char *file_in(const char *name)
{
	static char path[2][512];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/%s", tmp, name);
	return path[turn];
}

static struct um_trace *load(const char *text)
{
	struct um_trace *t;
	struct um_diag d;

	if (um_trace_load_mem(&t, text, strlen(text), &d) == 0)
		return t;
	diag("refused: %" PRIu64 ": %s", d.line, d.text);
	tap_bail("a text of this test is refused");
}

static int same_str(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static int same_op(const struct um_op *a, const struct um_op *b)
{
	int same = same_str(a->name, b->name) && a->n_uses == b->n_uses && a->cost.flops == b->cost.flops &&
		   a->cost.bytes == b->cost.bytes && a->cost.ns == b->cost.ns && a->stream == b->stream &&
		   a->phase == b->phase && a->relaunchable == b->relaunchable && a->n_relaunch == b->n_relaunch &&
		   a->n_ws == b->n_ws;

	for (uint32_t i = 0; same && i < a->n_uses; i++)
		same = a->uses[i].id.v == b->uses[i].id.v && a->uses[i].off == b->uses[i].off &&
		       a->uses[i].bytes == b->uses[i].bytes && a->uses[i].touched == b->uses[i].touched &&
		       a->uses[i].access == b->uses[i].access;
	for (uint32_t i = 0; same && i < a->n_relaunch; i++)
		same = a->relaunch[i].v == b->relaunch[i].v;
	for (uint32_t i = 0; same && i < a->n_ws; i++)
		same = a->ws[i].bytes == b->ws[i].bytes && a->ws[i].ns == b->ws[i].ns;
	return same;
}

static int same_event(const struct um_event *a, const struct um_event *b)
{
	if (a->kind != b->kind)
		return 0;
	switch (a->kind) {
	case UM_EV_ALLOC:
		return a->alloc.id.v == b->alloc.id.v && a->alloc.bytes == b->alloc.bytes &&
		       a->alloc.role == b->alloc.role && same_str(a->alloc.name, b->alloc.name);
	case UM_EV_OP:
		return same_op(&a->op, &b->op);
	case UM_EV_ITER:
		return a->iter.n == b->iter.n && same_str(a->iter.name, b->iter.name);
	default:
		return a->free.id.v == b->free.id.v;
	}
}

/* The first event in which they differ; SIZE_MAX if they do not. */
static size_t first_difference(const struct um_trace *a, const struct um_trace *b)
{
	size_t n = um_trace_length(a);

	for (size_t i = 0; i < n && i < um_trace_length(b); i++)
		if (!same_event(um_trace_event(a, i), um_trace_event(b, i)))
			return i;
	return n == um_trace_length(b) ? SIZE_MAX : n;
}

static int write_trace(const struct um_trace *t, const char *path)
{
	struct um_sink *w;
	int rc = um_umtrace_writer_open(&w, path, um_trace_header(t)->source, um_trace_header(t)->workload, NULL);

	for (size_t i = 0; !rc && i < um_trace_length(t); i++)
		rc = um_sink_feed(w, um_trace_event(t, i));
	return rc ? rc : um_umtrace_writer_close(w, 1);
}

static void check_round_trip(const char *from, const char *to)
{
	struct um_trace *a, *b;
	struct um_diag d;

	if (!is_int(um_trace_load(&a, from, &d), 0, "%s is read", from))
		return;
	is_int(write_trace(a, to), 0, "the trace is written");
	if (is_int(um_trace_load(&b, to, &d), 0, "the written trace is read")) {
		is_int((long long)first_difference(a, b), -1, "the read trace equals the written one");
		is_str(um_trace_header(b)->source, um_trace_header(a)->source, "the source is the same after writing");
		is_str(um_trace_header(b)->workload, um_trace_header(a)->workload,
		       "the workload is the same after writing");
		is_u64(um_trace_peak_bytes(b), um_trace_peak_bytes(a), "the peak is the same after writing");
		um_trace_free(b);
	} else {
		diag("%" PRIu64 ": %s", d.line, d.text);
	}
	um_trace_free(a);
}

static void check_round_trips(void)
{
	static const char *const names[] = {
		"good-all-keys.umtrace",   "good-all-keys.umtrace.gz",		"good-host.umtrace",
		"good-members.umtrace.gz", "good-partly-touched-write.umtrace", "good-bare-header.umtrace",
		"resnet50.umtrace.gz",	   "cg_laplace3d.umtrace.gz",		"lstm_lm.umtrace.gz"};
	const char *top = getenv("top_srcdir");
	char from[1024];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(from, sizeof from, "%s/tests/data/%s", top ? top : ".", names[i]);
		check_round_trip(from, file_in(i % 2 ? "again.umtrace.gz" : "again.umtrace"));
	}
}

#define HEAD                                                                                                           \
	"{\"umtrace\":1}\n{\"ev\":\"alloc\",\"t\":0,\"bytes\":100}\n{\"ev\":\"alloc\",\"t\":1,\"bytes\":100,\"role\":" \
	"\"grad\"}\n"

static void check_events(void)
{
	struct um_trace *t =
		load(HEAD "{\"ev\":\"op\",\"name\":\"a\",\"r\":[0,1,[1,0,10],0],\"w\":[[1,0,10],[1,5,10],1],"
			  "\"touched\":{\"1\":7},\"relaunch\":[]}\n");
	const struct um_op *op = &um_trace_event(t, 2)->op;

	is_u64(um_trace_event(t, 0)->alloc.id.v, 1, "ids are t + 1");
	is_int(um_trace_event(t, 1)->alloc.role, UM_ROLE_GRAD, "the role is read");
	is_int(um_trace_event(t, 0)->alloc.role, UM_ROLE_OTHER, "no role is other");
	ok(!um_trace_event(t, 0)->alloc.name, "no name is none");
	is_int(op->n_uses, 4, "a range counts once, however often it is listed");
	ok(op->uses[0].id.v == 1 && op->uses[0].access == UM_READ && op->uses[0].bytes == 100,
	   "a read of a whole tensor is read");
	ok(op->uses[1].id.v == 2 && op->uses[1].access == UM_UPDATE && op->uses[1].bytes == 100,
	   "a tensor in both lists is updated");
	ok(op->uses[2].bytes == 10 && op->uses[2].access == UM_UPDATE, "a range in both lists is updated");
	ok(op->uses[3].off == 5 && op->uses[3].access == UM_UPDATE,
	   "written in part, scattered: what is not touched is kept");
	is_u64(op->uses[0].touched, 100, "a use without touched bytes touches all");
	is_u64(op->uses[1].touched, 7, "touched bytes are read");
	ok(op->relaunchable && op->n_relaunch == 0, "relaunch of nothing is said");
	um_trace_free(t);

	t = load(HEAD "{\"ev\":\"op\",\"name\":\"a\",\"r\":[],\"w\":[1],\"touched\":{\"1\":100}}\n");
	op = &um_trace_event(t, 2)->op;
	is_int(op->uses[0].access, UM_WRITE, "a tensor in the list of writes alone is overwritten");
	ok(!op->relaunchable && op->stream == 0 && op->phase == 0 && op->n_ws == 0, "missing keys have no value");
	um_trace_free(t);
}

static void check_sums(void)
{
	struct um_trace *t = load(HEAD "{\"ev\":\"op\",\"name\":\"small\",\"r\":[0,[0,0,5]],\"w\":[]}\n"
				       "{\"ev\":\"op\",\"name\":\"large\",\"r\":[0,[0,0,5]],\"w\":[[1,0,1]]}\n"
				       "{\"ev\":\"free\",\"t\":0}\n{\"ev\":\"iter\",\"n\":0}\n"
				       "{\"ev\":\"alloc\",\"t\":2,\"bytes\":99}\n{\"ev\":\"iter\",\"n\":1}\n");
	uint64_t bytes;

	is_u64(um_trace_peak_bytes(t), 101, "the peak counts the bytes of live tensors that ops use");
	is_u64(um_trace_iterations(t), 2, "the trace has two iterations");
	is_u64(um_trace_largest_op(t, &bytes), 3, "the largest op is found");
	is_u64(bytes, 101, "an op counts each byte of its ranges once");
	um_trace_free(t);
	t = load("{\"umtrace\":1}\n");
	is_u64(um_trace_largest_op(t, &bytes), SIZE_MAX, "an empty trace has no largest op");
	is_u64(bytes, 0, "an empty trace has no largest bytes");
	um_trace_free(t);
}

/* Two tensors of 64 MiB. An op reads 12 MiB of the first in two ranges that overlap and writes 8 MiB of the second; the
 * next one looks up 3 pages of the second. */
static void check_ranges(void)
{
	struct um_trace *t =
		load("{\"umtrace\":1}\n{\"ev\":\"alloc\",\"t\":0,\"bytes\":67108864}\n"
		     "{\"ev\":\"alloc\",\"t\":1,\"bytes\":67108864}\n"
		     "{\"ev\":\"op\",\"name\":\"slab\",\"r\":[[0,0,8388608],[0,4194304,8388608]],"
		     "\"w\":[[1,8388608,8388608]]}\n"
		     "{\"ev\":\"op\",\"name\":\"look up\",\"r\":[1],\"w\":[],\"touched\":{\"1\":12288}}\n");
	uint64_t bytes;

	is_u64(um_trace_largest_op(t, &bytes), 2, "the op with the most bytes in its ranges is the largest");
	is_u64(bytes, 20 << 20, "ranges of one tensor count once where they overlap");
	is_u64(um_trace_peak_bytes(t), (12 + 8 + 6) << 20,
	       "the peak counts ranges, and of a look-up one block for each page");
	um_trace_free(t);
}

static int entries(const char *dir)
{
	struct dirent **names;
	int n = scandir(dir, &names, NULL, NULL);

	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return n - 2;
}

static char *contents(const char *path)
{
	static char text[4096];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = '\0';
	return f ? text : NULL;
}

static void check_writing(void)
{
	const char *path = file_in("one.umtrace");
	struct um_event alloc = {.kind = UM_EV_ALLOC, .alloc = {.id = {5}, .bytes = 8, .name = "a\"\\\n\xff"}};
	struct um_event dead = {.kind = UM_EV_DEAD, .free = {.id = {5}}};
	struct um_event iter = {.kind = UM_EV_ITER, .iter = {.n = 17, .name = "train"}};
	struct um_use use = {.id = {5}, .off = 0, .bytes = 8, .touched = 3, .access = UM_UPDATE};
	struct um_event op = {.kind = UM_EV_OP,
			      .op = {.name = "x", .uses = &use, .n_uses = 1, .cost = {0.1, 1e300, 0}}};
	struct um_sink *w;
	int n = entries(tmp);

	is_int(um_umtrace_writer_open(&w, path, "us", NULL, NULL), 0, "a writer opens");
	ok(access(path, F_OK) != 0, "the file is not there before it is whole");
	is_int(um_sink_feed(w, &alloc), 0, "an alloc is written");
	is_int(um_sink_feed(w, &dead), 0, "a dead event is written");
	is_int(um_sink_feed(w, &iter), 0, "an iteration is written");
	is_int(um_sink_feed(w, &op), 0, "an op is written");
	is_int(um_umtrace_writer_close(w, 1), 0, "the file is closed");
	is_str(contents(path),
	       "{\"umtrace\":1,\"source\":\"us\"}\n"
	       "{\"ev\":\"alloc\",\"t\":4,\"bytes\":8,\"name\":\"a\\\"\\\\\\u000a\xef\xbf\xbd\"}\n"
	       "{\"ev\":\"iter\",\"n\":0,\"name\":\"train\"}\n"
	       "{\"ev\":\"op\",\"name\":\"x\",\"r\":[4],\"w\":[4],\"touched\":{\"4\":3},\"flops\":0.1,\"bytes\":1e+300}"
	       "\n",
	       "the text is the written one");
	is_int(entries(tmp), n + 1, "no other file is left beside it");
}

static void check_no_half_files(void)
{
	struct um_event op = {.kind = UM_EV_OP, .op = {.name = "x"}};
	struct um_event gone = {.kind = UM_EV_FREE, .free = {.id = {3}}};
	const char *path = file_in("one.umtrace");
	struct um_sink *w;
	struct um_diag d;
	char was[4096];
	int n = entries(tmp);

	strcpy(was, contents(path));
	is_int(um_umtrace_writer_open(&w, path, NULL, NULL, NULL), 0, "a writer over a file that is there");
	is_int(um_sink_feed(w, &op), 0, "an op is written");
	is_int(um_umtrace_writer_close(w, 0), 0, "the file is discarded");
	is_str(contents(path), was, "the file is as it was");
	is_int(entries(tmp), n, "no file is left in the folder");

	um_umtrace_writer_open(&w, path, NULL, NULL, NULL);
	is_int(um_sink_feed(w, &gone), -EINVAL, "an event that makes no sense is refused");
	is_int(um_sink_feed(w, &op), -EINVAL, "an invalid op ends the file");
	is_int(um_umtrace_writer_close(w, 1), -EINVAL, "a file that ended early is not kept");
	is_str(contents(path), was, "the file is as it was");
	is_int(entries(tmp), n, "no file is left in the folder");

	is_int(um_umtrace_writer_open(&w, file_in("no/such/dir.umtrace"), NULL, NULL, &d), -ENOENT,
	       "a missing folder is refused");
	ok(strstr(d.text, "cannot write") && strstr(d.file, "no/such"), "the diagnostic names the file");
}

/* What is no file is written where it is: renaming over a device would be the end of the device. */
static void check_no_file(void)
{
	struct um_event op = {.kind = UM_EV_OP, .op = {.name = "x"}};
	const char *path = file_in("pipe.umtrace");
	char got[256] = "";
	struct um_sink *w;
	struct stat st;
	int fd;

	if (mkfifo(path, 0600)) {
		skip(4, "no pipes with a name here");
		return;
	}
	fd = open(path, O_RDWR | O_NONBLOCK);
	is_int(um_umtrace_writer_open(&w, path, NULL, NULL, NULL), 0, "a writer opens a pipe");
	um_sink_feed(w, &op);
	is_int(um_umtrace_writer_close(w, 1), 0, "the pipe is closed");
	ok(read(fd, got, sizeof got - 1) > 0 && strncmp(got, "{\"umtrace\":1}\n", 14) == 0, "comes out of it");
	ok(stat(path, &st) == 0 && S_ISFIFO(st.st_mode), "the pipe is still a pipe");
	close(fd);
	unlink(path);
}

static void check_no_room(void)
{
	struct um_event op = {.kind = UM_EV_OP, .op = {.name = "x"}};
	struct rlimit was, small = {10, 10};
	int n = entries(tmp), rc;
	struct um_sink *w;

	getrlimit(RLIMIT_FSIZE, &was);
	small.rlim_max = was.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	um_umtrace_writer_open(&w, file_in("large.umtrace"), NULL, NULL, NULL);
	um_sink_feed(w, &op);
	setrlimit(RLIMIT_FSIZE, &small);
	rc = um_umtrace_writer_close(w, 1);
	setrlimit(RLIMIT_FSIZE, &was); /* before anything is printed: it may go to a file */
	is_int(rc, -EFBIG, "a full file is reported");
	is_int(entries(tmp), n, "no file is left of it");
}

static int stop_at_op(struct um_sink *sink, const struct um_event *ev)
{
	(void)sink;
	return ev->kind == UM_EV_OP ? -ENOSPC : 0;
}

static void check_sink_errors(void)
{
	static const char text[] = "{\"umtrace\":1,\"source\":\"s\"}\n{\"ev\":\"iter\",\"n\":0}\n"
				   "{\"ev\":\"op\",\"name\":\"a\",\"r\":[],\"w\":[]}\n{\"ev\":\"nonsense\"}\n";
	struct um_sink sink = {stop_at_op};
	struct um_umtrace_header h;
	struct um_diag d;

	is_int(um_umtrace_read_mem(text, strlen(text), &sink, &h, &d), -ENOSPC,
	       "an error of the sink ends the reading");
	is_u64(d.line, 3, "the diagnostic has the line");
	ok(!h.source, "no header is left behind");
	is_int(um_umtrace_read_mem(text, strlen(text), &sink, NULL, NULL), -ENOSPC, "header and diag may be absent");
	is_int(um_umtrace_read(file_in("nobody"), &sink, NULL, &d), -ENOENT, "a missing file is refused");
	is_int(um_umtrace_read(tmp, &sink, NULL, &d), -EISDIR, "a folder is refused");
}

/* A program may have set a locale in which 0.5 is written 0,5. */
static void check_locale(void)
{
	static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "de_DE"};
	const char *set = NULL;
	struct um_trace *t;

	for (size_t i = 0; i < sizeof names / sizeof *names && !set; i++)
		set = setlocale(LC_ALL, names[i]);
	if (!set) {
		skip(2, "no locale with a decimal comma");
		return;
	}
	t = load(HEAD "{\"ev\":\"op\",\"name\":\"a\",\"r\":[],\"w\":[],\"flops\":0.5}\n");
	write_trace(t, file_in("locale.umtrace"));
	ok(strstr(contents(file_in("locale.umtrace")), "\"flops\":0.5}"), "written with a point");
	ok(um_trace_event(t, 2)->op.cost.flops == 0.5, "read with a point");
	um_trace_free(t);
	setlocale(LC_ALL, "C");
}

int main(void)
{
	char command[128];

	strcpy(tmp, "umtrace-XXXXXX");
	if (!mkdtemp(tmp))
		tap_bail("no folder to write to");
	check_events();
	check_sums();
	check_ranges();
	check_writing();
	check_no_half_files();
	check_no_file();
	check_no_room();
	check_round_trips();
	check_sink_errors();
	check_locale();
	snprintf(command, sizeof command, "rm -rf '%s'", tmp);
	ok(system(command) == 0, "the folder is removed");
	return tap_done();
}
