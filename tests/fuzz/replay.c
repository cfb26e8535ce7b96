/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c - feeds a fuzz target its corpus and the samples of its format, and each of them cut short
 */
#include "fuzz.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum { LARGEST = 20000 }; /* bytes of a file; the recorded traces have tests of their own */

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(LARGEST + 1);

	*size = f && data ? fread(data, 1, LARGEST + 1, f) : 0;
	if (f)
		fclose(f);
	return data;
}

/* Halves, and a byte less: how a file looks that was not written to its end. */
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

/* Standard output carries our own words: targets write elsewhere meanwhile. */
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

int main(void)
{
	const char *top = getenv("top_srcdir");
	char dir[1024], ending[32];
	int n;

	snprintf(dir, sizeof dir, "%s/tests/fuzz/corpus-%s", top ? top : ".", fuzz_name);
	n = feed_folder(dir, NULL);
	ok(n > 0, "%s: %d inputs of the corpus", fuzz_name, n);
	snprintf(dir, sizeof dir, "%s/tests/data", top ? top : ".");
	snprintf(ending, sizeof ending, ".%s", fuzz_name);
	n = feed_folder(dir, ending);
	ok(n > 0, "%s: %d samples", fuzz_name, n);
	return tap_done();
}
