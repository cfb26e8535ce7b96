/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/arbiter.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x31657261687375ull /* "ushare1" */
#define JOIN_NS 1000000000u /* to wait for the table: at the start, */
#define LOOK_NS 1000000u /* at an iteration, */
#define LEAVE_NS 100000000u /* and at the end */
#define TRIES 100 /* to open a file that others remove */

_Static_assert(sizeof(struct um_arbiter_slot) == 64 && sizeof(struct um_arbiter_table) == 65 * 64, "as in the file");

/* --- locks -------------------------------------------------------------------------------------------------------- */

static int set_locks(int fd, off_t byte, off_t n, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = n};

	return fcntl(fd, F_OFD_SETLK, &l) ? -errno : 0;
}

/* Does another context hold one of these locks? Not known: yes. */
static int is_held(int fd, off_t byte, off_t n)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = n};

	return fcntl(fd, F_OFD_GETLK, &l) || l.l_type != F_UNLCK;
}

/* Never waits for long: the owner may be a stopped process. */
static int lock_table(int fd, uint64_t most_ns)
{
	const struct timespec pause = {.tv_nsec = 50000};
	uint64_t until = um_clock_ns(CLOCK_MONOTONIC) + most_ns;
	int err;

	while ((err = set_locks(fd, 0, 1, F_WRLCK)) == -EAGAIN || err == -EACCES) {
		if (um_clock_ns(CLOCK_MONOTONIC) >= until)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
	return err;
}

static void unlock_table(int fd)
{
	set_locks(fd, 0, 1, F_UNLCK);
}

/* --- the table, with its lock held -------------------------------------------------------------------------------- */

static void count_change(struct um_arbiter *a)
{
	a->seen = atomic_fetch_add_explicit(&a->table->generation, 1, memory_order_relaxed) + 1;
}

/* Slots of other contexts, whether they are alive or not. */
static uint64_t others_of(const struct um_arbiter *a)
{
	return atomic_load_explicit(&a->table->used, memory_order_relaxed) & ~(1ull << a->slot);
}

/* Removes those of these slots, a bit each, whose contexts have ended. */
static void remove_dead(struct um_arbiter *a, uint64_t slots)
{
	for (uint64_t rest = slots; rest; rest &= rest - 1) {
		int i = __builtin_ctzll(rest);

		if (is_held(a->fd, 1 + i, 1))
			continue;
		atomic_fetch_and_explicit(&a->table->used, ~(1ull << i), memory_order_relaxed);
		count_change(a);
	}
}

static int is_same(const struct um_arbiter_claim *a, const struct um_arbiter_claim *b)
{
	return a->need == b->need && a->most == b->most && a->weight == b->weight;
}

/* Finds the target and takes of it what the others do not hold. */
static void settle(struct um_arbiter *a)
{
	struct um_arbiter_claim claims[UM_ARBITER_MOST];
	uint64_t out[UM_ARBITER_MOST], room = a->table->blocks;
	struct um_arbiter_slot *own = &a->table->slots[a->slot];
	unsigned n = 0, mine = 0;

	for (uint64_t rest = others_of(a) | 1ull << a->slot; rest; rest &= rest - 1) {
		const struct um_arbiter_slot *s = &a->table->slots[__builtin_ctzll(rest)];

		if (s == own)
			mine = n;
		else
			room -= s->held < room ? s->held : room;
		claims[n++] = s->claim;
	}
	um_arbiter_divide(claims, n, a->table->blocks, out);
	a->others = n - 1;
	a->target = out[mine];
	if (a->target > own->held)
		own->held = a->target < room ? a->target : room > own->held ? room : own->held;
	a->held = own->held;
}

int um_arbiter_look(struct um_arbiter *a, const struct um_arbiter_claim *claim)
{
	struct um_arbiter_slot *own;

	if (!a->table || lock_table(a->fd, LOOK_NS))
		return -EBUSY;
	own = &a->table->slots[a->slot];
	a->seen = atomic_load_explicit(&a->table->generation, memory_order_relaxed);
	remove_dead(a, others_of(a));
	if (!is_same(&own->claim, claim)) {
		own->claim = *claim;
		count_change(a);
	}
	settle(a);
	unlock_table(a->fd);
	return 0;
}

int um_arbiter_confirm(struct um_arbiter *a, uint64_t blocks)
{
	uint64_t seen = a->seen;

	if (!a->table || lock_table(a->fd, LOOK_NS))
		return -EBUSY;
	a->table->slots[a->slot].held = a->held = blocks;
	count_change(a);
	if (a->seen != seen + 1) /* others have changed the table since the latest look, too */
		a->seen = seen;
	unlock_table(a->fd);
	return 0;
}

int um_arbiter_lost_one(struct um_arbiter *a)
{
	uint64_t now = um_clock_ns(CLOCK_MONOTONIC);

	if (now < a->check_ns)
		return 0;
	a->check_ns = now + (uint64_t)a->others * UM_ARBITER_CHECK_NS;
	for (uint64_t rest = others_of(a); rest; rest &= rest - 1)
		if (!is_held(a->fd, 1 + __builtin_ctzll(rest), 1))
			return 1;
	return 0;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static void release(struct um_arbiter *a)
{
	if (a->table)
		munmap(a->table, sizeof *a->table);
	a->table = NULL;
	close(a->fd);
}

/* A child that is being forked may have the file open for a moment longer: closing it would not release the locks. */
static void release_locks(struct um_arbiter *a)
{
	set_locks(a->fd, 0, 1 + UM_ARBITER_MOST, F_UNLCK);
	release(a);
}

/* A directory in which no other user can put files. */
static int is_own_directory(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

static int name_file(struct um_arbiter *a, const char *device)
{
	const char *run = secure_getenv("XDG_RUNTIME_DIR");
	char own[40];

	snprintf(own, sizeof own, "/tmp/umadvise-%u", (unsigned)geteuid());
	a->own_directory = !run || *run != '/' || !is_own_directory(run);
	if (a->own_directory && mkdir(own, 0700) && errno != EEXIST)
		return -errno;
	if (a->own_directory && !is_own_directory(own))
		return -ENOTDIR;
	if ((size_t)snprintf(a->path, sizeof a->path, "%s/umadvise-%s", a->own_directory ? own : run, device) >=
	    sizeof a->path)
		return -ENAMETOOLONG;
	return 0;
}

/* Opens the file and locks the table. -EAGAIN: the file was removed meanwhile. */
static int open_file(struct um_arbiter *a, const char *device)
{
	struct stat st;
	int err = name_file(a, device);

	if (err)
		return err;
	a->fd = open(a->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (a->fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno; /* the directory was removed */
	err = fstat(a->fd, &st) ? -errno : !S_ISREG(st.st_mode) || st.st_uid != geteuid() ? -EPERM : 0;
	if (!err)
		err = lock_table(a->fd, JOIN_NS);
	if (!err && fstat(a->fd, &st))
		err = -errno;
	if (!err && !st.st_nlink)
		err = -EAGAIN;
	if (!err && st.st_size < (off_t)sizeof *a->table)
		err = -posix_fallocate(a->fd, 0, sizeof *a->table); /* a full file system is an error here, not later */
	if (err)
		release_locks(a);
	return err;
}

static int map_file(struct um_arbiter *a)
{
	void *p = mmap(NULL, sizeof *a->table, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	a->table = p;
	if (a->table->magic == MAGIC)
		return 0;
	if (is_held(a->fd, 1, UM_ARBITER_MOST))
		return -EPROTO;
	memset(a->table, 0, sizeof *a->table);
	a->table->magic = MAGIC;
	return 0;
}

/* Removes the file if no context has a slot. */
static void remove_file(struct um_arbiter *a)
{
	struct stat own, named;
	char *slash = strrchr(a->path, '/');

	if (atomic_load_explicit(&a->table->used, memory_order_relaxed) || fstat(a->fd, &own) ||
	    lstat(a->path, &named) || own.st_ino != named.st_ino || own.st_dev != named.st_dev || unlink(a->path))
		return;
	*slash = '\0';
	if (a->own_directory)
		rmdir(a->path); /* if it is empty */
	*slash = '/';
}

/* Takes a slot of the locked table. */
static int take_slot(struct um_arbiter *a, uint64_t blocks, const struct um_arbiter_claim *claim)
{
	unsigned slot = 0;
	uint64_t used;

	remove_dead(a, atomic_load_explicit(&a->table->used, memory_order_relaxed));
	used = atomic_load_explicit(&a->table->used, memory_order_relaxed);
	if (!used)
		a->table->blocks = blocks;
	while (slot < UM_ARBITER_MOST && (used >> slot & 1 || set_locks(a->fd, 1 + (off_t)slot, 1, F_WRLCK)))
		slot++;
	if (slot == UM_ARBITER_MOST)
		return -ENOSPC;
	a->slot = slot;
	a->table->slots[slot] = (struct um_arbiter_slot){.claim = *claim, .pid = (uint64_t)getpid()};
	atomic_fetch_or_explicit(&a->table->used, 1ull << slot, memory_order_relaxed);
	count_change(a);
	settle(a);
	return 0;
}

int um_arbiter_open(struct um_arbiter *a, const char *device, uint64_t blocks, const struct um_arbiter_claim *claim)
{
	int err = -EAGAIN;

	memset(a, 0, sizeof *a);
	for (int i = 0; i < TRIES && err == -EAGAIN; i++)
		err = open_file(a, device);
	if (err)
		return err == -EAGAIN ? -EBUSY : err;
	err = map_file(a);
	if (!err)
		err = take_slot(a, blocks, claim);
	if (!err)
		unlock_table(a->fd);
	else
		release_locks(a);
	return err;
}

void um_arbiter_close(struct um_arbiter *a)
{
	if (!a->table)
		return;
	if (!lock_table(a->fd, LEAVE_NS)) {
		remove_dead(a, others_of(a));
		atomic_fetch_and_explicit(&a->table->used, ~(1ull << a->slot), memory_order_relaxed);
		count_change(a);
		remove_file(a);
	}
	release_locks(a);
}

void um_arbiter_abandon(struct um_arbiter *a)
{
	if (a->table)
		release(a);
}
