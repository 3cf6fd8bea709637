// SPDX-License-Identifier: Apache-2.0
/*
 * Sequences from a seed or a file. A file is mapped, never read whole: a corpus may be larger than
 * memory.
 */
#include "bench/train/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/stats.h"

/* Of ten steps of the synthetic walk, one is a jump to anywhere. */
#define JUMP_SHARE 0.1

struct tokens {
	struct tokens_config c;
	const unsigned char *map; /* NULL: synthetic */
	size_t bytes;
	int width;     /* bytes of a token in the file */
	int64_t count; /* tokens in it */
};

/* What a token file has to be; %d: bytes of a token of this model. */
#define TOKEN_KINDS                                                                         \
	"tokens are little-endian integers of %d bytes here (uint16 up to a vocabulary of " \
	"65536, uint32 above)"

#define WIDTH_LOOK 4096 /* tokens from which their width is told */

static int64_t file_token(const struct tokens *t, int64_t i)
{
	const unsigned char *p = t->map + i * t->width;
	uint32_t v = (uint32_t)p[0] | (uint32_t)p[1] << 8;
	if (t->width == 4)
		v |= (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
	return v;
}

/*
 * uint32 tokens where uint16 ones are read: every second number is then 0, the upper half of a
 * token. A text in which each second token is number 0 is none. Only for 2-byte tokens: 2-byte ones
 * read as 4 are out of any vocabulary, and read_file() says so.
 */
static int check_width(const struct tokens *t, struct fb_err *e)
{
	int64_t n = t->count < WIDTH_LOOK ? t->count : WIDTH_LOOK;
	bool low = false;
	if (t->bytes % (size_t)t->width != 0) {
		fb_fail_usage(e, "the token file %s has %zu bytes: no whole tokens of %d bytes",
			t->c.file, t->bytes, t->width);
		fb_hint(e, TOKEN_KINDS, t->width);
		return -EINVAL;
	}
	if (t->width != 2 || n < 16)
		return 0;
	for (int64_t i = 0; i + 1 < n; i += 2) {
		if (file_token(t, i + 1) != 0)
			return 0;
		low = low || file_token(t, i) != 0;
	}
	if (!low)
		return 0;
	fb_fail_usage(e,
		"the token file %s holds uint32 tokens: each second number of 2 bytes is 0 in it",
		t->c.file);
	fb_hint(e, TOKEN_KINDS, t->width);
	return -EINVAL;
}

static int map_file(struct tokens *t, struct fb_err *e)
{
	struct stat st;
	int rc = 0;
	int fd = open(t->c.file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0) {
		rc = fb_fail(e, FB_EXIT_USAGE, errno, "cannot read the token file %s: %s",
			t->c.file, strerror(errno));
		goto close_file;
	}
	t->width = t->c.vocab <= 65536 ? 2 : 4;
	t->bytes = (size_t)st.st_size;
	t->count = st.st_size / t->width;
	if (!S_ISREG(st.st_mode) || t->count < t->c.seq + 1) {
		rc = fb_fail_usage(e,
			"the token file %s holds %lld tokens of %d bytes, one sequence needs %lld",
			t->c.file, (long long)t->count, t->width, (long long)t->c.seq + 1);
		fb_hint(e, "give a longer file, or a smaller --seq");
		goto close_file;
	}
	void *map = mmap(NULL, t->bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		rc = fb_fail(e, FB_EXIT_USAGE, errno, "cannot map the token file %s: %s", t->c.file,
			strerror(errno));
	else
		t->map = map;
	if (rc == 0)
		rc = check_width(t, e);
	if (rc != 0 && t->map)
		munmap(map, t->bytes);
close_file:
	if (fd >= 0)
		close(fd);
	return rc;
}

int tokens_open(const struct tokens_config *c, struct tokens **out, struct fb_err *e)
{
	struct tokens *t = calloc(1, sizeof(*t));
	if (!t)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the tokens");
	t->c = *c;
	if (t->c.batches == 0)
		t->c.batches = 1;
	int rc = c->file ? map_file(t, e) : 0;
	if (rc != 0) {
		free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void tokens_close(struct tokens *t)
{
	if (!t)
		return;
	if (t->map)
		munmap((void *)(uintptr_t)t->map, t->bytes);
	free(t);
}

static int read_file(
	struct tokens *t, int64_t sequence, int32_t *input, int32_t *target, struct fb_err *e)
{
	/* Sequences lie side by side and share their border token; the file begins again after the
	 * last whole one. */
	int64_t whole = (t->count - 1) / t->c.seq;
	int64_t first = sequence % whole * t->c.seq;
	for (int64_t i = 0; i <= t->c.seq; i++) {
		int64_t v = file_token(t, first + i);
		if (v >= t->c.vocab) {
			fb_fail_usage(e,
				"the token file %s holds %lld at byte %lld, the model's vocabulary "
				"ends at %lld",
				t->c.file, (long long)v, ((long long)first + i) * t->width,
				(long long)t->c.vocab - 1);
			fb_hint(e, TOKEN_KINDS, t->width);
			return -EINVAL;
		}
		if (i < t->c.seq)
			input[i] = (int32_t)v;
		if (i > 0)
			target[i - 1] = (int32_t)v;
	}
	return 0;
}

static void walk(const struct tokens *t, uint64_t sequence, int32_t *input, int32_t *target)
{
	struct fb_rng rng;
	uint64_t v, vocab = (uint64_t)t->c.vocab;
	fb_rng_seed(&rng, t->c.seed, sequence);
	v = fb_rng_u32(&rng) % vocab;
	for (int64_t i = 0; i <= t->c.seq; i++) {
		if (i < t->c.seq)
			input[i] = (int32_t)v;
		if (i > 0)
			target[i - 1] = (int32_t)v;
		if (fb_rng_uniform(&rng) < JUMP_SHARE)
			v = fb_rng_u32(&rng) % vocab;
		else
			v = (v * 5 + 17) % vocab;
	}
}

int tokens_read(struct tokens *t, uint64_t step, int64_t index, int32_t *input, int32_t *target,
	struct fb_err *e)
{
	uint64_t sequence = step % t->c.batches * (uint64_t)t->c.global_seqs + (uint64_t)index;
	if (t->map)
		return read_file(t, (int64_t)sequence, input, target, e);
	walk(t, sequence, input, target);
	return 0;
}
