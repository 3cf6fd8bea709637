// SPDX-License-Identifier: Apache-2.0
/*
 * Who a claim speaks of: models, GPUs and strategies by the names that people write. Only tables
 * and look-ups; what follows from them is in the rules.
 *
 * Shapes: the models' own papers and configuration files. GPUs: the makers' data sheets; NVLink as
 * they print it, all links and both directions together.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/units.h"
#include "bench/predict/claims_priv.h"
#include "bench/train/peaks.h"

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* name, row in peaks.h, dense at 16 bits, 8, 32; sizes of memory, their rates; link */
static const struct claim_gpu gpus[] = {
	{"V100", NULL, 125e12, 0, 15.7e12, {16, 32}, {900, 0}, 300, "NVLink 2, 6 links"},
	{"T4", NULL, 65e12, 0, 8.1e12, {16, 0}, {320, 0}, 0, NULL},
	{"A10", NULL, 125e12, 0, 0, {24, 0}, {600, 0}, 0, NULL},
	{"A30", NULL, 165e12, 0, 0, {24, 0}, {933, 0}, 200, "NVLink 3 bridge"},
	{"A100-SXM", "A100", 0, 0, 0, {40, 80}, {1555, 2039}, 600, "NVLink 3, 12 links"},
	{"A100-PCIe", "A100", 0, 0, 0, {40, 80}, {1555, 1935}, 600, "NVLink 3 bridges"},
	{"A40", NULL, 149.7e12, 0, 0, {48, 0}, {696, 0}, 112.5, "NVLink 3 bridge"},
	{"A800", "A100", 0, 0, 0, {40, 80}, {1555, 2039}, 400, "NVLink 3, 8 links"},
	{"H100-SXM", "H100", 0, 1978.9e12, 0, {80, 0}, {3350, 0}, 900, "NVLink 4, 18 links"},
	{"H100-PCIe", "H100 PCIe", 0, 1513e12, 0, {80, 0}, {2039, 0}, 600, "NVLink 4 bridges"},
	{"H100-NVL", "H100 NVL", 0, 1671e12, 0, {94, 0}, {3900, 0}, 600, "NVLink 4 bridges"},
	{"H20", NULL, 148e12, 296e12, 0, {96, 0}, {4000, 0}, 900, "NVLink 4, 18 links"},
	{"H800", "H100", 0, 1978.9e12, 0, {80, 0}, {3350, 0}, 400, "NVLink 4, 8 links"},
	{"H200-SXM", "H200", 0, 1978.9e12, 0, {141, 0}, {4800, 0}, 900, "NVLink 4, 18 links"},
	{"H200-NVL", "H200 NVL", 0, 1671e12, 0, {141, 0}, {4800, 0}, 900, "NVLink 4 bridges"},
	{"GH200", "H100", 0, 1978.9e12, 0, {96, 144}, {4000, 4900}, 900, "NVLink 4, 18 links"},
	{"B200", "B200", 0, 4500e12, 0, {180, 192}, {8000, 0}, 1800, "NVLink 5, 18 links"},
	{"GB200", NULL, 2500e12, 5000e12, 0, {186, 192}, {8000, 0}, 1800, "NVLink 5, 18 links"},
	{"B300", NULL, 2250e12, 4500e12, 0, {270, 288}, {8000, 0}, 1800, "NVLink 5, 18 links"},
	{"GB300", NULL, 2500e12, 5000e12, 0, {279, 288}, {8000, 0}, 1800, "NVLink 5, 18 links"},
	{"L4", NULL, 121e12, 242e12, 0, {24, 0}, {300, 0}, 0, NULL},
	{"L40", NULL, 181e12, 362e12, 0, {48, 0}, {864, 0}, 0, NULL},
	{"L40S", NULL, 362e12, 733e12, 0, {48, 0}, {864, 0}, 0, NULL},
	{"MI250X", NULL, 383e12, 0, 95.7e12, {128, 0}, {3277, 0}, 800, "8 Infinity Fabric links"},
	{"MI300X", NULL, 1307.4e12, 2614.9e12, 0, {192, 0}, {5325, 0}, 896,
		"7 Infinity Fabric links"},
	{"MI325X", NULL, 1307.4e12, 2614.9e12, 0, {256, 0}, {6000, 0}, 896,
		"7 Infinity Fabric links"},
	{"MI350X", NULL, 2300e12, 4600e12, 0, {288, 0}, {8000, 0}, 1075, "7 Infinity Fabric links"},
	{"MI355X", NULL, 2500e12, 5000e12, 0, {288, 0}, {8000, 0}, 1075, "7 Infinity Fabric links"},
};
#define NGPUS (sizeof(gpus) / sizeof(gpus[0]))

/* The words of a GPU's name that are not its model. */
struct gpu_words {
	char base[16];
	bool pcie, nvl;
	double mem_gb;
};

static bool memory_word(const char *w, double *gb)
{
	char *end;
	long v = strtol(w, &end, 10);
	if (end == w || strcmp(end, "GB") != 0 || v <= 0 || v > 1024)
		return false;
	*gb = (double)v;
	return true;
}

/* What may follow the model: the form, its memory, its maker. */
static bool form_word(struct gpu_words *g, const char *w)
{
	static const char *const forms[] = {"", "NVIDIA", "AMD", "TESLA", "INSTINCT", "HGX", "DGX",
		"GPU", "SXM", "SXM2", "SXM3", "SXM4", "SXM5", "SXM6", "OAM", "HBM2", "HBM2E",
		"HBM3", "HBM3E", "NVL8", "NVL72", NULL};
	if (strcmp(w, "PCIE") == 0)
		return g->pcie = true;
	if (strcmp(w, "NVL") == 0)
		return g->nvl = true;
	if (memory_word(w, &g->mem_gb))
		return true;
	for (const char *const *f = forms; *f; f++)
		if (strcmp(w, *f) == 0)
			return true;
	return false;
}

/* A word that begins with a GPU's model: the longest counts, and the rest is a form. */
static bool base_word(struct gpu_words *g, const char *w)
{
	size_t best = 0;
	for (size_t i = 0; i < NGPUS; i++) {
		size_t n = strcspn(gpus[i].name, "-");
		if (n > best && strncmp(w, gpus[i].name, n) == 0)
			best = n;
	}
	if (best == 0 || g->base[0] || !form_word(g, w + best))
		return false;
	snprintf(g->base, sizeof(g->base), "%.*s", (int)best, w);
	return true;
}

const struct claim_gpu *claim_gpu_find(const char *name, double *mem_gb)
{
	struct gpu_words g = {.mem_gb = NAN};
	char full[32], word[32];
	for (const char *p = name; *p;) {
		size_t n = 0;
		while (*p && !isalnum((unsigned char)*p))
			p++;
		for (; isalnum((unsigned char)*p); p++) {
			if (n + 1 == sizeof(word))
				return NULL;
			word[n++] = (char)toupper((unsigned char)*p);
		}
		word[n] = '\0';
		if (!base_word(&g, word) && !form_word(&g, word))
			return NULL;
	}
	const struct claim_gpu *found = NULL;
	snprintf(full, sizeof(full), "%s%s", g.base, g.pcie ? "-PCIe" : g.nvl ? "-NVL" : "");
	for (size_t i = 0; i < NGPUS && g.base[0] && !found; i++)
		if (strcmp(gpus[i].name, full) == 0 ||
			(!g.pcie && !g.nvl && strncmp(gpus[i].name, g.base, strlen(g.base)) == 0 &&
				strcmp(gpus[i].name + strlen(g.base), "-SXM") == 0))
			found = &gpus[i];
	*mem_gb = g.mem_gb;
	return found;
}

void claim_gpu_list(struct fb_strbuf *b)
{
	for (size_t i = 0; i < NGPUS; i++)
		fb_strbuf_printf(b, "%s%s", i ? ", " : "", gpus[i].name);
}

double claim_peak(const struct claim_gpu *g, enum claim_dtype d)
{
	const struct gpu_peak *p = g->peak ? gpu_peak_of(g->peak) : NULL;
	double dense16 = g->dense16 > 0 ? g->dense16 : p ? p->bf16 : NAN;
	if (d == DTYPE_F8 && g->dense8 > 0)
		return g->dense8;
	/* fp32 tensors are multiplied as tf32 at best, at half the rate of 16 bits */
	if (d == DTYPE_F32 || d == DTYPE_TF32)
		return g->dense32 > 0 ? g->dense32 : p && p->tf32 > 0 ? p->tf32 : dense16 / 2;
	return dense16;
}

/* ---- models ---------------------------------------------------------------------------------- */

#define LLAMA(n, l, h, a, k, f, v, t)                                                       \
	{                                                                                   \
		.name = n, .family = MODEL_LLAMA, .layers = l, .hidden = h, .heads = a,     \
		.kv_heads = k, .head_dim = (h) / (a), .ffn = f, .vocab = v, .positions = t, \
		.rope_base = 10000, .eps = 1e-5                                             \
	}
#define GPT(n, l, h, a, v, t)                                                                     \
	{                                                                                         \
		.name = n, .family = MODEL_GPT2, .layers = l, .hidden = h, .heads = a,            \
		.kv_heads = a, .head_dim = (h) / (a), .ffn = 4 * (h), .vocab = v, .positions = t, \
		.eps = 1e-5, .tied = true                                                         \
	}

/* Shapes beside the presets. */
static const struct model shapes[] = {
	LLAMA("llama-7b", 32, 4096, 32, 32, 11008, 32000, 2048),
	LLAMA("llama-13b", 40, 5120, 40, 40, 13824, 32000, 2048),
	LLAMA("llama-65b", 80, 8192, 64, 64, 22016, 32000, 2048),
	LLAMA("llama2-7b", 32, 4096, 32, 32, 11008, 32000, 4096),
	LLAMA("llama2-13b", 40, 5120, 40, 40, 13824, 32000, 4096),
	LLAMA("llama2-70b", 80, 8192, 64, 8, 28672, 32000, 4096),
	LLAMA("mistral-7b", 32, 4096, 32, 8, 14336, 32000, 32768),
	GPT("gpt2-medium", 24, 1024, 16, 50257, 1024),
	GPT("gpt2-large", 36, 1280, 20, 50257, 1024),
	GPT("gpt2-xl", 48, 1600, 25, 50257, 1024),
	GPT("gpt3-175b", 96, 12288, 96, 50257, 2048),
	GPT("mpt-1b", 24, 2048, 16, 50368, 2048),
	GPT("mpt-3b", 32, 2560, 20, 50368, 2048),
	GPT("mpt-7b", 32, 4096, 32, 50368, 2048),
	GPT("mpt-13b", 40, 5120, 40, 50368, 2048),
	GPT("mpt-30b", 48, 7168, 56, 50368, 2048),
	GPT("mpt-70b", 80, 8192, 64, 50368, 2048),
};
#define NSHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* Other names of the same shape; plain() form on the left. */
static const struct {
	const char *alias, *name;
} aliases[] = {
	{"llama3.18b", "llama3-8b"},
	{"llama3.170b", "llama3-70b"},
	{"llama3.370b", "llama3-70b"},
	{"llama3.1405b", "llama3-405b"},
	{"llama3.21b", "llama3-1b"},
	{"llama17b", "llama-7b"},
	{"llama165b", "llama-65b"},
	{"gpt2", "gpt2-124m"},
	{"gpt2small", "gpt2-124m"},
	{"gpt2355m", "gpt2-medium"},
	{"gpt2774m", "gpt2-large"},
	{"gpt21.5b", "gpt2-xl"},
	{"gpt3", "gpt3-175b"},
	{"gpt175b", "gpt3-175b"},
};

/* "Meta-Llama-3.1-70B" -> "llama3.170b": letters, digits and points. */
static void plain(const char *name, char *out, size_t len)
{
	size_t n = 0;
	for (const char *p = name; *p && n + 1 < len; p++)
		if (isalnum((unsigned char)*p) || *p == '.')
			out[n++] = (char)tolower((unsigned char)*p);
	out[n] = '\0';
	if (strncmp(out, "metallama", 9) == 0)
		memmove(out, out + 4, n - 3);
}

static bool preset(const char *name, struct model *m)
{
	struct fb_err ignored = {0};
	return model_find(name, m, &ignored) == 0;
}

bool claim_model_find(const char *name, struct model *m, const char **nearest)
{
	char want[64], have[64];
	unsigned least = 4;
	*nearest = NULL;
	plain(name, want, sizeof(want));
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(want, aliases[i].alias) == 0)
			plain(aliases[i].name, want, sizeof(want));
	for (const char *const *p = model_preset_names; *p; p++) {
		plain(*p, have, sizeof(have));
		if (strcmp(want, have) == 0)
			return preset(*p, m);
		unsigned d = fb_edit_distance(want, have);
		*nearest = d < least ? *p : *nearest;
		least = d < least ? d : least;
	}
	for (size_t i = 0; i < NSHAPES; i++) {
		plain(shapes[i].name, have, sizeof(have));
		if (strcmp(want, have) == 0) {
			*m = shapes[i];
			return true;
		}
		unsigned d = fb_edit_distance(want, have);
		*nearest = d < least ? shapes[i].name : *nearest;
		least = d < least ? d : least;
	}
	return false;
}

/* ---- strategies ------------------------------------------------------------------------------ */

const char *const claim_scheme_words[] = {"ddp", "zero1", "zero2", "zero3", "fsdp", "shard-grad-op",
	"hybrid", "hybrid:F", "offload", "megatron", NULL};

static const struct {
	const char *word;
	enum claim_scheme scheme;
} schemes[] = {
	{"ddp", SCHEME_DDP},
	{"noshard", SCHEME_DDP},
	{"single", SCHEME_DDP},
	{"none", SCHEME_DDP},
	{"zero0", SCHEME_DDP},
	{"zero1", SCHEME_ZERO1},
	{"zero2", SCHEME_ZERO2},
	{"zero3", SCHEME_ZERO3},
	{"fsdp", SCHEME_ZERO3},
	{"fullshard", SCHEME_ZERO3},
	{"shardgradop", SCHEME_SHARD_GRAD_OP},
	{"hybrid", SCHEME_HYBRID},
	{"hybridshard", SCHEME_HYBRID},
	{"hsdp", SCHEME_HYBRID},
	{"offload", SCHEME_OFFLOAD},
	{"zero3offload", SCHEME_OFFLOAD},
	{"zerooffload", SCHEME_OFFLOAD},
	{"megatron", SCHEME_MEGATRON},
	{"megatronlm", SCHEME_MEGATRON},
};

bool claim_scheme_find(const char *text, enum claim_scheme *s, double *f, const char **nearest)
{
	char word[32];
	const char *colon = strchr(text, ':');
	size_t n = 0;
	unsigned least = 4;
	*f = NAN;
	*nearest = NULL;
	for (const char *p = text; *p && p != colon && n + 1 < sizeof(word); p++)
		if (isalnum((unsigned char)*p))
			word[n++] = (char)tolower((unsigned char)*p);
	word[n] = '\0';
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (strcmp(word, schemes[i].word) != 0)
			continue;
		*s = schemes[i].scheme;
		uint64_t shard;
		if (!colon)
			return true;
		if (*s != SCHEME_HYBRID || fb_parse_u64(colon + 1, 1, 1u << 24, &shard, NULL) != 0)
			return false;
		*f = (double)shard;
		return true;
	}
	for (const char *const *w = claim_scheme_words; *w; w++) {
		unsigned d = fb_edit_distance(text, *w);
		*nearest = d < least ? *w : *nearest;
		least = d < least ? d : least;
	}
	return false;
}
