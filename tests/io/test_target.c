/* SPDX-License-Identifier: Apache-2.0
 *
 * Where output goes: one rule for files, links, pipes and devices; and what is left when a process ends in the middle.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/out.h"
#include "io/target.h"
#include "tap.h"

static char dir[] = "/tmp/um-target-XXXXXX";
static const char *how; /* of the temporaries */

static const char *in_dir(const char *name)
{
	static char path[4][256];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
	return path[turn];
}

static int entries(void)
{
	DIR *d = opendir(dir);
	int n = -2;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "w");

	fputs(text, f);
	fclose(f);
}

static int holds(const char *name, const char *text)
{
	char got[64] = "";
	FILE *f = fopen(in_dir(name), "r");

	if (f && fread(got, 1, sizeof got - 1, f) == 0)
		got[0] = '\0';
	if (f)
		fclose(f);
	return f && strcmp(got, text) == 0;
}

/* Writes `text` there. 0 or -errno. */
static int output(const char *name, const char *text)
{
	struct um_out *o;
	int rc = um_out_open(&o, in_dir(name), NULL);

	if (rc)
		return rc;
	um_out_str(o, text);
	return um_out_close(o, 1, NULL);
}

static void empty_dir(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s/*", dir);
	ok(system(command) == 0 && entries() == 0, "%s: the folder is empty, hidden files included", how);
}

/* --- the rule ----------------------------------------------------------------------------------------------------- */

static void test_files(void)
{
	struct stat st;
	mode_t mask = umask(027);

	is_int(output("new", "text"), 0, "%s: a new file is written", how);
	ok(!stat(in_dir("new"), &st) && (st.st_mode & 07777) == 0640, "%s: a new file respects the umask", how);
	put("old", "before");
	chmod(in_dir("old"), 0604);
	is_int(output("old", "after"), 0, "%s: an existing file is replaced", how);
	ok(holds("old", "after"), "%s: the file has the new content", how);
	ok(!stat(in_dir("old"), &st) && (st.st_mode & 07777) == 0604, "%s: the file keeps its permissions", how);
	put("old.tmp", "mine");
	output("old", "again");
	ok(holds("old.tmp", "mine"), "%s: a file of the name with .tmp stays", how);
	mkdir(in_dir("folder"), 0777);
	is_int(output("folder", "x"), -EISDIR, "%s: a folder is refused", how);
	is_int(output("none/x", "x"), -ENOENT, "%s: a file in no folder is refused", how);
	is_int(output("new/x", "x"), -ENOTDIR, "%s: a file in a file is refused", how);
	umask(mask);
	empty_dir();
}

static void test_links(void)
{
	struct stat st;

	put("file", "before");
	ok(!symlink("file", in_dir("link")), "%s: there is a link to a file", how);
	is_int(output("link", "after"), 0, "%s: a link is written through", how);
	ok(!lstat(in_dir("link"), &st) && S_ISLNK(st.st_mode), "%s: the link stays a link", how);
	ok(holds("file", "after"), "%s: the file that the link names is replaced", how);
	ok(!symlink(in_dir("late"), in_dir("dangling")) && !symlink("dangling", in_dir("second")),
	   "%s: there is a link to a link to no file", how);
	is_int(output("second", "made"), 0, "%s: a dangling link is written through", how);
	ok(!lstat(in_dir("dangling"), &st) && S_ISLNK(st.st_mode), "%s: the dangling link stays a link", how);
	ok(holds("late", "made"), "%s: the file that the dangling link names is created", how);
	ok(!symlink("loop", in_dir("loop")), "%s: there is a link to itself", how);
	is_int(output("loop", "x"), -ELOOP, "%s: a link to itself is refused", how);
	empty_dir();
}

static void test_devices(void)
{
	struct um_out *o;
	struct stat st;
	char got[8] = "";
	int fd;

	mkfifo(in_dir("fifo"), 0600);
	fd = open(in_dir("fifo"), O_RDWR);
	is_int(output("fifo", "text"), 0, "%s: a FIFO is written", how);
	ok(read(fd, got, 4) == 4 && strcmp(got, "text") == 0, "%s: the reader of the FIFO has the text", how);
	ok(!stat(in_dir("fifo"), &st) && S_ISFIFO(st.st_mode), "%s: the FIFO stays a FIFO", how);
	is_int(um_out_open(&o, in_dir("fifo"), NULL), 0, "%s: a FIFO is opened", how);
	close(fd);
	um_out_str(o, "more");
	is_int(um_out_close(o, 1, NULL), -EPIPE, "%s: a FIFO without a reader is an error, not the end", how);
	if (!symlink("/dev/full", in_dir("full")))
		is_int(output("full", "x"), -ENOSPC, "%s: a full device is an error", how);
	is_int(um_out_open(&o, "/dev/null", NULL), 0, "%s: /dev/null is opened", how);
	is_int(um_out_close(o, 1, NULL), 0, "%s: /dev/null is written", how);
	ok(!stat("/dev/null", &st) && S_ISCHR(st.st_mode), "%s: /dev/null stays a device", how);
	if (geteuid() == 0 && !mknod(in_dir("disk"), S_IFBLK | 0600, makedev(7, 200)))
		is_int(output("disk", "x"), -EPERM, "%s: a block device is refused", how);
	else
		skip(1, "only root can make a block device");
	empty_dir();
}

/* --- the end of a process ----------------------------------------------------------------------------------------- */

static int end_of(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void test_fork(void)
{
	struct um_out *o;
	pid_t pid;

	put("file", "before");
	um_out_open(&o, in_dir("file"), NULL);
	um_out_str(o, "after");
	pid = fork();
	if (!pid)
		_exit(um_out_close(o, 1, NULL) != -ECHILD);
	is_int(end_of(pid), 0, "%s: a forked child cannot commit its parent's file", how);
	ok(holds("file", "before"), "%s: the file is as before", how);
	pid = fork();
	if (!pid) {
		um_target_remove_named();
		um_out_close(o, 0, NULL);
		_exit(0);
	}
	end_of(pid);
	is_int(um_out_close(o, 1, NULL), 0, "%s: a child that discards and exits does not hinder its parent", how);
	ok(holds("file", "after"), "%s: the parent's text is in the file", how);
	is_int(entries(), 1, "%s: nothing else is in the folder", how);
	empty_dir();
}

static void on_term(int sig)
{
	um_target_remove_named();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void test_signals(void)
{
	struct um_out *o;
	pid_t pid = fork();

	if (!pid) {
		signal(SIGTERM, on_term);
		if (um_out_open(&o, in_dir("file"), NULL))
			_exit(1);
		um_out_str(o, "half");
		raise(um_target_always_named ? SIGTERM : SIGKILL);
		_exit(2);
	}
	is_int(WTERMSIG(end_of(pid)), um_target_always_named ? SIGTERM : SIGKILL,
	       "%s: a signal ends a process that writes", how);
	is_int(entries(), 0, "%s: a process that a signal ended leaves nothing", how);
}

static void test_limit(void)
{
	static char large[100000];
	struct rlimit limit = {65536, 65536};
	struct um_out *o;
	pid_t pid = fork();
	int rc;

	if (!pid) {
		memset(large, 'x', sizeof large);
		setrlimit(RLIMIT_FSIZE, &limit);
		if (um_out_open(&o, in_dir("file"), NULL))
			_exit(1);
		um_out_write(o, large, sizeof large);
		rc = um_out_close(o, 1, NULL);
		_exit(rc == -EFBIG ? 0 : 2);
	}
	is_int(end_of(pid), 0, "%s: the file size limit is an error, not the end", how);
	is_int(entries(), 0, "%s: a file over the limit leaves nothing", how);
}

static void test_scratch(void)
{
	char *name = NULL;
	int fd = -1;

	setenv("TMPDIR", dir, 1);
	is_int(um_target_scratch(&fd, &name), 0, "a scratch file is made");
	is_int(entries(), 1, "the scratch file lies in TMPDIR");
	ok(name && access(name, R_OK | W_OK) == 0, "the scratch file has the name that was given");
	close(fd);
	um_target_forget(name);
	is_int(entries(), 0, "the scratch file is removed");
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	for (int named = 0; named < 2; named++) {
		um_target_always_named = named;
		how = named ? "named" : "nameless";
		test_files();
		test_links();
		test_devices();
		test_fork();
		test_signals();
		test_limit();
	}
	test_scratch();
	rmdir(dir);
	return tap_done();
}
