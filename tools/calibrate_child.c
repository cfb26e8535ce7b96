/* SPDX-License-Identifier: Apache-2.0
 *
 * Protocol of the pipe, one line each:
 *     device CAPACITY ALLOWANCE DRIVER STANDIN NAME
 *     seen OBSERVATION VALUE SPREAD N
 *     done                       last, after success
 *     failed ERRNO TEXT          last, after a failure
 */
#include "calibrate_child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/device.h"
#include "probe/guard.h"

#define TEXT_MAX 65536u /* more than any probe prints */
#define DYING_MS 5000 /* a process that waits for a device in the kernel may take its time */

extern char **environ;

static long long now_ms(void)
{
	return (long long)(um_clock_ns(CLOCK_MONOTONIC) / 1000000);
}

/* --- the child --------------------------------------------------------------------------------------------------- */

/* For tests: UMADVISE_CALIBRATE_FAULT=PROBE:hang or PROBE:crash. */
static void inject_fault(const char *probe)
{
	const char *fault = getenv("UMADVISE_CALIBRATE_FAULT");
	size_t n = strlen(probe);

	if (!fault || !n || strncmp(fault, probe, n) != 0 || fault[n] != ':')
		return;
	if (strcmp(fault + n + 1, "crash") == 0)
		abort();
	while (strcmp(fault + n + 1, "hang") == 0)
		pause();
}

static int print_failure(int err, const char *why)
{
	printf("failed %d %s\n", -err, why);
	return 1;
}

static void print_device(struct um_gpu *gpu)
{
	struct um_device_info info;

	um_device_info(gpu, &info);
	printf("device %llu %llu %d %d %s\n", (unsigned long long)gpu->caps.capacity,
	       (unsigned long long)um_probe_allowance(gpu), info.driver_version, info.standin, gpu->caps.name);
}

static int probe_on(struct um_gpu *gpu, int probe, uint64_t budget)
{
	struct um_probe_setup setup = {.gpu = gpu, .budget = budget};
	struct um_observed seen = {0};
	char why[192];
	int rc = um_launcher_device(&setup.launcher, gpu, why, sizeof why);

	if (rc)
		return print_failure(rc, why);
	rc = um_probe_run((unsigned)probe, &setup, &seen, why, sizeof why);
	for (int i = 0; i < UM_OBS_N; i++)
		if (seen.at[i].n)
			printf("seen %s %.17g %.17g %u\n", um_observation_name((enum um_observation)i),
			       seen.at[i].value, seen.at[i].spread, seen.at[i].n);
	if (!rc)
		puts("done");
	setup.launcher->close(setup.launcher);
	return rc ? print_failure(rc, why) : 0;
}

/* argv: PROBE DEVICE BUDGET */
int calibrate_child_main(int argc, char **argv)
{
	struct um_device_options options = {.via = UM_VIA_ANY, .prefetches_evict = 1};
	struct um_gpu *gpu;
	char why[192];
	int rc, probe;

	if (argc != 3)
		return 2;
	probe = *argv[0] ? um_probe_find(argv[0]) : 0;
	if (probe < 0)
		return 2;
	options.ordinal = atoi(argv[1]);
	inject_fault(argv[0]);
	rc = um_device_open(&gpu, &options, why, sizeof why);
	if (rc)
		return print_failure(rc, why);
	if (!gpu->caps.concurrent_managed) {
		rc = print_failure(-ENODEV, gpu->caps.why);
	} else if (*argv[0]) {
		rc = probe_on(gpu, probe, strtoull(argv[2], NULL, 10));
	} else {
		print_device(gpu);
		puts("done");
	}
	fflush(stdout);
	gpu->api->close(gpu);
	return rc;
}

/* --- its parent -------------------------------------------------------------------------------------------------- */

static int start(const struct calibrate_job *job, pid_t *pid, int *from)
{
	posix_spawn_file_actions_t actions;
	char device[16], budget[32];
	char *argv[] = {"umadvise", "calibrate", "--run-probe", (char *)job->probe, device, budget, NULL};
	int pipes[2], rc;

	snprintf(device, sizeof device, "%d", job->device);
	snprintf(budget, sizeof budget, "%llu", (unsigned long long)job->budget);
	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	rc = posix_spawn_file_actions_init(&actions);
	if (!rc) {
		rc = posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
		if (!rc)
			rc = posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(pipes[1]);
	if (rc)
		close(pipes[0]);
	*from = pipes[0];
	return -rc;
}

/* Reads until the pipe is closed; 0, or -ETIMEDOUT. `text` is null-terminated. */
static int read_output(int from, long long until, char *text)
{
	size_t n = 0;
	int rc = 0;

	for (;;) {
		struct pollfd p = {.fd = from, .events = POLLIN};
		long long left = until - now_ms();
		ssize_t got;

		if (left <= 0 || n == TEXT_MAX - 1) {
			rc = -ETIMEDOUT;
			break;
		}
		if (poll(&p, 1, left > 1000 ? 1000 : (int)left) <= 0)
			continue;
		got = read(from, text + n, TEXT_MAX - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	text[n] = '\0';
	return rc;
}

/* Waits for the child and kills it after the time limit: 0, or -EBUSY. */
static int reap(pid_t pid, long long until, int *status)
{
	int killed = 0;

	for (;;) {
		pid_t got = waitpid(pid, status, WNOHANG);

		if (got == pid || (got < 0 && errno != EINTR))
			return 0;
		if (now_ms() >= until && killed)
			return -EBUSY;
		if (now_ms() >= until) {
			kill(pid, SIGKILL);
			killed = 1;
			until = now_ms() + DYING_MS;
		}
		poll(NULL, 0, 2);
	}
}

static void read_seen(const char *line, struct um_observed *seen)
{
	struct um_figure f;
	char name[64];
	int o;

	if (sscanf(line, "seen %63s %lf %lf %u", name, &f.value, &f.spread, &f.n) != 4)
		return;
	o = um_observation_find(name);
	if (o >= 0)
		seen->at[o] = f;
}

static void read_device(const char *line, struct calibrate_device *d)
{
	unsigned long long capacity, allowance;
	int at = 0;

	if (sscanf(line, "device %llu %llu %d %d %n", &capacity, &allowance, &d->driver_version, &d->standin, &at) <
		    4 ||
	    !at)
		return;
	d->capacity = capacity;
	d->allowance = allowance;
	snprintf(d->name, sizeof d->name, "%s", line + at);
}

/* Parses the child's output. 1: done; 0: no final line; -errno. */
static int parse_output(char *text, struct calibrate_device *device, struct um_observed *seen, char *why, size_t size)
{
	char *save = NULL;
	int end = 0, at, err;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "seen ", 5) == 0) {
			read_seen(line, seen);
		} else if (strncmp(line, "device ", 7) == 0) {
			read_device(line, device);
		} else if (strcmp(line, "done") == 0) {
			end = 1;
		} else if (at = 0, sscanf(line, "failed %d %n", &err, &at) == 1 && at) {
			snprintf(why, size, "%s", line + at);
			end = err > 0 ? -err : -EIO;
		}
	}
	return end;
}

int calibrate_child_run(const struct calibrate_job *job, struct calibrate_device *device, struct um_observed *seen,
			char *why, size_t size)
{
	long long until = now_ms() + (long long)(job->seconds * 1000);
	char *text = malloc(TEXT_MAX);
	struct um_observed heard = *seen;
	int from = -1, status = 0, rc, late, end;
	pid_t pid;

	if (!text) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	rc = start(job, &pid, &from);
	if (rc) {
		snprintf(why, size, "cannot start: %s", strerror(-rc));
		free(text);
		return rc;
	}
	late = read_output(from, until, text);
	close(from);
	rc = reap(pid, late ? now_ms() : until, &status);
	end = parse_output(text, device, &heard, why, size);
	free(text);
	if (rc) {
		snprintf(why, size, "took longer than %g s and does not end after SIGKILL", job->seconds);
	} else if (late) {
		snprintf(why, size, "took longer than %g s and was killed", job->seconds);
		rc = -ETIMEDOUT;
	} else if (end < 0) {
		rc = end;
	} else if (!end) {
		snprintf(why, size, "died of signal %d, status %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0,
			 WIFEXITED(status) ? WEXITSTATUS(status) : 0);
		rc = -EIO;
	} else {
		*seen = heard; /* observations before a failure may come from a failing device */
	}
	return rc;
}
