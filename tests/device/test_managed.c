/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that is too old for hints still gives the program managed memory.
 */
#include "gpu/managed.h"
#include "umadvise.h"

#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#define MIB (1ull << 20)

static char logged[400];

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	if (level <= UMADV_LOG_WARN)
		snprintf(logged, sizeof logged, "%s", line);
}

static struct umadv *open_context(void)
{
	struct umadv_options o;
	struct umadv *adv;

	umadv_options_init(&o);
	o.log = on_log;
	return umadv_open(&adv, &o) ? NULL : adv;
}

int main(void)
{
	const char *build = getenv("top_builddir");
	char path[4096];
	struct umadv *adv;
	void *lib, *p;
	int *live, *outside, *fails;

	snprintf(path, sizeof path, "%s/tests/device/fake/11.0/libcuda.so.1", build ? build : ".");
	lib = dlopen(path, RTLD_NOW);
	if (!lib)
		tap_bail("no fake driver");
	live = dlsym(lib, "fake_live");
	outside = dlsym(lib, "fake_outside");
	fails = dlsym(lib, "fake_fails");
	adv = open_context();
	ok(adv != NULL, "a context opens over a driver before 12.0");
	ok(strstr(logged, "12.0 is needed") && strstr(logged, "no hints"), "the reason is logged: %s", logged);
	is_int(umadv_alloc(adv, &p, 3 * MIB, "t", UMADV_PARAM), 0, "memory is allocated");
	is_int(*live, 1, "the memory is the driver's managed memory");
	memset(p, 1, 3 * MIB);
	is_int(umadv_op(adv, NULL, "op", UMADV_USES(UMADV_UPDATE(p))), 0, "an op is announced");
	*fails = UM_CUDA_NO_MEMORY;
	is_int(umadv_alloc(adv, &p, 1024 * MIB, "t", UMADV_PARAM), -ENOMEM,
	       "memory that the driver refuses is -ENOMEM");
	*fails = 0;
	umadv_close(adv);
	is_int(*live, 0, "close frees the memory");
	is_int(*outside, 0, "every call is made in the context of the device");
	return tap_done();
}
