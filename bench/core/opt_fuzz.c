// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: lines as a command line against a table with every type, and as plan values. What is
 * accepted lies within its limits and survives a round trip; what is refused has a message.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/opt.h"
#include "bench/core/units.h"

struct cfg {
	bool quiet, check;
	int port;
	uint64_t iters, size, duration;
	double ci, rate;
	char *device, *host;
	int op;
	struct fb_opt_list list, rest;
};
#define AT(f) offsetof(struct cfg, f)
static const char *const ops[] = {"send", "write", "read", NULL};
static const struct fb_opt table[] = {{'q', "quiet", FB_OPT_FLAG, AT(quiet), .def = NULL},
	{'c', "check", FB_OPT_FLAG, AT(check), .def = "yes"},
	{'p', "port", FB_OPT_INT, AT(port), .min = -5, .max = 65535, .def = "18515"},
	{'n', "iters", FB_OPT_U64, AT(iters), .min = 1, .max = 1000000, .def = "1000"},
	{'s', "size", FB_OPT_SIZE, AT(size), .min = 1, .max = 1 << 30, .def = "64K"},
	{'D', "duration", FB_OPT_DURATION, AT(duration), .def = "10s"},
	{0, "ci", FB_OPT_DOUBLE, AT(ci), .min = 0, .max = 1, .def = "0.02"},
	{'r', "rate", FB_OPT_RATE, AT(rate), .def = NULL},
	{'d', "device", FB_OPT_STRING, AT(device), .def = NULL},
	{0, "op", FB_OPT_ENUM, AT(op), .names = ops},
	{'l', "list", FB_OPT_LIST, AT(list), .def = "a,b"},
	{0, "host", FB_OPT_STRING, AT(host), .positional = true},
	{0, "rest", FB_OPT_LIST, AT(rest), .positional = true}, {0}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* --help prints: not into the fuzzer's own output. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	if (!freopen("/dev/null", "w", stdout))
		abort();
	return 0;
}

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void check_refusal(int rc, const struct fb_err *e)
{
	check(rc < 0 && e->code < 0 && e->msg[0] && e->exit == FB_EXIT_USAGE);
}

static void check_values(const struct cfg *c)
{
	check(c->port >= -5 && c->port <= 65535);
	check(c->iters >= 1 && c->iters <= 1000000);
	check(c->size >= 1 && c->size <= 1 << 30);
	check(c->duration <= INT64_MAX);
	check(c->ci >= 0 && c->ci <= 1);
	check(isfinite(c->rate) && c->rate >= 0);
	check(c->op >= 0 && c->op < 3);
	for (size_t i = 0; i < c->list.n; i++)
		check(c->list.v[i][0] && !strchr(c->list.v[i], ','));
}

/* Each word alone, through the parsers of units. */
static void check_units(const char *word)
{
	uint64_t v, again;
	double rate;
	char buf[64];
	struct fb_err e = {0};
	int rc = fb_parse_size(word, &v, &e);
	if (rc == 0) {
		check(v <= INT64_MAX);
		check(fb_parse_size(fb_fmt_size_exact(v, buf, sizeof(buf)), &again, &e) == 0);
		check(again == v);
		fb_fmt_size(v, buf, sizeof(buf));
	} else {
		check_refusal(rc, &e);
	}
	fb_err_clear(&e);
	rc = fb_parse_duration(word, &v, &e);
	if (rc == 0) {
		check(v <= INT64_MAX);
		fb_fmt_duration((double)v, buf, sizeof(buf));
	} else {
		check_refusal(rc, &e);
	}
	fb_err_clear(&e);
	rc = fb_parse_rate(word, &rate, &e);
	if (rc == 0) {
		check(isfinite(rate) && rate >= 0);
		fb_fmt_gbps(rate, buf, sizeof(buf));
	} else {
		check_refusal(rc, &e);
	}
	check(fb_edit_distance(word, "duration") == fb_edit_distance("duration", word));
}

static void check_plan(struct fb_opt_spec *spec, const struct cfg *c, int argc, char **argv)
{
	struct fb_err e = {0};
	check(fb_opt_defaults(spec, &e) == 0);
	for (int i = 1; i + 1 < argc; i += 2) {
		fb_err_clear(&e);
		int rc = fb_opt_set_value(spec, argv[i], argv[i + 1], &e);
		if (rc)
			check_refusal(rc, &e);
		const char *nearest = NULL;
		check((fb_opt_find(spec, argv[i], &nearest) == NULL) == (rc == -ENOENT));
	}
	check_values(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *argv[64] = {(char *)"fuzz"}, *rest = text;
	int argc = 1;
	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	/* One argument per line; an empty line is an empty argument. */
	for (char *word; argc < 64 && (word = strsep(&rest, "\n"));)
		argv[argc++] = word;
	struct cfg c = {0};
	struct fb_opt_spec spec = {.command = "fuzz", .sets = {{"Fuzz", table, &c}}};
	struct fb_err e = {0};
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 0) {
		check_values(&c);
		json_t *j = fb_opt_to_json(&spec, true), *all = fb_opt_to_json(&spec, false);
		check(j && all && json_object_size(j) <= json_object_size(all));
		json_decref(j);
		json_decref(all);
	} else if (rc < 0) {
		check_refusal(rc, &e);
	}
	for (int i = 1; i < argc; i++)
		check_units(argv[i]);
	check_plan(&spec, &c, argc, argv);
	fb_opt_free(&spec);
	free(text);
	return 0;
}
