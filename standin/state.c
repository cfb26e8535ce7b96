/* SPDX-License-Identifier: Apache-2.0
 *
 * state.c - the simulated devices of the process and the settings of the dry run
 *
 * The devices are opened once in a process and stay until its end. Settings are read at their first use.
 */
#include "standin/standin.h"

#include "io/file_name.h"
#include "io/profile_file.h"

#include <pthread.h>
#include <stdio.h>

#define NODES_MOST 64

static struct um_standin device[UM_SIM_DEVICES_MAX];
static int nodes; /* of the host: set before the devices are open */
static int opened; /* under lock: number of devices, once all of them are open */
static _Thread_local struct um_standin *on; /* the device of a stream or an event; NULL: the context's */
static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

static void lock_init(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

void um_standin_lock(void)
{
	pthread_once(&lock_once, lock_init);
	pthread_mutex_lock(&lock);
}

void um_standin_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

int um_standin_version(void)
{
	const char *s = secure_getenv("UMADVISE_DRYRUN_CUDA");

	return s && !strcmp(s, "12.4") ? 12040 : 13000;
}

struct um_standin *um_standin(void)
{
	struct um_standin *s;

	um_standin_lock();
	s = !opened ? NULL : on ? on : &device[um_standin_context_device()];
	um_standin_unlock();
	return s;
}

void um_standin_on(struct um_standin *s)
{
	on = s;
}

int um_standin_devices(void)
{
	int n;

	um_standin_lock();
	n = opened;
	um_standin_unlock();
	return n;
}

int um_standin_nodes(void)
{
	return nodes;
}

struct um_standin *um_standin_device(int ordinal)
{
	return ordinal >= 0 && ordinal < um_standin_devices() ? &device[ordinal] : NULL;
}

static void log_line(void *user, const char *line)
{
	fprintf(user, "%s\n", line);
}

/* A log that cannot be written is reported and skipped. */
static FILE *log_open(void)
{
	const char *pattern = secure_getenv("UMADVISE_DRYRUN_LOG");
	char *path = pattern && *pattern ? um_file_name(pattern) : NULL;
	FILE *f = path ? fopen(path, "we") : NULL;

	if (pattern && *pattern && !f)
		fprintf(stderr, "umadvise: %s: %s\n", pattern, strerror(errno));
	free(path);
	if (f)
		setvbuf(f, NULL, _IOLBF, BUFSIZ); /* line-buffered, so that a killed program leaves all of it */
	return f;
}

static void report_hazard(void *user, const char *text)
{
	(void)user;
	fprintf(stderr, "umadvise: hazard: %s\n", text);
}

/* CUDA's own variables count where the list says nothing. 0, or -EINVAL. */
static int hazards_get(struct um_sim_hazards *h)
{
	const char *list = secure_getenv("UMADVISE_DRYRUN_HAZARDS"), *loading = secure_getenv("CUDA_MODULE_LOADING");
	const char *connections = secure_getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	unsigned long queues = connections ? strtoul(connections, NULL, 10) : 0;

	if (!list || !*list)
		return 0;
	h->queues = queues <= UM_SIM_QUEUES_MOST ? (unsigned)queues : UM_SIM_QUEUES_MOST;
	h->report = report_hazard;
	if (um_sim_hazards_parse(list, h))
		return -EINVAL;
	if (loading && !strcmp(loading, "EAGER"))
		h->lazy = 0;
	return 0;
}

/* The number from 1 to `most` in a variable, or 0 after an error message. Not set: `otherwise`. */
static unsigned number_get(const char *name, const char *text, unsigned otherwise, unsigned most)
{
	char *end;
	unsigned long n;

	if (!text || !*text)
		return otherwise;
	n = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && n && n <= most)
		return (unsigned)n;
	fprintf(stderr, "umadvise: %s: '%s' is not a number from 1 to %u\n", name, text, most);
	return 0;
}

/* All devices are alike, and `together` successive ones share a link. A CUDA error code: none stays open. */
static int open_devices(struct um_sim_options *options, unsigned n, unsigned together)
{
	struct um_profile profile = *options->profile;
	int err = UM_CUDA_OK;
	unsigned done;

	for (done = 0; done < n && !err; done += !err) {
		struct um_standin *s = &device[done];
		unsigned first = done / together * together;

		s->profile = profile;
		s->profile.link_devices = n - first < together ? n - first : together;
		s->ordinal = (int)done;
		s->version = um_standin_version();
		s->reuse = options->hazards.reuse;
		s->destroyed = options->hazards.destroyed;
		options->profile = &s->profile;
		options->beside = done ? device[0].gpu : NULL;
		options->link = s->profile.link_devices > 1 ? first / together + 1 : 0;
		if (um_sim_open(&s->gpu, options))
			err = UM_CUDA_NO_MEMORY;
	}
	for (unsigned d = 0; err && d < done; d++)
		device[d].gpu->api->close(device[d].gpu);
	return err;
}

static int open_locked(void)
{
	struct um_profile profile;
	unsigned n =
		number_get("UMADVISE_DRYRUN_DEVICES", secure_getenv("UMADVISE_DRYRUN_DEVICES"), 1, UM_SIM_DEVICES_MAX);
	unsigned together;
	int err;
	const char *name = secure_getenv("UMADVISE_DRYRUN_PROFILE"), *memory = secure_getenv("UMADVISE_DRYRUN_MEMORY");
	const char *cpu = secure_getenv("UMADVISE_DRYRUN_CPU");
	struct um_sim_options options = {.profile = &profile,
					 .backed = 1,
					 .follow_cpu = !cpu || strcmp(cpu, "off") != 0,
					 .ledger = 1,
					 .poison = 1,
					 .timeout_ms = 5000,
					 .query_ns = 1000};
	struct um_diag diag;

	if (um_profile_get(name && *name ? name : "v100", &profile, &diag)) {
		fprintf(stderr, "umadvise: %s: %s\n", name ? name : "v100", diag.text);
		return UM_CU_NO_DEVICE;
	}
	nodes = (int)number_get("UMADVISE_DRYRUN_NODES", secure_getenv("UMADVISE_DRYRUN_NODES"), 1, NODES_MOST);
	together = number_get("UMADVISE_DRYRUN_LINK", secure_getenv("UMADVISE_DRYRUN_LINK"),
			      (unsigned)profile.link_devices, UM_SIM_DEVICES_MAX);
	if (!n || !together || !nodes)
		return UM_CU_NO_DEVICE;
	if (memory && *memory)
		options.capacity = strtoull(memory, NULL, 10);
	if (hazards_get(&options.hazards)) {
		fprintf(stderr,
			"umadvise: UMADVISE_DRYRUN_HAZARDS: '%s' is not a list of on, queues=N (up to %d), "
			"depth=N, locks, lazy, reuse, defer, destroyed, timeout=MS\n",
			secure_getenv("UMADVISE_DRYRUN_HAZARDS"), UM_SIM_QUEUES_MOST);
		return UM_CU_NO_DEVICE;
	}
	options.log_user = log_open();
	options.log = options.log_user ? log_line : NULL;
	err = open_devices(&options, n, together);
	if (!err)
		opened = (int)n;
	return err;
}

int um_standin_open(int *fresh)
{
	int err = UM_CUDA_OK;

	um_standin_lock();
	*fresh = !opened;
	if (*fresh)
		err = open_locked();
	um_standin_unlock();
	return err;
}
