/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_run.c - umadvise run: runs an unchanged CUDA program with the library preloaded
 *
 * The tool becomes the program, so signals and the exit status are the program's own. Settings are passed on in the
 * environment, which processes that the program starts inherit.
 */
#include "dryrun.h"
#include "program.h"
#include "tool.h"

#include "base/size.h"
#include "io/file_name.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run {
	const char *managed; /* all, none or a size */
	uint64_t budget, host; /* bytes; 0: not given */
	const char *record, *plan, *run_log; /* files, or NULL */
	const char *iteration; /* or NULL */
	int quiet;
	char **program; /* its arguments, NULL at the end */
	char path[4096]; /* of the program */
	char library[PATH_MAX];
	char python[PATH_MAX]; /* the folder of its modules; "" if it is not installed */
};

#define AT(field) offsetof(struct run, field)

static const char *read_managed(void *args, const char *text)
{
	uint64_t bytes;

	if (strcmp(text, "all") != 0 && strcmp(text, "none") != 0 && um_size_parse(text, &bytes))
		return text;
	((struct run *)args)->managed = text;
	return NULL;
}

static const struct arg options[] = {
	ARG(ARG_READ, "managed", 0, 0, "all|none|BYTES", .read = read_managed,
	    .expected = "all, none or a number of bytes",
	    .help = "device memory that becomes managed: all, none, or allocations of at least BYTES (default: all but "
		    "a fortieth of the budget in allocations below 1 MiB)"),
	ARG_BUDGET(AT(budget), 0, 2 << 20, "device memory to use (default: all)"),
	ARG(ARG_SIZE, "host", 0, AT(host), "BYTES", .least = 1,
	    .help = "most memory beyond the device's; further allocations fail (default: nine tenths of what is "
		    "available)"),
	ARG(ARG_TEXT, "iteration", 0, AT(iteration), "PATTERN",
	    .help = "NVTX ranges that are iterations, a shell pattern (default: iterations are found)"),
	ARG(ARG_TEXT, "plan", 0, AT(plan), "FILE",
	    .help = "start from the plan in FILE; if there is no such file, write the plan to it at the end. In the "
		    "names of all files, %p becomes the process id and %r the rank"),
	ARG(ARG_TEXT, "record", 0, AT(record), "FILE", .writes = 1,
	    .help = "record the run as a workload for simulate and plan"),
	ARG(ARG_TEXT, "run-log", 0, AT(run_log), "FILE", .writes = 1,
	    .help = "write a run log, which umadvise report reads"),
	ARG(ARG_FLAG, "quiet", 0, AT(quiet), NULL, .letter = 'q', .help = "no line at the end of the program"),
	ARG_LAST,
};

static int read_args(struct run *r, int argc, char **argv)
{
	struct args_found found;
	int code = args_read(&verb_run, r, argc, argv, &found);

	r->program = found.operands;
	if (code == ARGS_GO_ON && !found.n) {
		tool_say("run", "no program given: expected one, with its arguments");
		return TOOL_USAGE;
	}
	return code;
}

/* 0, or an exit code after an error message. */
static int find_library(struct run *r)
{
	static const char *const places[] = {"../lib/inject/.libs/libumadvise-preload.so",
					     "../../lib/inject/.libs/libumadvise-preload.so", NULL};

	if (!program_part(places, "libumadvise-preload.so", r->library)) {
		tool_say("run", "the library to preload is not installed (%s)", UM_PKGLIBDIR "/libumadvise-preload.so");
		return PROGRAM_FAILED;
	}
	if (strpbrk(r->library, " :")) {
		tool_say("run", "%s cannot be preloaded: its name has a blank or a colon", r->library);
		return PROGRAM_FAILED;
	}
	return 0;
}

static void find_python(struct run *r)
{
	static const char *const places[] = {"../python/sitecustomize.py", "../../python/sitecustomize.py", NULL};

	if (program_part(places, "python/sitecustomize.py", r->python))
		*strrchr(r->python, '/') = 0;
	else
		*r->python = 0;
}

/* --- the environment; 0, or not: no memory ------------------------------------------------------------------------ */

static int set_size(const char *name, uint64_t bytes)
{
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
	return bytes ? setenv(name, text, 1) : 0;
}

static int set_file(const char *name, const char *file)
{
	char *path = file ? program_absolute(file) : NULL;
	int bad = file && (!path || setenv(name, path, 1));

	free(path);
	return bad;
}

/* In a list of names separated by colons or blanks. */
static int has(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at += n)
		if ((at == list || strchr(": ", at[-1])) && strchr(": ", at[n]))
			return 1;
	return 0;
}

/* Puts a name first in a list. */
static int put_first(const char *variable, const char *name)
{
	const char *old = getenv(variable);
	char *all = NULL;
	int bad;

	if (old && has(old, name))
		return 0;
	bad = asprintf(&all, "%s%s%s", name, old && *old ? ":" : "", old ? old : "") < 0 || setenv(variable, all, 1);
	free(all);
	return bad;
}

/* PyTorch's own allocator hides tensors in large allocations: it passes them to the driver if the user has not chosen
 * otherwise. */
static int set_pytorch(const struct run *r)
{
	static const char *const chosen[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
					     "PYTORCH_NO_CUDA_MEMORY_CACHING"};
	int own = r->managed && !strcmp(r->managed, "none");

	for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
		own |= getenv(chosen[i]) != NULL;
	if (!own && setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync", 1))
		return 1;
	return *r->python && put_first("PYTHONPATH", r->python);
}

/* JAX reserves most of the device as one allocation. With the driver's pools each buffer is one. */
static int set_jax(const struct run *r)
{
	static const char *const chosen[] = {"XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_PREALLOCATE",
					     "XLA_PYTHON_CLIENT_MEM_FRACTION", "TF_GPU_ALLOCATOR"};
	int own = r->managed && !strcmp(r->managed, "none");

	for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
		own |= getenv(chosen[i]) != NULL;
	return own ? 0 : setenv(chosen[0], "cuda_async", 1) || setenv(chosen[1], "false", 1);
}

/* NVTX loads the library; another tool that it would have loaded comes next. */
static int listen(const struct run *r)
{
	const char *old = getenv("NVTX_INJECTION64_PATH");

	if (!r->iteration && !r->record && !r->run_log)
		return 0;
	if (old && *old && strcmp(old, r->library) != 0 && setenv("UMADVISE_NVTX_NEXT", old, 1))
		return 1;
	return (r->iteration && setenv("UMADVISE_ITERATION", r->iteration, 1)) ||
	       setenv("NVTX_INJECTION64_PATH", r->library, 1);
}

static int set_plan(const struct run *r)
{
	char *name = r->plan ? um_file_name(r->plan) : NULL;
	int bad = r->plan && (!name || set_file(access(name, F_OK) ? "UMADVISE_RUN_PLAN" : "UMADVISE_PLAN", r->plan));

	free(name);
	return bad;
}

static int environment(const struct run *r)
{
	return put_first("LD_PRELOAD", r->library) || set_pytorch(r) || set_jax(r) || listen(r) || set_plan(r) ||
	       set_file("UMADVISE_TRACE", r->record) || set_file("UMADVISE_RUN_LOG", r->run_log) ||
	       set_size("UMADVISE_BUDGET", r->budget) || set_size("UMADVISE_RUN_HOST", r->host) ||
	       (r->managed && setenv("UMADVISE_RUN_MANAGED", r->managed, 1)) ||
	       (r->quiet && setenv("UMADVISE_RUN_QUIET", "1", 1));
}

static int run(int argc, char **argv)
{
	static struct run r;
	int code = read_args(&r, argc, argv);

	if (code != ARGS_GO_ON)
		return code;
	code = program_find("run", "LD_PRELOAD", r.program[0], r.path, sizeof r.path);
	if (!code)
		code = find_library(&r);
	if (code)
		return code;
	find_python(&r);
	if (dryrun_is_static(r.path))
		tool_say("run", "%s is linked statically: nothing can be preloaded, it runs without the library",
			 r.program[0]);
	if (environment(&r)) {
		tool_say("run", "no memory");
		return PROGRAM_FAILED;
	}
	fflush(NULL);
	return program_become("run", r.path, r.program);
}

const struct tool_verb verb_run = {
	.name = "run",
	.run = run,
	.what = "run an unchanged CUDA program so that it may outgrow GPU memory",
	.synopsis = "run [OPTION]... [--] PROGRAM [ARGUMENT]...",
	.about = "Runs a CUDA program that does not know of the library: its device memory becomes managed memory, its "
		 "launches, copies and fills are announced, and hints follow from the iterations that are found "
		 "(doc/run.md). At the end one line says what was seen and what it brought. For PyTorch and CuPy it "
		 "puts a folder first in PYTHONPATH. If none of PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF and "
		 "PYTORCH_NO_CUDA_MEMORY_CACHING is set, it sets the first to backend:cudaMallocAsync, but not with "
		 "--managed none (doc/pytorch.md, doc/cupy.md). Likewise it sets XLA_PYTHON_CLIENT_ALLOCATOR to "
		 "cuda_async for JAX, without preallocation (doc/jax.md).",
	.options = options,
	.tail = "Exit status and signals are the program's own; 125 if it could not be run, 126 if it is not\n"
		"executable, 127 if it was not found.\n"
		"\n"
		"Examples:\n"
		"  umadvise run -- ./solver -n 100\n"
		"  umadvise run --budget 8GiB --iteration 'step *' --plan solver.umplan -- ./solver\n"
		"  umadvise dryrun --profile a100 -- umadvise run -- ./solver\n",
	.runs_program = 1,
};
