/* SPDX-License-Identifier: Apache-2.0
 *
 * close_app.c - a program that announces operations on 128 MiB with a budget of 32 MiB and launches none of them, so
 * that hints are outstanding when its context is closed
 *
 *     close_app close|thread|exit|sync
 *
 * close: umadv_close; thread: the same from another thread; exit: the context is left open; sync: the device is
 * synchronized first.
 */
#include "umadvise.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define TENSORS 16

static int announce(struct umadv *adv)
{
	void *t[TENSORS];
	int err = 0;

	for (int i = 0; i < TENSORS && !err; i++)
		err = umadv_alloc(adv, &t[i], 8 * MIB, "t", UMADV_PARAM);
	for (int it = 0; it < 6 && !err; it++) {
		err = umadv_iter(adv, NULL);
		for (int i = 0; i < TENSORS && !err; i++)
			err = umadv_op(adv, NULL, "op", UMADV_USES(UMADV_UPDATE(t[i])));
	}
	return err;
}

static void *close_it(void *adv)
{
	umadv_close(adv);
	return NULL;
}

static int synchronize(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *fn = lib ? dlsym(lib, "cuCtxSynchronize") : NULL;
	int (*sync)(void);

	if (!fn)
		return -1;
	memcpy(&sync, &fn, sizeof fn);
	sync(); /* 201 where no context is current: workers have run all the same */
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "close";
	struct umadv_options o;
	struct umadv_stats s = {.struct_size = sizeof s};
	struct umadv *adv;
	pthread_t thread;
	int err;

	umadv_options_init(&o);
	o.budget = 32 * MIB;
	err = umadv_open(&adv, &o);
	if (!err)
		err = announce(adv);
	if (!err)
		err = umadv_stats_get(adv, &s);
	if (!err && !strcmp(how, "sync"))
		err = synchronize();
	if (err)
		return 1;
	printf("%s\n", s.hinted_iterations ? "hinted" : "no hints");
	if (!strcmp(how, "exit"))
		return 0;
	if (strcmp(how, "thread")) {
		umadv_close(adv);
	} else if (pthread_create(&thread, NULL, close_it, adv)) {
		return 1;
	} else {
		pthread_join(thread, NULL);
	}
	return 0;
}
