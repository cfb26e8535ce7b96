/* SPDX-License-Identifier: Apache-2.0 */
#include "nsys_export.h"

#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NO_COMMAND 127 /* as a shell says it */
#define WAIT_MS 50

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define N_SIGNALS (sizeof signals / sizeof *signals)

static struct {
	char folder[512], export[544], journal[560], output_log[544];
	volatile sig_atomic_t child; /* its process group; 0: none */
	struct sigaction before[N_SIGNALS];
} made;

int nsys_export_needed(const char *file)
{
	static const char *const ends[] = {".nsys-rep", ".qdrep"};
	size_t n = strlen(file);

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (n > strlen(ends[i]) && strcmp(file + n - strlen(ends[i]), ends[i]) == 0)
			return 1;
	return 0;
}

/* Calls only async-signal-safe functions. */
static void remove_files(void)
{
	unlink(made.export);
	unlink(made.journal);
	unlink(made.output_log);
	rmdir(made.folder);
}

static void on_signal(int sig)
{
	if (made.child)
		kill((pid_t)-made.child, SIGKILL);
	remove_files();
	for (size_t i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &made.before[i], NULL); /* other temporaries may exist */
	raise(sig);
}

void nsys_export_remove(void)
{
	if (!*made.folder)
		return;
	remove_files();
	for (size_t i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &made.before[i], NULL);
	*made.folder = '\0';
}

static int make_folder(const char *verb)
{
	const char *root = getenv("TMPDIR");
	struct sigaction on = {.sa_handler = on_signal};
	int n = snprintf(made.folder, sizeof made.folder, "%s/umadvise-XXXXXX", root && *root ? root : "/tmp");

	if (n >= (int)sizeof made.folder || !mkdtemp(made.folder)) {
		tool_say(verb, "%s: cannot create a directory for the export: %s", made.folder, strerror(errno));
		*made.folder = '\0';
		return TOOL_INTERNAL;
	}
	snprintf(made.export, sizeof made.export, "%s/export.sqlite", made.folder);
	snprintf(made.journal, sizeof made.journal, "%s-journal", made.export);
	snprintf(made.output_log, sizeof made.output_log, "%s/output", made.folder);
	for (size_t i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &on, &made.before[i]);
	return 0;
}

static void child(const char *nsys, const char *file)
{
	int out = open(made.output_log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < N_SIGNALS; i++)
		signal(signals[i], SIG_DFL);
	setpgid(0, 0);
	if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(1);
	execlp(nsys, nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "-o", made.export, file,
	       (char *)NULL);
	_exit(errno == ENOENT || errno == EACCES ? NO_COMMAND : 1);
}

/* Its exit status; -1: killed by a signal. */
static int wait_for(pid_t pid, const char *file, int quiet)
{
	const struct timespec pause = {0, WAIT_MS * 1000000};
	int status = 0, shown = 0, terminal = !quiet && isatty(2);
	pid_t got;

	for (unsigned n = 0; (got = waitpid(pid, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR); n++) {
		if (terminal && !shown && n * WAIT_MS > 2000)
			shown = fprintf(stderr, "\r\033[K%s: nsys exports it", tool_text(file)) > 0;
		nanosleep(&pause, NULL);
	}
	if (shown)
		fputs("\r\033[K", stderr);
	return got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The last line of nsys's output. */
static void last_words(char *to, size_t size)
{
	FILE *f = fopen(made.output_log, "re");
	char line[256];

	*to = '\0';
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\r\n")] = '\0';
		if (*line)
			snprintf(to, size, ": %s", line);
	}
	if (f)
		fclose(f);
	for (; *to; to++)
		if ((unsigned char)*to < 0x20 || *to == 0x7f)
			*to = ' ';
}

int nsys_export_make(const char *verb, const char *nsys, const char *file, int quiet, const char **path)
{
	char words[300];
	int code, status;
	pid_t pid;

	if (access(file, R_OK)) {
		tool_say(verb, "%s: cannot be read: %s", file, strerror(errno));
		return TOOL_REFUSED;
	}
	code = make_folder(verb);
	if (code)
		return code;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(nsys ? nsys : "nsys", file);
	if (pid > 0)
		setpgid(pid, pid);
	made.child = pid > 0 ? pid : 0;
	status = pid > 0 ? wait_for(pid, file, quiet) : -1;
	made.child = 0;
	*path = made.export;
	if (status == 0 && access(made.export, R_OK) == 0)
		return 0;
	last_words(words, sizeof words);
	if (status == NO_COMMAND)
		tool_say(verb,
			 "%s: is a report, not an export, and %s is not installed: run 'nsys export --type "
			 "sqlite %s'",
			 file, nsys ? nsys : "nsys", file);
	else
		tool_say(verb, "%s: 'nsys export --type sqlite' failed%s", file, words);
	nsys_export_remove();
	return TOOL_REFUSED;
}
