// SPDX-License-Identifier: Apache-2.0
/*
 * Presets, and model files by libinih. A model file is one model: key = value, alone or under
 * [model]. libinih cuts lines of 200 bytes and takes an indented line for more of the value above:
 * it is handed prepared lines, and longer ones are refused. What a key may be left out for is said
 * where it is filled in; everything else must stand.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/ini.h"
#include "bench/core/json.h"
#include "bench/core/units.h"
#include "bench/train/model.h"

#define MAX_FILE      65536
#define ROPE_BASE     500000 /* Llama 3 */
#define ROPE_BASE_OLD 10000  /* Llama 1 and 2; Su et al., RoFormer */
#define NORM_EPS      1e-5
#define CONTEXT       131072 /* Llama 3.1 and 3.2; the same shapes trained at 8192 first */

/* llama3-1b is Meta's Llama-3.2-1B, whose head is tied to the embedding; it stays so here. Its and
 * Llama 3.1's stretched rotary frequencies, which serve long contexts, are left out: they change no
 * count and no speed. */
static const struct model presets[] = {
	/* 256 bytes and two marks for a vocabulary; neither a block, nor the root, nor the whole is
	 * a multiple of 3 or 8, and heads * head_dim is not hidden: what is easily taken for
	 * granted does not hold here */
	{"tiny", MODEL_LLAMA, 2, 50, 4, 2, 16, 100, 258, 1024, ROPE_BASE_OLD, NORM_EPS, false},
	{"gpt2-124m", MODEL_GPT2, 12, 768, 12, 12, 64, 3072, 50257, 1024, 0, NORM_EPS, true},
	{"llama3-1b", MODEL_LLAMA, 16, 2048, 32, 8, 64, 8192, 128256, CONTEXT, ROPE_BASE, NORM_EPS,
		true},
	{"llama3-8b", MODEL_LLAMA, 32, 4096, 32, 8, 128, 14336, 128256, CONTEXT, ROPE_BASE,
		NORM_EPS, false},
	{"llama3-70b", MODEL_LLAMA, 80, 8192, 64, 8, 128, 28672, 128256, CONTEXT, ROPE_BASE,
		NORM_EPS, false},
	{"llama3-405b", MODEL_LLAMA, 126, 16384, 128, 8, 128, 53248, 128256, CONTEXT, ROPE_BASE,
		NORM_EPS, false},
};
#define PRESETS (sizeof(presets) / sizeof(presets[0]))
const char *const model_preset_names[] = {
	"tiny",
	"gpt2-124m",
	"llama3-1b",
	"llama3-8b",
	"llama3-70b",
	"llama3-405b",
	NULL,
};

enum model_key {
	KEY_FAMILY,
	KEY_LAYERS,
	KEY_HIDDEN,
	KEY_HEADS,
	KEY_KV_HEADS,
	KEY_HEAD_DIM,
	KEY_FFN,
	KEY_VOCAB,
	KEY_POSITIONS,
	KEY_ROPE_BASE,
	KEY_EPS,
	KEY_TIED,
	KEY_COUNT
};
static const char *const key_names[KEY_COUNT] = {
	[KEY_FAMILY] = "family",
	[KEY_LAYERS] = "layers",
	[KEY_HIDDEN] = "hidden",
	[KEY_HEADS] = "heads",
	[KEY_KV_HEADS] = "kv-heads",
	[KEY_HEAD_DIM] = "head-dim",
	[KEY_FFN] = "ffn",
	[KEY_VOCAB] = "vocab",
	[KEY_POSITIONS] = "positions",
	[KEY_ROPE_BASE] = "rope-base",
	[KEY_EPS] = "eps",
	[KEY_TIED] = "tied",
};

struct reader {
	struct fb_ini *ini; /* while a key is read */
	const char *path;
	unsigned seen[KEY_COUNT]; /* line in which the key stood; 0: it did not */
	struct model *m;
	struct fb_err *e;
};

static int set_size(struct reader *r, const char *key, const char *value, int64_t *out)
{
	uint64_t v;
	struct fb_err e = {0};
	if (fb_parse_u64(value, 1, INT64_MAX, &v, &e) != 0)
		return fb_ini_bad(r->ini, "%s = %s: %s", key, value,
			*value ? "a whole number over 0 is needed" : "no value");
	*out = (int64_t)v;
	return 0;
}

static int set_real(struct reader *r, const char *key, const char *value, double *out)
{
	char *end;
	errno = 0;
	double v = strtod(value, &end);
	if (end == value || *end != '\0' || !isfinite(v) || errno == ERANGE)
		return fb_ini_bad(r->ini, "%s = %s: a number is needed", key, value);
	*out = v;
	return 0;
}

static int set_family(struct reader *r, const char *value)
{
	for (int i = 0; model_family_names[i]; i++) {
		if (strcmp(value, model_family_names[i]) == 0) {
			r->m->family = (enum model_family)i;
			return 0;
		}
	}
	return fb_ini_bad(r->ini, "family = %s: llama or gpt2", value);
}

static int set_tied(struct reader *r, const char *value)
{
	static const char *const yes[] = {"yes", "true", "1", "on"};
	static const char *const no[] = {"no", "false", "0", "off"};
	for (int i = 0; i < 4; i++) {
		if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0) {
			r->m->tied = strcmp(value, yes[i]) == 0;
			return 0;
		}
	}
	return fb_ini_bad(r->ini, "tied = %s: yes or no", value);
}

static int set_key(struct reader *r, enum model_key k, const char *value)
{
	struct model *m = r->m;
	int64_t *const sizes[KEY_COUNT] = {
		[KEY_LAYERS] = &m->layers,
		[KEY_HIDDEN] = &m->hidden,
		[KEY_HEADS] = &m->heads,
		[KEY_KV_HEADS] = &m->kv_heads,
		[KEY_HEAD_DIM] = &m->head_dim,
		[KEY_FFN] = &m->ffn,
		[KEY_VOCAB] = &m->vocab,
		[KEY_POSITIONS] = &m->positions,
	};
	if (k == KEY_FAMILY)
		return set_family(r, value);
	if (k == KEY_TIED)
		return set_tied(r, value);
	if (k == KEY_ROPE_BASE)
		return set_real(r, key_names[k], value, &m->rope_base);
	if (k == KEY_EPS)
		return set_real(r, key_names[k], value, &m->eps);
	return set_size(r, key_names[k], value, sizes[k]);
}

static const char *nearest(const char *given, const char *const *words, int n)
{
	const char *best = words[0];
	unsigned least = ~0u;
	for (int i = 0; i < n; i++) {
		unsigned d = fb_edit_distance(given, words[i]);
		if (d < least) {
			least = d;
			best = words[i];
		}
	}
	return best;
}

static int on_key(
	struct fb_ini *ini, void *user, const char *section, const char *key, const char *value)
{
	struct reader *r = user;
	r->ini = ini;
	if (*section != '\0' && strcmp(section, "model") != 0)
		return fb_ini_bad(
			ini, "section [%s]: a model file has [model] or no section", section);
	for (int k = 0; k < KEY_COUNT; k++) {
		if (strcmp(key, key_names[k]) != 0)
			continue;
		if (r->seen[k])
			return fb_ini_bad(
				ini, "%s stands twice (first in line %u)", key, r->seen[k]);
		r->seen[k] = ini->line;
		return set_key(r, (enum model_key)k, value);
	}
	return fb_ini_bad(ini, "unknown key \"%s\"; the nearest is \"%s\"", key,
		nearest(key, key_names, KEY_COUNT));
}

/* What may be left out follows from the rest; what may not is named. */
static int fill_in(struct reader *r)
{
	static const enum model_key needed[] = {
		KEY_FAMILY, KEY_LAYERS, KEY_HIDDEN, KEY_HEADS, KEY_VOCAB, KEY_POSITIONS, KEY_FFN};
	struct model *m = r->m;
	/* GPT-2's feed-forward is four times as wide as the model; Llama's follows no rule */
	if (!r->seen[KEY_FFN] && r->seen[KEY_FAMILY] && m->family == MODEL_GPT2 &&
		m->hidden <= INT64_MAX / 4) {
		m->ffn = 4 * m->hidden;
		r->seen[KEY_FFN] = r->seen[KEY_HIDDEN];
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!r->seen[needed[i]])
			return fb_fail_usage(
				r->e, "%s: %s is missing", r->path, key_names[needed[i]]);
	if (!r->seen[KEY_KV_HEADS])
		m->kv_heads = m->heads;
	if (!r->seen[KEY_HEAD_DIM]) {
		if (m->hidden % m->heads != 0)
			return fb_fail_usage(r->e,
				"%s: hidden = %lld is no multiple of heads = %lld: head-dim must "
				"be given",
				r->path, (long long)m->hidden, (long long)m->heads);
		m->head_dim = m->hidden / m->heads;
	}
	if (!r->seen[KEY_ROPE_BASE])
		m->rope_base = m->family == MODEL_LLAMA ? ROPE_BASE_OLD : 0;
	else if (m->family != MODEL_LLAMA)
		return fb_fail_usage(r->e,
			"%s:%u: rope-base belongs to family = llama; gpt2 learns its positions",
			r->path, r->seen[KEY_ROPE_BASE]);
	if (!r->seen[KEY_EPS])
		m->eps = NORM_EPS;
	if (!r->seen[KEY_TIED])
		m->tied = m->family == MODEL_GPT2;
	return 0;
}

/* The model's name is the file's, without folder and suffix. */
static void name_of(const char *path, struct model *m)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t n = strlen(base);
	if (n > 4 && strcmp(base + n - 4, ".ini") == 0)
		n -= 4;
	snprintf(m->name, sizeof(m->name), "%.*s", (int)(n < sizeof(m->name) ? n : 47), base);
}

int model_parse(const char *text, size_t len, const char *path, struct model *m, struct fb_err *e)
{
	struct fb_err why = {0};
	struct reader r = {.path = path, .m = m, .e = e};
	memset(m, 0, sizeof(*m));
	name_of(path, m);
	int rc = memchr(text, '\0', len)
			 ? fb_fail_usage(e, "%s: contains a NUL byte: not a text file", path)
			 : fb_ini_parse(text, len, path, on_key, &r, e);
	if (rc == 0)
		rc = fill_in(&r);
	if (rc == 0 && model_check(m, &why) != 0)
		rc = fb_fail_usage(e, "%s: %s", path, why.msg);
	if (rc != 0)
		fb_hint(e,
			"a model file has family (llama or gpt2), layers, hidden, heads, ffn, vocab and "
			"positions, and may have kv-heads, head-dim, rope-base, eps and tied, each as "
			"key = value");
	return rc;
}

static int read_model(const char *path, struct model *m, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	int rc = fb_read_file(path, MAX_FILE, &text, &len, e);
	if (rc == 0)
		rc = model_parse(text, len, path, m, e);
	else if (e)
		e->exit = FB_EXIT_USAGE;
	free(text);
	return rc;
}

int model_find(const char *name, struct model *m, struct fb_err *e)
{
	size_t n = strlen(name);
	for (size_t i = 0; i < PRESETS; i++) {
		if (strcmp(name, presets[i].name) == 0) {
			*m = presets[i];
			return 0;
		}
	}
	if (strchr(name, '/') || (n > 4 && strcmp(name + n - 4, ".ini") == 0))
		return read_model(name, m, e);
	int rc = fb_fail_usage(e, "unknown model \"%s\"; the nearest is \"%s\"", name,
		nearest(name, model_preset_names, (int)PRESETS));
	fb_hint(e, "models are tiny, gpt2-124m, llama3-1b, llama3-8b, llama3-70b, llama3-405b, or "
		   "a file: ./NAME or NAME.ini");
	return rc;
}
