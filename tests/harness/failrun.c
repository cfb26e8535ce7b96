/* SPDX-License-Identifier: Apache-2.0
 *
 * failrun.c - runs a command again and again, each time with another allocation that fails
 *
 *     failrun [-f FIRST] [-e N] [-x STATUS]... COMMAND [ARGUMENT]...
 *
 * First the command runs untouched: it must succeed, and it is looked which of its allocations are worth failing: each
 * chain of calls that asks for memory (failmalloc.c). Of these each (4 * N)-th fails, N from -e or 1, from an offset
 * that moves by one each day (or UM_FAIL_OFFSET); with UM_TEST_ALL in the environment each of them, with UM_TEST_EVERY
 * every single allocation. Then for each such n from FIRST on it runs with its n-th allocation failing. It
 * may then fail in its own way, with an exit status below 124; it may not hang, die of a signal, or show what a
 * sanitizer or the C library says of broken memory. -x names a status that is refused as well. COMMAND is a program: of
 * a script the allocations of its shell would count. UM_FAIL_MODULE names what is preloaded.
 *
 * Exit status: 0 all is well, 1 something broke (said how, with the number to repeat it by), 2 usage. A program and not
 * a script, since it starts others by the thousand: a shell takes longer for that than most of them run.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 120 /* what runs longer hangs */
#define MOST_BROKEN 5
#define SAMPLE 4 /* by default one in so many */
#define FIRST_RUN 0 /* as the number of a failing allocation: none fails */

extern char **environ;

static struct {
	char **command;
	const char *module;
	unsigned char refused[256];
	FILE *count, *out; /* the children's: numbers of allocations, and what they say */
	int each; /* not only those picked */
	char *said; /* what `out` had after the last run; dynamic */
} run;

static int usage(void)
{
	fprintf(stderr, "usage: failrun [-f FIRST] [-e N] [-x STATUS] COMMAND [ARGUMENT]...\n");
	return 2;
}

static int number(const char *text, unsigned long *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	return errno || !*text || *end || *text == '-';
}

/* All that the last run said. */
static int hear(void)
{
	struct stat st;
	char *said;
	ssize_t n;

	if (fstat(fileno(run.out), &st))
		return -errno;
	said = realloc(run.said, (size_t)st.st_size + 1);
	if (!said)
		return -ENOMEM;
	run.said = said;
	n = pread(fileno(run.out), said, (size_t)st.st_size, 0);
	said[n > 0 ? n : 0] = 0;
	return 0;
}

/* The environment of a run, in `env`, which has room for `n` entries. */
static int surround(char **env, size_t n, unsigned long at)
{
	static char preload[4096], fail[64], count[64]; /* they outlive the call */
	size_t k = 0;

	if (snprintf(preload, sizeof preload, "LD_PRELOAD=%s", run.module) >= (int)sizeof preload)
		return -ENAMETOOLONG;
	snprintf(fail, sizeof fail, "UM_FAIL_AT=%lu", at);
	snprintf(count, sizeof count, "UM_FAIL_%s_FILE=/proc/%d/fd/%d", run.each ? "COUNT" : "PICK", (int)getpid(),
		 fileno(run.count));
	env[k++] = preload;
	env[k++] = at == FIRST_RUN ? count : fail;
	for (char **e = environ; *e && k + 1 < n; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "UM_FAIL_", 8))
			env[k++] = *e;
	env[k] = NULL;
	return 0;
}

static volatile sig_atomic_t late;

static void on_alarm(int signal)
{
	(void)signal;
	late = 1;
}

/* Runs the command with its at-th allocation failing; its wait status, or an errno. */
static int once(unsigned long at, int *status)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	char *env[1024];
	pid_t pid;
	int err;

	err = surround(env, sizeof env / sizeof *env, at);
	if (err)
		return err;
	if (lseek(fileno(run.out), 0, SEEK_SET) || ftruncate(fileno(run.out), 0))
		return -errno;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, fileno(run.out), 1);
	posix_spawn_file_actions_adddup2(&files, fileno(run.out), 2);
	posix_spawnattr_init(&attr);
	/* A group of its own: what hangs may have started others. */
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
	err = -posix_spawnp(&pid, run.command[0], &files, &attr, run.command, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	if (err)
		return err;
	late = 0;
	alarm(LIMIT_S);
	while (waitpid(pid, status, 0) < 0)
		if (late)
			kill(-pid, SIGKILL);
	alarm(0);
	return hear();
}

/* Why a run was not well, or NULL. */
static const char *judge(int status)
{
	static const char *const words[] = {
		"AddressSanitizer", "LeakSanitizer",   "ThreadSanitizer", "runtime error:", "Assertion ", "double free",
		"corrupt",	    "invalid pointer", "stack smashing",  "free():",	    "malloc():",  "realloc():"};
	static char why[64];

	if (late) {
		snprintf(why, sizeof why, "longer than %d s", LIMIT_S);
	} else if (WIFSIGNALED(status)) {
		snprintf(why, sizeof why, "signal %d", WTERMSIG(status));
	} else if (WEXITSTATUS(status) >= 124) {
		snprintf(why, sizeof why, "status %d", WEXITSTATUS(status));
	} else if (run.refused[WEXITSTATUS(status)]) {
		snprintf(why, sizeof why, "status %d, which is refused", WEXITSTATUS(status));
	} else {
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			if (strstr(run.said, words[i])) {
				snprintf(why, sizeof why, "says '%s'", words[i]);
				return why;
			}
		return NULL;
	}
	return why;
}

/* The last lines of what was said. */
static void print_tail(int lines)
{
	const char *p = run.said + strlen(run.said);

	while (p > run.said && !(p[-1] == '\n' && *p && --lines == 0))
		p--;
	printf("%s\n", p);
}

static int by_size(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return (x > y) - (x < y);
}

/* Numbers that the first run left, in order, each once; several processes may have left theirs. 0: out of memory. */
static size_t numbers(unsigned long **out)
{
	size_t n = 0, k = 0, cap = 0;
	unsigned long *all = NULL, *more, x;

	while (fscanf(run.count, "%lu", &x) == 1) {
		if (n == cap) {
			cap = 2 * cap + 1024;
			more = realloc(all, cap * sizeof *all);
			if (!more) {
				free(all);
				return 0;
			}
			all = more;
		}
		all[n++] = x;
	}
	if (n)
		qsort(all, n, sizeof *all, by_size);
	for (size_t i = 0; i < n; i++)
		if (!i || all[i] != all[i - 1])
			all[k++] = all[i];
	*out = all;
	return k;
}

/* Runs with the at-th allocation failing; whether all was well. */
static int well(unsigned long at)
{
	int status, err = once(at, &status);
	const char *why = err ? strerror(-err) : judge(status);

	if (!why)
		return 1;
	printf("allocation %lu: %s\n    UM_FAIL_AT=%lu LD_PRELOAD=%s", at, why, at, run.module);
	for (char **c = run.command; *c; c++)
		printf(" %s", *c);
	printf("\n");
	if (!err)
		print_tail(5);
	return 0;
}

/* Where a sample of each step-th of `n` begins. */
static size_t offset(size_t n, size_t step)
{
	const char *asked = getenv("UM_FAIL_OFFSET");
	unsigned long at = (unsigned long)time(NULL) / 86400;

	if (asked)
		at = strtoul(asked, NULL, 10);
	return at % (n < step ? n : step);
}

static int every(unsigned long first, unsigned long step)
{
	unsigned long *at = NULL, last;
	size_t n, begin, runs = 0;
	int status, err, bad = 0;

	err = once(FIRST_RUN, &status);
	if (err) {
		printf("failrun: %s: %s\n", run.command[0], strerror(-err));
		return 1;
	}
	n = numbers(&at);
	if (status || !n) {
		printf("failrun: untouched, %s ends with wait status 0x%x and %zu allocations\n", run.command[0],
		       (unsigned)status, n);
		print_tail(20);
		free(at);
		return 1;
	}
	last = at[n - 1];
	for (begin = 0; begin < n && at[begin] < first; begin++)
		;
	begin += begin < n ? offset(n - begin, step) : 0;
	if (run.each)
		for (unsigned long i = first; i <= last && bad < MOST_BROKEN; i++, runs++)
			bad += !well(i);
	for (size_t i = begin; !run.each && i < n && bad < MOST_BROKEN; i += step, runs++)
		bad += !well(at[i]);
	free(at);
	printf("%zu runs, the last with allocation %lu, %d broken\n", runs, last, bad);
	return bad || !runs;
}

int main(int argc, char **argv)
{
	unsigned long first = 1, step = 1, n = 0;
	struct sigaction quick = {.sa_handler = on_alarm}; /* no SA_RESTART: waiting ends */
	int option, rc;

	while ((option = getopt(argc, argv, "+f:e:x:")) != -1) {
		if (option == '?' || number(optarg, &n) || (option != 'x' && n == 0) || (option == 'x' && n > 255))
			return usage();
		if (option == 'f')
			first = n;
		else if (option == 'e')
			step = n;
		else
			run.refused[n] = 1;
	}
	run.command = argv + optind;
	run.module = getenv("UM_FAIL_MODULE");
	if (!*run.command || !run.module)
		return usage();
	sigaction(SIGALRM, &quick, NULL);
	run.count = tmpfile();
	run.out = tmpfile();
	if (!run.count || !run.out) {
		perror("failrun: no file for what it hears");
		return 2;
	}
	run.each = getenv("UM_TEST_EVERY") != NULL;
	rc = every(first, getenv("UM_TEST_ALL") ? 1 : step * SAMPLE);
	fclose(run.count);
	fclose(run.out);
	free(run.said);
	return rc;
}
