/* SPDX-License-Identifier: Apache-2.0
 *
 * A set-uid program ignores UMADVISE_*: its user must not choose the files that it writes. This program makes a set-uid
 * copy of itself and runs it as another user.
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "umadvise.h"

#define NOBODY 65534
#define NOT_SECURE 77

static char dir[] = "/tmp/umadvise-secure-XXXXXX", app[64], victim[64], fresh[64];

/* What the copy does. */
static int host(int secure)
{
	struct umadv_options o;
	struct umadv *adv;

	if ((getauxval(AT_SECURE) != 0) != secure)
		return NOT_SECURE;
	umadv_options_init(&o);
	o.device = UMADV_DEVICE_NONE;
	if (umadv_open(&adv, &o))
		return 1;
	umadv_iter(adv, NULL);
	umadv_close(adv);
	return 0;
}

static int run_host(uid_t uid, const char *variable, const char *value)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		setenv(variable, value, 1);
		if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
			_exit(99);
		execl(app, app, uid ? "secure" : "plain", (char *)NULL);
		_exit(98);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int copy_self(void)
{
	char block[65536];
	int from = open("/proc/self/exe", O_RDONLY), to = open(app, O_WRONLY | O_CREAT | O_EXCL, 0755), bad = 0;
	ssize_t n;

	while ((n = read(from, block, sizeof block)) > 0)
		bad |= write(to, block, (size_t)n) != n;
	bad |= n < 0 || fchmod(to, 04755);
	close(from);
	return close(to) || bad;
}

static int keeps_victim(void)
{
	char text[16] = "";
	FILE *f = fopen(victim, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

	if (f)
		fclose(f);
	return n == 5 && strcmp(text, "root\n") == 0;
}

static void try_variable(const char *variable)
{
	is_int(run_host(NOBODY, variable, victim), 0, "a set-uid program runs with %s naming a file of root", variable);
	ok(keeps_victim(), "a set-uid program does not write the file that %s names", variable);
	is_int(run_host(NOBODY, variable, fresh), 0, "a set-uid program runs with %s naming no file", variable);
	ok(access(fresh, F_OK) != 0, "a set-uid program does not create the file that %s names", variable);
	is_int(run_host(0, variable, fresh), 0, "the same program runs for its owner");
	ok(access(fresh, F_OK) == 0, "for its owner it creates the file that %s names", variable);
	unlink(fresh);
}

int main(int argc, char **argv)
{
	FILE *f;

	if (argc > 1)
		return host(strcmp(argv[1], "secure") == 0);
	if (geteuid() != 0 || !mkdtemp(dir) || chmod(dir, 0755)) {
		skip(1, "only root can make a program set-uid");
		return tap_done();
	}
	snprintf(app, sizeof app, "%s/app", dir);
	snprintf(victim, sizeof victim, "%s/victim", dir);
	snprintf(fresh, sizeof fresh, "%s/fresh", dir);
	f = fopen(victim, "w");
	ok(f && fputs("root\n", f) >= 0 && !fclose(f), "there is a file of root");
	if (copy_self() || run_host(NOBODY, "UMADVISE_LOG", "error") != 0) {
		skip(1, "a set-uid copy of this program does not run");
	} else {
		try_variable("UMADVISE_RUN_LOG");
		try_variable("UMADVISE_TRACE");
	}
	unlink(app);
	unlink(victim);
	unlink(fresh);
	rmdir(dir);
	return tap_done();
}
