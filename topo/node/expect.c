// SPDX-License-Identifier: Apache-2.0
/*
 * Reading machine.ini: every key, value and repetition is checked, since a mistyped key would
 * silently expect less than the site meant.
 */
#include "topo/node/expect.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/ini.h"
#include "bench/core/json.h"
#include "bench/core/shipped.h"
#include "bench/core/strbuf.h"
#include "bench/core/units.h"
#include "topo/node/gpu.h"

void node_expect_none(struct node_expect *x)
{
	*x = (struct node_expect){.gpus = -1,
		.nics = -1,
		.nvlinks = -1,
		.sockets = -1,
		.numa_per_socket = -1,
		.power_cap = -1,
		.ecc = -1,
		.fabric = EXPECT_FABRIC_ANY,
		.place = EXPECT_PLACE_ANY,
		.gpu_nic_path = TOPO_PATH_UNKNOWN};
}

void node_expect_free(struct node_expect *x)
{
	free(x->dev);
	node_expect_none(x);
}

const struct expect_dev *node_expect_find(const struct node_expect *x, const char *bdf)
{
	for (size_t i = 0; i < x->n_dev; i++)
		if (strcmp(x->dev[i].bdf, bdf) == 0)
			return &x->dev[i];
	return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum kind { NUMBER, TEXT, YES_NO, FABRIC, PLACE, PATH, RATE, SIZE, LINK };

struct key {
	const char *name;
	enum kind kind;
	size_t offset, size;
	int min, max;
	const char *may_be;
};
#define AT(field)  offsetof(struct node_expect, field)
#define LEN(field) sizeof(((struct node_expect *)0)->field)
#define WORDS(key, field)                                        \
	{                                                        \
		key, TEXT, AT(field), LEN(field), 0, 0, "a text" \
	}
#define COUNT(key, field, max)                                                \
	{                                                                     \
		key, NUMBER, AT(field), 0, 0, max, "a number from 0 to " #max \
	}
static const struct key machine_keys[] = {
	WORDS("name", name),
	WORDS("source", source),
	COUNT("gpus", gpus, 256),
	COUNT("nics", nics, 1024),
	WORDS("gpu-model", gpu_model),
	COUNT("nvlinks", nvlinks, 64),
	{"nic-rate", RATE, AT(nic_rate_bps), 0, 0, 0, "a rate such as 400Gb/s"},
	{"gpu-link", LINK, AT(gpu_link), 0, 0, 0, "a link such as 32 GT/s x16"},
	{"nic-link", LINK, AT(nic_link), 0, 0, 0, "a link such as 32 GT/s x16"},
	{"gpu-nic-path", PATH, AT(gpu_nic_path), 0, 0, 0, "PIX, PXB, PHB, NODE or SYS"},
	COUNT("sockets", sockets, 64),
	COUNT("numa-per-socket", numa_per_socket, 64),
	{"memory", SIZE, AT(memory), 0, 0, 0, "a size such as 2T or 2048G"},
	COUNT("power-cap", power_cap, 100000),
	{"ecc", YES_NO, AT(ecc), 0, 0, 0, "yes or no"},
	{"fabric", FABRIC, AT(fabric), 0, 0, 0, "no, yes or cluster"},
	{"place", PLACE, AT(place), 0, 0, 0, "bare-metal or vm-host"},
	{"memlock", SIZE, AT(memlock), 0, 0, 0, "a size such as 16G"},
	WORDS("driver-nvidia", driver_nvidia),
	WORDS("driver-mlx5", driver_mlx5),
	WORDS("kernel", kernel),
	WORDS("firmware", firmware),
	WORDS("fingerprint", fingerprint),
	{.name = NULL},
};
#undef AT
#undef LEN
#define AT(field)  offsetof(struct expect_dev, field)
#define LEN(field) sizeof(((struct expect_dev *)0)->field)
static const struct key device_keys[] = {
	WORDS("slot", slot),
	WORDS("name", name),
	WORDS("model", model),
	COUNT("numa", numa, 1024),
	{"link", LINK, AT(link), 0, 0, 0, "a link such as 32 GT/s x16"},
	{"rate", RATE, AT(rate_bps), 0, 0, 0, "a rate such as 400Gb/s"},
	{.name = NULL},
};
#undef AT
#undef LEN

static int bad_value(struct fb_ini *ini, const struct key *k, const char *value)
{
	return fb_ini_bad(ini, "%s = %.80s: it may be %s", k->name, value, k->may_be);
}

static bool set_link(struct expect_link *to, const char *value)
{
	char *end;
	double gts = strtod(value, &end);
	unsigned width = 0;
	int n = 0;
	if (end == value || !(gts > 0) || gts > 1000)
		return false;
	if (sscanf(end, " GT/s x%u%n", &width, &n) != 1 || end[n] != '\0' || width < 1 ||
		width > 32)
		return false;
	*to = (struct expect_link){gts, width};
	return true;
}

static bool set_path(enum topo_path *to, const char *value)
{
	for (int p = TOPO_PATH_PIX; p <= TOPO_PATH_SYS; p++)
		if (strcmp(value, topo_path_name((enum topo_path)p)) == 0) {
			*to = (enum topo_path)p;
			return true;
		}
	return false;
}

/* Index of a word in a list that ends with NULL, -1. */
static int word_of(const char *value, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(value, words[i]) == 0)
			return i;
	return -1;
}

/* "2T" and "512G": sizes that core knows up to G. */
static bool set_size(uint64_t *to, const char *value)
{
	char text[32];
	struct fb_err e = {0};
	size_t n = strlen(value);
	uint64_t tera = 1;
	if (n == 0 || n >= sizeof(text))
		return false;
	memcpy(text, value, n + 1);
	if (text[n - 1] == 'T') {
		text[n - 1] = 'G';
		tera = 1024;
	}
	uint64_t v;
	if (fb_parse_size(text, &v, &e) != 0 || v == 0 || v > (1ull << 52) / tera)
		return false;
	*to = v * tera;
	return true;
}

static int set_value(struct fb_ini *ini, const struct key *k, char *at, const char *value)
{
	static const char *const yes_no[] = {"no", "yes", NULL};
	static const char *const fabrics[] = {"no", "yes", "cluster", NULL};
	static const char *const places[] = {"bare-metal", "vm-host", NULL};
	struct fb_err e = {0};
	uint64_t v;
	double rate;
	int *number = (int *)(void *)at;
	bool good = false;
	switch (k->kind) {
	case NUMBER:
		good = fb_parse_u64(value, (uint64_t)k->min, (uint64_t)k->max, &v, &e) == 0;
		*number = good ? (int)v : *number;
		break;
	case TEXT:
		if (strlen(value) >= k->size)
			return fb_ini_bad(ini, "%s has %zu bytes; it may have %zu", k->name,
				strlen(value), k->size - 1);
		good = *value != '\0';
		memcpy(at, value, strlen(value) + 1);
		break;
	case YES_NO: good = (*number = word_of(value, yes_no)) >= 0; break;
	case FABRIC: good = (*number = word_of(value, fabrics)) >= 0; break;
	case PLACE: good = (*number = word_of(value, places)) >= 0; break;
	case PATH: good = set_path((enum topo_path *)(void *)at, value); break;
	case RATE:
		good = fb_parse_rate(value, &rate, &e) == 0 && rate >= 125000 && rate < 1e15;
		if (good)
			*(uint64_t *)(void *)at = (uint64_t)(rate * 8 + 0.5);
		break;
	case SIZE: good = set_size((uint64_t *)(void *)at, value); break;
	case LINK: good = set_link((struct expect_link *)(void *)at, value); break;
	}
	return good ? 0 : bad_value(ini, k, value);
}

/* ---- sections -------------------------------------------------------------------------------- */

struct reader {
	struct node_expect *x;
	uint32_t seen;         /* bits by index in machine_keys[] */
	uint32_t *device_seen; /* the same of each device */
};

static int set_key(struct fb_ini *ini, const struct key *keys, uint32_t *seen, char *base,
	const char *key, const char *value)
{
	const char *nearest = keys[0].name;
	unsigned least = ~0u;
	for (int i = 0; keys[i].name; i++) {
		unsigned d = fb_edit_distance(keys[i].name, key);
		if (d < least) {
			least = d;
			nearest = keys[i].name;
		}
		if (d > 0)
			continue;
		if (*seen >> i & 1)
			return fb_ini_bad(ini, "%s stands twice", key);
		*seen |= 1u << i;
		return set_value(ini, &keys[i], base + keys[i].offset, value);
	}
	fb_ini_bad(ini, "there is no key \"%.60s\"", key);
	fb_hint(ini->e, "did you mean %s?", nearest);
	return -EINVAL;
}

/* The device of a section, made when it is new; NULL: *ini is filled. */
static struct expect_dev *device(
	struct fb_ini *ini, struct reader *r, const char *bdf, bool nic, size_t *index)
{
	struct node_expect *x = r->x;
	char clean[24];
	if (!gpu_bdf(bdf, clean, sizeof(clean))) {
		fb_ini_bad(ini, "[%s %.24s]: a PCI address such as 0000:3b:00.0 must stand there",
			nic ? "nic" : "gpu", bdf);
		return NULL;
	}
	for (size_t i = 0; i < x->n_dev; i++)
		if (strcmp(x->dev[i].bdf, clean) == 0) {
			*index = i;
			if (x->dev[i].nic == nic)
				return &x->dev[i];
			fb_ini_bad(ini, "%s is both gpu and nic", clean);
			return NULL;
		}
	if (x->n_dev >= EXPECT_MAX_DEVS) {
		fb_ini_bad(ini, "more than %d devices", EXPECT_MAX_DEVS);
		return NULL;
	}
	*index = x->n_dev;
	struct expect_dev *d = &x->dev[x->n_dev++];
	*d = (struct expect_dev){.nic = nic, .numa = -1};
	snprintf(d->bdf, sizeof(d->bdf), "%s", clean);
	return d;
}

static int key_of(
	struct fb_ini *ini, void *arg, const char *section, const char *key, const char *value)
{
	struct reader *r = arg;
	bool nic = strncmp(section, "nic ", 4) == 0;
	if (strcmp(section, "machine") == 0)
		return set_key(ini, machine_keys, &r->seen, (char *)r->x, key, value);
	if (nic || strncmp(section, "gpu ", 4) == 0) {
		size_t i = 0;
		struct expect_dev *d = device(ini, r, section + 4, nic, &i);
		return d ? set_key(ini, device_keys, &r->device_seen[i], (char *)d, key, value)
			 : -EINVAL;
	}
	return fb_ini_bad(ini, "%s%.40s%s: keys stand in [machine], [gpu BDF] or [nic BDF]",
		*section ? "section [" : "no section", section, *section ? "]" : "");
}

/* What contradicts itself cannot judge anybody. */
static int agree(const struct node_expect *x, const char *name, struct fb_err *e)
{
	int gpus = 0, nics = 0;
	for (size_t i = 0; i < x->n_dev; i++) {
		gpus += !x->dev[i].nic;
		nics += x->dev[i].nic;
	}
	if (x->gpus >= 0 && gpus > x->gpus)
		return fb_fail_usage(
			e, "%s: gpus = %d, and %d sections [gpu ...]", name, x->gpus, gpus);
	if (x->nics >= 0 && nics > x->nics)
		return fb_fail_usage(
			e, "%s: nics = %d, and %d sections [nic ...]", name, x->nics, nics);
	return 0;
}

int node_expect_parse(
	const char *text, size_t len, const char *name, struct node_expect *x, struct fb_err *e)
{
	struct reader r = {.x = x};
	node_expect_none(x);
	x->given = true;
	snprintf(x->path, sizeof(x->path), "%.255s", name);
	x->dev = calloc(EXPECT_MAX_DEVS, sizeof(*x->dev));
	r.device_seen = calloc(EXPECT_MAX_DEVS, sizeof(*r.device_seen));
	if (!x->dev || !r.device_seen) {
		free(r.device_seen);
		node_expect_free(x);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", name);
	}
	int rc = fb_ini_parse(text, len, name, key_of, &r, e);
	if (rc == 0 && r.seen == 0 && x->n_dev == 0) {
		rc = fb_fail_usage(e, "%s says nothing", name);
		fb_hint(e, "fabricbench check node --learn writes the file of a good node");
	}
	if (rc == 0)
		rc = agree(x, name, e);
	/* Devices that are named count, where nothing else does. */
	for (size_t i = 0; rc == 0 && i < x->n_dev; i++) {
		int *n = x->dev[i].nic ? &x->nics : &x->gpus;
		if (!(r.seen >> (x->dev[i].nic ? 3 : 2) & 1))
			*n = (*n < 0 ? 0 : *n) + 1;
	}
	free(r.device_seen);
	if (rc < 0)
		node_expect_free(x);
	return rc;
}

/* ---- finding it ------------------------------------------------------------------------------ */

static int not_found(const char *asked, struct fb_err *e)
{
	struct fb_strbuf all = {0};
	fb_shipped_names("expect", &all);
	fb_fail(e, FB_EXIT_USAGE, ENOENT,
		"there is neither a file nor a shipped expectation \"%.200s\"", asked);
	if (all.s)
		fb_hint(e, "shipped are %s; a path to a file does as well", all.s);
	else
		fb_hint(e, "fabricbench check node --learn writes one from a good node");
	fb_strbuf_free(&all);
	return -ENOENT;
}

int node_expect_read(const char *name, struct node_expect *x, struct fb_err *e)
{
	char path[PATH_MAX], *text = NULL;
	size_t len = 0;
	node_expect_none(x);
	bool bare = !strchr(name, '/') && access(name, F_OK) != 0;
	if (bare && !fb_shipped("expect", name, path, sizeof(path)))
		return not_found(name, e);
	const char *from = bare ? path : name;
	int rc = fb_read_file(from, FB_INI_MAX_BYTES, &text, &len, e);
	if (rc == 0)
		rc = node_expect_parse(text, len, from, x, e);
	/* A shipped one is known by its name. */
	if (rc == 0 && bare)
		snprintf(x->path, sizeof(x->path), "%.200s.ini", name);
	free(text);
	return rc;
}
