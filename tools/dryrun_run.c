/* SPDX-License-Identifier: Apache-2.0
 *
 * The program runs as a child with a directory of the tool first in LD_LIBRARY_PATH, where libcuda.so.1 is a link to
 * the stand-in. Signals sent to the tool are forwarded; the terminal's signals reach the program directly.
 */
#include "dryrun.h"

#include "program.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE};

#define N_PASSED (sizeof passed_on / sizeof *passed_on)

static volatile sig_atomic_t child;
static sigset_t mask; /* before the directory existed */

int dryrun_find_driver(struct dryrun *d)
{
	static const char *const places[] = {"../standin/libcuda.so.1", "../../standin/libcuda.so.1", NULL};

	if (program_part(places, "libumadvise-standin.so", d->driver))
		return 0;
	tool_say("dryrun", "the stand-in driver is not installed (%s)", UM_PKGLIBDIR "/libumadvise-standin.so");
	return PROGRAM_FAILED;
}

static void signals(sigset_t *out)
{
	sigemptyset(out);
	for (size_t i = 0; i < N_PASSED; i++)
		sigaddset(out, passed_on[i]);
}

/* A library for the stand-in, such as "cudart" 13, installed beside the driver or in the build tree. */
static int library_find(const struct dryrun *d, const char *name, int major, char out[PATH_MAX])
{
	int dir = (int)(strrchr(d->driver, '/') - d->driver), runtime = !strcmp(name, "cudart");
	char try[PATH_MAX + 64];

	snprintf(try, sizeof try, "%.*s/libumadvise-standin-%s%d.so", dir, d->driver, runtime ? "rt" : name, major);
	if (realpath(try, out))
		return 1;
	snprintf(try, sizeof try, "%.*s/../%s%d/.libs/lib%s.so.%d", dir, d->driver, runtime ? "rt" : "libs", major,
		 name, major);
	return realpath(try, out) != NULL;
}

/* 0 or -1 with errno. A library that was not built is left out; the program then loads another one, which refuses the
 * driver. */
static int folder_fill(const struct dryrun *d)
{
	static const char *const libraries[] = {"cudart", "cublas", "cublasLt", "cupti", "cusparse"};
	/* Programs that ask for other names do not find a library. */
	static const char *const names[] = {"libcuda.so.1", "libcuda.so"};
	char link[sizeof d->folder + 32], to[PATH_MAX];

	for (size_t i = 0; i < 2; i++) {
		snprintf(link, sizeof link, "%s/%s", d->folder, names[i]);
		if (symlink(d->driver, link))
			return -1;
	}
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		for (int major = 12; major <= 13; major++) {
			snprintf(link, sizeof link, "%s/lib%s.so.%d", d->folder, libraries[i], major);
			if (library_find(d, libraries[i], major, to) && symlink(to, link))
				return -1;
		}
	return 0;
}

int dryrun_folder_make(struct dryrun *d)
{
	const char *where = getenv("TMPDIR");
	sigset_t held;
	int n = snprintf(d->folder, sizeof d->folder, "%s/umadvise-dryrun-XXXXXX", where && *where ? where : "/tmp");

	if (n < 0 || (size_t)n >= sizeof d->folder)
		snprintf(d->folder, sizeof d->folder, "/tmp/umadvise-dryrun-XXXXXX");
	signals(&held);
	sigprocmask(SIG_BLOCK, &held, &mask);
	if (!mkdtemp(d->folder)) {
		tool_say("dryrun", "%s: %s", d->folder, strerror(errno));
		d->folder[0] = 0;
		sigprocmask(SIG_SETMASK, &mask, NULL);
		return PROGRAM_FAILED;
	}
	if (folder_fill(d)) {
		tool_say("dryrun", "%s: %s", d->folder, strerror(errno));
		dryrun_folder_remove(d);
		sigprocmask(SIG_SETMASK, &mask, NULL);
		return PROGRAM_FAILED;
	}
	return 0;
}

void dryrun_folder_remove(struct dryrun *d)
{
	DIR *dir = d->folder[0] ? opendir(d->folder) : NULL;
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	if (d->folder[0])
		rmdir(d->folder);
	d->folder[0] = 0;
}

static int set_number(const char *name, uint64_t x)
{
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)x);
	return setenv(name, text, 1);
}

/* In the child only. */
static int environment(const struct dryrun *d)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *path = NULL, out[sizeof d->folder + 32];
	int bad = asprintf(&path, "%s%s%s", d->folder, old && *old ? ":" : "", old ? old : "") < 0;

	snprintf(out, sizeof out, "%s/report.%%p.json", d->folder);
	bad = bad || setenv("LD_LIBRARY_PATH", path, 1) || setenv("UMADVISE_DRYRUN_OUT", out, 1);
	bad = bad || setenv("UMADVISE_DRYRUN_PROFILE", d->profile, 1);
	bad = bad || setenv("UMADVISE_DRYRUN_CUDA", d->cuda ? "13.0" : "12.4", 1);
	bad = bad || setenv("UMADVISE_DRYRUN_CPU", d->cpu_off ? "off" : "on", 1);
	if (d->memory)
		bad = bad || set_number("UMADVISE_DRYRUN_MEMORY", d->memory);
	if (d->devices)
		bad = bad || set_number("UMADVISE_DRYRUN_DEVICES", d->devices);
	if (d->per_link)
		bad = bad || set_number("UMADVISE_DRYRUN_LINK", d->per_link);
	if (d->log_place)
		bad = bad || setenv("UMADVISE_DRYRUN_LOG", d->log_place, 1);
	free(path);
	return bad ? -ENOMEM : 0;
}

static void pass_on(int sig, siginfo_t *info, void *context)
{
	int keep = errno;

	(void)context;
	/* The kernel sends the terminal's signals to the whole group. */
	if (child > 0 && info->si_code <= 0)
		kill((pid_t)child, sig);
	errno = keep;
}

static _Noreturn void become(const struct dryrun *d, const struct sigaction *before)
{
	for (size_t i = 0; i < N_PASSED; i++)
		sigaction(passed_on[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (environment(d)) {
		tool_say("dryrun", "no memory");
		_exit(PROGRAM_FAILED);
	}
	_exit(program_become("dryrun", d->path, d->program));
}

int dryrun_run(struct dryrun *d)
{
	struct sigaction before[N_PASSED], act = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};
	int status = 0;
	pid_t pid, got;

	fflush(NULL);
	for (size_t i = 0; i < N_PASSED; i++)
		sigaction(passed_on[i], &act, &before[i]);
	pid = fork();
	if (pid == 0)
		become(d, before);
	child = pid;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (pid < 0) {
		tool_say("dryrun", "cannot start a process: %s", strerror(errno));
		return PROGRAM_FAILED;
	}
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	child = 0;
	for (size_t i = 0; i < N_PASSED; i++) /* cleaning up is short and must not be interrupted */
		signal(passed_on[i], SIG_IGN);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The loader lists the program's libraries instead of running it, one per line. */
int dryrun_missing(const struct dryrun *d, char *name, size_t size)
{
	char line[4096], *end;
	int ends[2], missing = 0;
	FILE *from;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return 0;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		if (!environment(d) && !setenv("LD_TRACE_LOADED_OBJECTS", "1", 1))
			execv(d->path, d->program);
		_exit(PROGRAM_FAILED);
	}
	close(ends[1]);
	from = pid < 0 ? NULL : fdopen(ends[0], "r");
	while (from && fgets(line, sizeof line, from)) {
		end = strstr(line, " => not found");
		if (!end || missing)
			continue;
		missing = 1;
		snprintf(name, size, "%.*s", (int)(end - line - strspn(line, "\t ")), line + strspn(line, "\t "));
	}
	if (from)
		fclose(from);
	else
		close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return missing;
}
