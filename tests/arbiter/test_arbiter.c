/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the contexts of a device. Several arbiters of one process are as good as those of several: locks belong
 * to open files.
 */
#include "arbiter/arbiter.h"

#include "runtime_directory.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 100
#define DEVICE "test-device"

static const struct um_arbiter_claim all = {UINT64_MAX, UINT64_MAX, 1};

/* --- failures ----------------------------------------------------------------------------------------------------- */

static int fail_at; /* the number of the call to fail, counted down; 0: none */

static int fails(void)
{
	return fail_at && !--fail_at;
}

#define WRAP_INT(name, params, args)                                                                                   \
	int __real_##name params;                                                                                      \
	int __wrap_##name params;                                                                                      \
	int __wrap_##name params                                                                                       \
	{                                                                                                              \
		if (!fails())                                                                                          \
			return __real_##name args;                                                                     \
		errno = EIO;                                                                                           \
		return -1;                                                                                             \
	}

WRAP_INT(open, (const char *path, int flags, unsigned mode), (path, flags, mode))
WRAP_INT(fcntl, (int fd, int cmd, void *arg), (fd, cmd, arg))
WRAP_INT(mkdir, (const char *path, unsigned mode), (path, mode))

int __real_posix_fallocate(int fd, off_t at, off_t n);
int __wrap_posix_fallocate(int fd, off_t at, off_t n);
int __wrap_posix_fallocate(int fd, off_t at, off_t n)
{
	return fails() ? ENOSPC : __real_posix_fallocate(fd, at, n);
}

void *__real_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at);
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at);
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
	if (!fails())
		return __real_mmap(p, n, prot, flags, fd, at);
	errno = ENOMEM;
	return MAP_FAILED;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* --- the tests ---------------------------------------------------------------------------------------------------- */

static void join(struct um_arbiter *a, const struct um_arbiter_claim *claim)
{
	int err = um_arbiter_open(a, DEVICE, BLOCKS, claim);

	if (err) {
		printf("# %s\n", strerror(-err));
		tap_bail("no arbiter");
	}
}

/* As a context does at the end of each iteration, if it evicts at once. 1: it had news. */
static int iterate(struct um_arbiter *a, const struct um_arbiter_claim *claim)
{
	if (!um_arbiter_has_news(a) || um_arbiter_look(a, claim))
		return 0;
	if (a->held > a->target)
		um_arbiter_confirm(a, a->target);
	return 1;
}

static int exists(const char *path)
{
	return !access(path, F_OK);
}

static void two(void)
{
	struct um_arbiter a, b;
	struct stat st;
	uint64_t before;

	join(&a, &all);
	is_u64(a.held, BLOCKS, "the first context holds the whole device");
	is_int(um_arbiter_has_news(&a), 0, "a context that is alone has no news");
	is_int(stat(a.path, &st), 0, "the file is in the runtime directory");
	is_int(st.st_mode & 0777, 0600, "only the user may read and write it");
	before = a.table->generation;
	for (int i = 0; i < 100; i++)
		iterate(&a, &all);
	is_u64(a.table->generation, before, "a context that is alone changes nothing");

	join(&b, &all);
	is_u64(b.held, 0, "a second one begins with what is free: nothing");
	is_u64(b.target, BLOCKS / 2, "half of the device is to be its own");
	is_int(um_arbiter_look(&b, &all), 0, "it asks again");
	is_u64(b.held, 0, "it gets nothing before the first one has given it up");
	is_int(um_arbiter_look(&a, &all), 0, "the first one looks");
	is_u64(a.target, BLOCKS / 2, "it is to keep half");
	is_u64(a.held, BLOCKS, "it holds all until it confirms");
	um_arbiter_confirm(&a, a.target);
	ok(um_arbiter_has_news(&b), "that is news for the second one");
	iterate(&b, &all);
	is_u64(b.held, BLOCKS / 2, "it takes its half");

	um_arbiter_close(&b);
	ok(um_arbiter_has_news(&a), "a context that leaves is news");
	iterate(&a, &all);
	is_u64(a.held, BLOCKS, "its half returns");
	is_u64(a.others, 0, "the first one is alone again");
	um_arbiter_close(&a);
	ok(!exists(a.path), "the last one removes the file");
	ok(!um_arbiter_has_news(&a), "an arbiter that has left has no news");
}

static void claims(void)
{
	struct um_arbiter_claim small = {10, UINT64_MAX, 1}, limited = {UINT64_MAX, 30, 1},
				heavy = {UINT64_MAX, UINT64_MAX, 3};
	struct um_arbiter a, b;

	join(&a, &all);
	join(&b, &small);
	iterate(&a, &all);
	iterate(&b, &small);
	is_u64(a.held + b.held, BLOCKS, "nothing is left over");
	is_u64(b.held, 10, "a context gets what it needs");
	small.need = 20;
	um_arbiter_look(&b, &small);
	is_u64(b.held, 10, "one that needs more waits for it");
	is_int(iterate(&a, &all), 1, "the other one learns of it");
	iterate(&b, &small);
	is_u64(b.held, 20, "then it gets it");
	um_arbiter_look(&b, &limited);
	iterate(&a, &all);
	iterate(&b, &limited);
	is_u64(b.held, 30, "a limit is kept");
	um_arbiter_look(&b, &heavy);
	iterate(&a, &all);
	iterate(&b, &heavy);
	is_u64(b.held, 75, "a weight of 3 gets three quarters");
	um_arbiter_close(&a);
	um_arbiter_close(&b);
}

/* Waits until the locks of the others may be looked at again. */
static void pause_check(unsigned others)
{
	nanosleep(&(struct timespec){.tv_nsec = 2 * (long)UM_ARBITER_CHECK_NS * others}, NULL);
}

/* A child that takes part until it is killed; `locks`: with the lock of the table. */
static pid_t start_child(int locks)
{
	int ready[2];
	char c;
	pid_t pid;

	if (pipe(ready))
		tap_bail("no pipe");
	pid = fork();
	if (!pid) {
		struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
		struct um_arbiter a;

		join(&a, &all);
		if (locks)
			fcntl(a.fd, F_OFD_SETLK, &l);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (pid < 0 || read(ready[0], &c, 1) != 1)
		tap_bail("no child");
	close(ready[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void killed(void)
{
	struct um_arbiter a, b;
	pid_t pid;

	join(&a, &all);
	pid = start_child(0);
	iterate(&a, &all);
	is_u64(a.held, BLOCKS / 2, "half is left to a context of another process");
	end_child(pid);
	pause_check(1);
	is_int(iterate(&a, &all), 1, "its death is noticed within an iteration");
	is_u64(a.held, BLOCKS, "its half returns at once");
	is_u64(a.others, 0, "its slot is free");

	pid = start_child(1);
	is_int(um_arbiter_look(&a, &all), -EBUSY,
	       "a process that stands still with the table's lock does not stop others");
	is_int(um_arbiter_confirm(&a, 50), -EBUSY, "neither does it where they give something up");
	is_u64(a.held, BLOCKS, "which then is not given up");
	end_child(pid);
	is_int(iterate(&a, &all), 1, "its end releases the lock");
	is_u64(a.held, BLOCKS, "the device is whole again");
	um_arbiter_close(&a);

	pid = start_child(0);
	end_child(pid);
	ok(exists(a.path), "a process that is killed leaves its file");
	is_int(um_arbiter_open(&a, DEVICE, 40, &all), 0, "the next context uses the file");
	is_u64(a.held, 40, "it finds an empty table, and says how large the device is");
	is_int(um_arbiter_open(&b, DEVICE, 70, &all), 0, "a second one joins");
	is_u64(b.table->blocks, 40, "only the first one says that");
	um_arbiter_close(&b);
	um_arbiter_close(&a);
	ok(!exists(a.path), "then it is removed");
}

static void forked(void)
{
	struct um_arbiter a, b;
	int status = -1;
	pid_t pid;

	join(&a, &all);
	join(&b, &all);
	iterate(&a, &all);
	pid = fork();
	if (!pid) {
		um_arbiter_abandon(&a);
		um_arbiter_abandon(&b);
		for (;;)
			pause();
	}
	um_arbiter_close(&b);
	iterate(&a, &all);
	is_u64(a.held, BLOCKS, "a forked child keeps no lock of its parent");
	end_child(pid);
	pid = fork();
	if (!pid) {
		um_arbiter_abandon(&a);
		join(&b, &all);
		_exit(b.held == 0 && b.slot != a.slot ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	is_int(status, 0, "a forked child may take part itself");
	um_arbiter_close(&a);
}

static void full(void)
{
	static struct um_arbiter a[UM_ARBITER_MOST + 1];
	unsigned n = 0;
	int err;

	while (n <= UM_ARBITER_MOST && !(err = um_arbiter_open(&a[n], DEVICE, BLOCKS, &all)))
		n++;
	is_int(n, UM_ARBITER_MOST, "%d contexts share a device", UM_ARBITER_MOST);
	is_int(err, -ENOSPC, "one more takes no part");
	ok(!a[n].table && !um_arbiter_has_news(&a[n]), "it has no news");
	um_arbiter_close(&a[7]);
	is_int(um_arbiter_open(&a[7], DEVICE, BLOCKS, &all), 0, "a slot is used again");
	is_int(a[7].slot, 7, "it is the one that was left");
	for (unsigned i = 0; i < n; i++)
		um_arbiter_close(&a[i]);
	ok(!exists(a[0].path), "the file is removed after all of them");
}

static void files(void)
{
	struct um_arbiter a, b;
	char path[300];
	uint64_t other = 42;
	int fd;

	join(&a, &all);
	snprintf(path, sizeof path, "%s", a.path);
	fd = open(path, O_RDWR);
	is_int((int)pwrite(fd, &other, sizeof other, 0), sizeof other, "the file of another version, in use");
	is_int(um_arbiter_open(&b, DEVICE, BLOCKS, &all), -EPROTO, "a context of this version takes no part");
	um_arbiter_close(&a);
	is_int(ftruncate(fd, 0), 0, "an empty file");
	close(fd);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	is_int((int)pwrite(fd, &other, sizeof other, 0), sizeof other, "a short file of another version, not in use");
	close(fd);
	is_int(um_arbiter_open(&a, DEVICE, BLOCKS, &all), 0, "it is used");
	is_u64(a.held, BLOCKS, "as if it were new");
	um_arbiter_close(&a);

	is_int(symlink("/dev/null", path), 0, "a symbolic link in its place");
	is_int(um_arbiter_open(&a, DEVICE, BLOCKS, &all), -ELOOP, "it is not followed");
	unlink(path);
	is_int(mkfifo(path, 0600), 0, "a pipe in its place");
	is_int(um_arbiter_open(&a, DEVICE, BLOCKS, &all), -EPERM, "it is refused");
	unlink(path);
	join(&a, &all);
	unlink(path);
	join(&b, &all);
	um_arbiter_close(&a);
	ok(exists(path), "a context whose file was removed by hand does not remove another one");
	um_arbiter_close(&b);
	ok(!exists(path), "that one's last context does");
}

/* The user's directory where XDG_RUNTIME_DIR is no good. */
static void directories(void)
{
	char dir[300], own[60];
	struct um_arbiter a;
	struct stat st;

	snprintf(dir, sizeof dir, "%s", getenv("XDG_RUNTIME_DIR"));
	snprintf(own, sizeof own, "/tmp/umadvise-%u/", (unsigned)geteuid());
	chmod(dir, 0777);
	join(&a, &all);
	ok(!strncmp(a.path, own, strlen(own)), "a directory that others may write is not used");
	snprintf(own, sizeof own, "/tmp/umadvise-%u", (unsigned)geteuid());
	is_int(stat(own, &st), 0, "there is one of the user's own");
	is_int(st.st_mode & 0777, 0700, "which only the user may use");
	um_arbiter_close(&a);
	ok(!exists(a.path), "the file is removed from it");
	chmod(dir, 0700);
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	join(&a, &all);
	ok(a.own_directory, "a relative path is not used");
	um_arbiter_close(&a);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	join(&a, &all);
	ok(!a.own_directory, "the runtime directory is used");
	um_arbiter_close(&a);
}

static void failures(void)
{
	int before = count_fds(), err = -1, n = 0, wrong = 0;
	struct um_arbiter a, b;

	while (err) {
		fail_at = ++n;
		err = um_arbiter_open(&a, DEVICE, BLOCKS, &all);
		fail_at = 0;
		wrong += err && (a.table || um_arbiter_has_news(&a));
		wrong += !err && a.held > BLOCKS;
	}
	ok(n > 3, "%d calls of the system can fail as a context joins", n - 1);
	is_int(wrong, 0, "after each failure it takes no part");
	is_int(count_fds(), before + 1, "no file stays open");
	join(&b, &all);
	for (int i = 1; i < 12; i++) {
		fail_at = i;
		iterate(&a, &all);
		iterate(&b, &all);
		fail_at = 0;
		wrong += a.table->slots[0].held + a.table->slots[1].held > BLOCKS;
		um_arbiter_look(&a, &(struct um_arbiter_claim){(uint64_t)i * 5, UINT64_MAX, 1});
	}
	is_int(wrong, 0, "no failure makes more than the device");
	fail_at = 1;
	um_arbiter_close(&b); /* cannot lock the table */
	fail_at = 0;
	pause_check(1);
	iterate(&a, &all);
	is_u64(a.held, BLOCKS, "a context that could not leave in order counts as ended");
	um_arbiter_close(&a);
	is_int(count_fds(), before, "all is closed");
}

int main(void)
{
	runtime_directory();
	two();
	claims();
	killed();
	forked();
	full();
	files();
	directories();
	failures();
	return tap_done();
}
