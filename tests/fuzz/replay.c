/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c - feeds a fuzz target its corpus and the samples of its format, each of them cut short, and mutations
 *
 * Mutations run in child processes, BATCH of them in each, and each within SECONDS and MEMORY: a crash, an overrun or a
 * leak ends the child alone. Its mutation is then written to fuzz-FORMAT-NUMBER, and the next child goes on behind it.
 *
 *     UM_FUZZ_RUNS=13000    so many mutations (default: 200)
 *     UM_FUZZ_FROM=4711     the first one's number: with UM_FUZZ_RUNS=1, that one alone
 */
#include "fuzz.h"
#include "mutate.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LARGEST = 65536, /* bytes of a file; the recorded traces have tests of their own */
	RUNS = 200, /* mutations; UM_FUZZ_RUNS asks for others */
	BATCH = 250, /* mutations in a child */
	SECONDS = 10, /* for a mutation */
	MEMORY_MIB = 1024, /* resident at most */
	KEPT = 10 /* findings that are written to files */
};

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
/* An allocation that is too large fails as it would without memory; much that is touched ends the process. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "hard_rss_limit_mb=1024:max_allocation_size_mb=4096:allocator_may_return_null=1";
}
static int leaks(void)
{
	return __lsan_do_recoverable_leak_check();
}
#else
static int leaks(void)
{
	return 0;
}
#endif

static struct mutate corpus;

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(LARGEST + 1);

	*size = f && data ? fread(data, 1, LARGEST + 1, f) : 0;
	if (f)
		fclose(f);
	return data;
}

/* Halves, and a byte less: the lengths of a file whose writing was interrupted. */
static void feed(const uint8_t *data, size_t size)
{
	LLVMFuzzerTestOneInput(data, size);
	for (size_t n = size; n > 0; n /= 2)
		LLVMFuzzerTestOneInput(data, n - 1);
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.' && strcmp(e->d_name, "README.md") != 0;
}

/* Standard output carries the test's own lines: targets write to /dev/null meanwhile. */
static int lead_away(void)
{
	int was, nowhere = open("/dev/null", O_WRONLY);

	fflush(stdout);
	was = dup(STDOUT_FILENO);
	if (nowhere < 0 || was < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
		tap_bail("standard output cannot be led away");
	close(nowhere);
	return was;
}

static void lead_back(int was)
{
	dup2(was, STDOUT_FILENO);
	close(was);
}

/* `ending` NULL: every file. */
static int feed_folder(const char *dir, const char *ending)
{
	struct dirent **names;
	int n = scandir(dir, &names, visible, alphasort), fed = 0, was = lead_away();

	for (int i = 0; i < n; i++) {
		char path[2048];
		uint8_t *data;
		size_t size;

		snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
		if (!ending || strstr(names[i]->d_name, ending)) {
			data = read_file(path, &size);
			if (data && size <= LARGEST) {
				feed(data, size);
				mutate_file_add(&corpus, data, size);
				fed++;
			}
			free(data);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	lead_back(was);
	return fed;
}

/* --- mutations ---------------------------------------------------------------------------------------------------- */

static uint8_t mutation[MUTATE_LARGEST];

/* Of a child: the number of the mutation that it is at, which its parent sees. */
static void run_batch(volatile uint64_t *at, uint64_t from, uint64_t to)
{
	lead_away();
	for (*at = from; *at < to; ++*at) {
		struct rusage usage;
		size_t size = mutate_make(&corpus, *at, mutation);

		alarm(SECONDS);
		LLVMFuzzerTestOneInput(mutation, size);
		alarm(0);
		getrusage(RUSAGE_SELF, &usage);
		if (usage.ru_maxrss / 1024 > MEMORY_MIB)
			abort();
		/* A child that runs one mutation again names the one that leaks. */
		if ((to - from == 1 || *at + 1 == to) && leaks())
			_exit(2);
	}
	_exit(0);
}

static int run_child(volatile uint64_t *at, uint64_t from, uint64_t to)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		run_batch(at, from, to);
	if (child < 0 || waitpid(child, &status, 0) != child)
		tap_bail("a child process cannot be started");
	return status;
}

static void found(uint64_t n, int status)
{
	size_t size = mutate_make(&corpus, n, mutation);
	char name[64];
	FILE *f;

	snprintf(name, sizeof name, "fuzz-%s-%" PRIu64, fuzz_name, n);
	f = fopen(name, "wb");
	if (f) {
		fwrite(mutation, 1, size, f);
		fclose(f);
	}
	diag("mutation %" PRIu64 " (file %s): %s %d", n, name,
	     WIFSIGNALED(status) ? WTERMSIG(status) == SIGALRM ? "too slow, signal" : "signal" : "exit status",
	     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* How many of the mutations break the target. */
static unsigned mutate_all(uint64_t from, uint64_t to)
{
	volatile uint64_t *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned bad = 0;

	if (at == MAP_FAILED)
		tap_bail("no memory");
	while (from < to && bad < KEPT) {
		uint64_t end = to - from < BATCH ? to : from + BATCH;
		int status = run_child(at, from, end), leaky = WIFEXITED(status) && WEXITSTATUS(status) == 2;

		if (!leaky && status) {
			found(*at, status);
			bad++;
			end = *at + 1;
		}
		for (uint64_t n = from; leaky && n < end && bad < KEPT; n++) {
			status = run_child(at, n, n + 1);
			if (status)
				found(n, status);
			bad += status != 0;
		}
		from = end;
	}
	munmap((void *)at, sizeof *at);
	return bad;
}

static uint64_t asked(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

int main(void)
{
	uint64_t runs = asked("UM_FUZZ_RUNS", tap_few() ? 10 : RUNS), from = asked("UM_FUZZ_FROM", 0);
	const char *top = getenv("top_srcdir");
	char dir[1024], ending[32];
	int n;

	snprintf(dir, sizeof dir, "%s/tests/fuzz/corpus-%s", top ? top : ".", fuzz_name);
	n = feed_folder(dir, NULL);
	ok(n > 0, "%s: %d files of the corpus do no harm", fuzz_name, n);
	snprintf(dir, sizeof dir, "%s/tests/data", top ? top : ".");
	snprintf(ending, sizeof ending, ".%s", fuzz_name);
	n = feed_folder(dir, ending);
	ok(n >= 0, "%s: %d samples do no harm", fuzz_name, n);
	snprintf(dir, sizeof dir, "%s/tests/fuzz/formats.dict", top ? top : ".");
	mutate_words_read(&corpus, dir);
	if (corpus.n_files)
		ok(mutate_all(from, from + runs) == 0, "%s: %" PRIu64 " mutated files do no harm", fuzz_name, runs);
	mutate_fini(&corpus);
	return tap_done();
}
