// SPDX-License-Identifier: Apache-2.0
/* Option tables: every type, both spellings, messages, help, plan values, the document's config. */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/opt.h"

enum op { OP_SEND, OP_WRITE, OP_READ };
static const char *const op_names[] = {"send", "write", "read", NULL};
static const char *const mtu_names[] = {"auto", "512", "1024", "4096", NULL};

struct cfg {
	bool quiet, inlined;
	int port, delta;
	uint64_t iters, size, duration;
	double ci, rate;
	char *device, *host, *token;
	int op, mtu;
	struct fb_opt_list devices, hosts;
};
#define AT(f) offsetof(struct cfg, f)

static const struct fb_opt table[] = {
	{'q', "quiet", FB_OPT_FLAG, AT(quiet), .help = "print no table and no progress"},
	{'I', "inline", FB_OPT_FLAG, AT(inlined), .def = "yes",
		.help = "post the payload inside the work request where it fits"},
	{'p', "port", FB_OPT_INT, AT(port), .arg = "PORT", .def = "18515", .min = 1, .max = 65535,
		.help = "TCP port of the control channel"},
	{0, "delta", FB_OPT_INT, AT(delta), .help = "shift of the clock, which may be negative"},
	{'n', "iters", FB_OPT_U64, AT(iters), .min = 1, .max = INT64_MAX, .def = "1000",
		.help = "iterations"},
	{'s', "size", FB_OPT_SIZE, AT(size), .def = "64K", .min = 1, .max = 1 << 30,
		.help = "message size"},
	{'D', "duration", FB_OPT_DURATION, AT(duration), .def = "10s",
		.help = "measure each point for this long, dropping the first tenth, and then say how many iterations that was"},
	{0, "ci", FB_OPT_DOUBLE, AT(ci), .def = "0.02",
		.help = "stop once the interval is this narrow"},
	{0, "rate", FB_OPT_RATE, AT(rate), .help = "offered load"},
	{'d', "device", FB_OPT_STRING, AT(device), .arg = "NAME", .help = "RDMA device"},
	{0, "op", FB_OPT_ENUM, AT(op), .names = op_names, .def = "write", .help = "operation"},
	{0, "devices", FB_OPT_LIST, AT(devices), .def = "a,b", .help = "rails"},
	{0, "host", FB_OPT_STRING, AT(host), .arg = "HOST", .positional = true,
		.help = "the server"},
	{0, "token", FB_OPT_STRING, AT(token), .secret = true, .help = "shared token"},
	{0, "mtu", FB_OPT_ENUM, AT(mtu), .names = mtu_names, .hidden = true},
	{0, "break-it", FB_OPT_FLAG, AT(quiet), .hidden = true}, {0}};

struct more {
	char *out;
	bool none;
	struct fb_opt_list rest;
};
static const struct fb_opt more_table[] = {
	{'n', "none", FB_OPT_FLAG, offsetof(struct more, none), .help = "a letter that is taken"},
	{'o', "output", FB_OPT_STRING, offsetof(struct more, out), .arg = "FILE",
		.help = "write the document there"},
	{0, "rest", FB_OPT_LIST, offsetof(struct more, rest), .positional = true}, {0}};

struct fixture {
	struct cfg c;
	struct more m;
	struct fb_opt_spec spec;
	struct fb_err e;
};

static void start(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	memset(&f->c, 0xa5, sizeof(f->c)); /* garbage, as a struct on the stack has */
	memset(&f->m, 0xa5, sizeof(f->m));
	f->spec = (struct fb_opt_spec){.command = "verbs latency",
		.usage = "[options] [HOST]",
		.summary = "Measure the latency of one RDMA operation at a time.",
		.notes = "Examples:\n  fabricbench verbs latency -d mlx5_0 node7\n\n"
			 "Long lines of plain text flow into the next one of their paragraph, and "
			 "do not leave a single\nword on a line of its own.\n\n"
			 "A line that is short enough stands as it is written,\n"
			 "  and so does one that is indented.",
		.sets = {{"Test", table, &f->c}, {"Output", more_table, &f->m}}};
}

static int parse(struct fixture *f, const char *const *words)
{
	char *argv[32] = {(char *)"latency"};
	int argc = 1;
	for (; *words; words++)
		argv[argc++] = (char *)*words;
	return fb_opt_parse(&f->spec, argc, argv, &f->e);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_defaults(void **st)
{
	struct fixture f;
	start(&f);
	assert_int_equal(fb_opt_defaults(&f.spec, &f.e), 0);
	assert_false(f.c.quiet);
	assert_true(f.c.inlined);
	assert_int_equal(f.c.port, 18515);
	assert_int_equal(f.c.delta, 0);
	assert_int_equal(f.c.size, 65536);
	assert_int_equal(f.c.duration, 10000000000);
	assert_float_equal(f.c.ci, 0.02, 0);
	assert_float_equal(f.c.rate, 0, 0);
	assert_null(f.c.device);
	assert_int_equal(f.c.op, OP_WRITE);
	assert_int_equal(f.c.devices.n, 2);
	assert_string_equal(f.c.devices.v[1], "b");
	assert_null(f.m.out);
	fb_opt_free(&f.spec);
	assert_null(f.c.devices.v);
	fb_opt_free(&f.spec);
}

static void test_every_spelling(void **st)
{
	struct fixture f;
	start(&f);
	char host[] = "node7";
	assert_int_equal(
		parse(&f, WORDS("-qp", "7", "-s4K", "--duration=500ms", "--no-inline", "--ci",
				  "1e-3", "--rate", "10Gb/s", "--delta", "-5", "--devices", "x,y",
				  "--devices=z", "--op", "read", host, "-o", "-", "--", "-r", "s")),
		0);
	host[0] = 'X'; /* values are copies */
	assert_true(f.c.quiet);
	assert_false(f.c.inlined);
	assert_int_equal(f.c.port, 7);
	assert_int_equal(f.c.size, 4096);
	assert_int_equal(f.c.duration, 500000000);
	assert_float_equal(f.c.ci, 1e-3, 0);
	assert_float_equal(f.c.rate, 1.25e9, 0);
	assert_int_equal(f.c.delta, -5);
	assert_int_equal(f.c.devices.n, 3);
	assert_string_equal(f.c.devices.v[0], "x");
	assert_string_equal(f.c.devices.v[2], "z");
	assert_int_equal(f.c.op, OP_READ);
	assert_string_equal(f.c.host, "node7");
	assert_string_equal(f.m.out, "-");
	assert_int_equal(f.m.rest.n, 2);
	assert_string_equal(f.m.rest.v[0], "-r");
	fb_opt_free(&f.spec);
	/* "-n" is the first table's, though the second has it too. */
	assert_int_equal(parse(&f, WORDS("-n", "5")), 0);
	assert_int_equal(f.c.iters, 5);
	assert_false(f.m.none);
	/* A second parse forgets the first; the last value wins; a bare "-7" is no option. */
	assert_int_equal(parse(&f, WORDS("--size", "1", "--size", "2", "-7")), 0);
	assert_int_equal(f.c.size, 2);
	assert_int_equal(f.c.iters, 1000);
	assert_string_equal(f.c.host, "-7");
	/* --host took the first bare place. */
	assert_int_equal(parse(&f, WORDS("--host", "h", "bare")), 0);
	assert_string_equal(f.m.rest.v[0], "bare");
	fb_opt_free(&f.spec);
}

static void test_messages(void **st)
{
	static const struct {
		const char *words[4];
		const char *msg;
	} rows[] = {
		{{"--oops"}, "unknown option --oops: did you mean --op?"},
		{{"--sizes=3"}, "unknown option --sizes: did you mean --size?"},
		{{"--dur", "3"}, "unknown option --dur: did you mean --duration?"},
		{{"--no-inlien"}, "unknown option --no-inlien: did you mean --no-inline?"},
		{{"--no-size"}, "unknown option --no-size: did you mean --size?"},
		{{"--zzzzzz"}, "unknown option --zzzzzz"},
		{{"-y"}, "unknown option -y"},
		{{"-qy"}, "unknown option -y"},
		{{"-ops"}, "-o"},
		{{"--op", "wrte"}, "--op wrte: not one of send, write, read; did you mean write?"},
		{{"--op", "xyzzy"}, "--op xyzzy: not one of send, write, read"},
		/* Of numbers the nearest, whatever its digits. */
		{{"--mtu", "1500"},
			"--mtu 1500: not one of auto, 512, 1024, 4096; did you mean 1024?"},
		{{"--mtu", "8192"},
			"--mtu 8192: not one of auto, 512, 1024, 4096; did you mean 4096?"},
		{{"--mtu", "atuo"},
			"--mtu atuo: not one of auto, 512, 1024, 4096; did you mean auto?"},
		{{"-s", "12Q"},
			"-s 12Q: \"12Q\" is not a size: unknown suffix \"Q\"; sizes are written 64, 64K, 1M, 2G"},
		{{"-s12Q"},
			"-s 12Q: \"12Q\" is not a size: unknown suffix \"Q\"; sizes are written 64, 64K, 1M, 2G"},
		{{"-s", "2G"}, "-s 2G: \"2G\" is not within 1 to 1G"},
		{{"--port", "0"}, "--port 0: \"0\" is not within 1 to 65535"},
		{{"--port", "99999999999"},
			"--port 99999999999: \"99999999999\" is not within 1 to 65535"},
		{{"--port", "-99999999999"},
			"--port -99999999999: \"-99999999999\" is not within 1 to 65535"},
		{{"--port", "-3"}, "--port -3: \"-3\" is not within 1 to 65535"},
		{{"-n", "0"}, "-n 0: \"0\" is below 1"},
		{{"-n", "-3"},
			"-n -3: \"-3\" is not a number: it has a sign; whole numbers are written 100 or 0x64"},
		{{"--ci", "nan"}, "--ci nan: \"nan\" is not a number such as 0.5, 2 or 1e-3"},
		{{"--inline=maybe"}, "--inline maybe: not one of yes, no, true, false, 1, 0"},
		{{"--no-inline=yes"}, "--no-inline takes no value"},
		{{"--devices", "a,,b"}, "--devices a,,b: an empty word between the commas"},
		{{"--size"}, "--size needs a value"},
		{{"--size", "--quiet"},
			"--size needs a value, and \"--quiet\" looks like an option"},
		{{"--rate", "10"},
			"--rate 10: \"10\" is not a rate: it has no unit; rates are written 10Gb/s, 5GB/s, 500MB/s"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;
		start(&f);
		int rc = parse(&f, rows[i].words);
		if (strcmp(rows[i].msg, "-o") == 0) { /* "-ops" is -o with the value "ps" */
			assert_int_equal(rc, 0);
			fb_opt_free(&f.spec);
			continue;
		}
		assert_int_equal(rc, -EINVAL);
		assert_string_equal(f.e.msg, rows[i].msg);
		assert_int_equal(f.e.exit, FB_EXIT_USAGE);
		assert_string_equal(
			f.e.hint, "fabricbench verbs latency --help lists every option");
		assert_null(f.spec.state);
	}
	struct fixture f;
	start(&f);
	assert_int_equal(parse(&f, WORDS("-size", "4")), -EINVAL);
	assert_string_equal(f.e.hint, "long names take two dashes: --size");
}

static void test_too_many_positionals(void **st)
{
	struct fixture f;
	start(&f);
	f.spec.sets[1] = (struct fb_opt_set){0};
	assert_int_equal(parse(&f, WORDS("one", "two")), -EINVAL);
	assert_string_equal(
		f.e.msg, "unexpected argument \"two\": every place for a bare argument is taken");
	assert_int_equal(f.e.exit, FB_EXIT_USAGE);
}

static void test_one_name_in_two_tables(void **st)
{
	struct fixture f;
	start(&f);
	f.spec.sets[2] = (struct fb_opt_set){"Again", table, &f.c};
	assert_int_equal(fb_opt_defaults(&f.spec, &f.e), -EINVAL);
	assert_string_equal(f.e.msg, "--quiet stands in two option tables of \"verbs latency\"");
}

static void test_plan_values(void **st)
{
	struct fixture f;
	start(&f);
	assert_int_equal(fb_opt_defaults(&f.spec, &f.e), 0);
	char text[] = "mlx5_0";
	assert_int_equal(fb_opt_set_value(&f.spec, "device", text, &f.e), 0);
	text[0] = 'X';
	assert_string_equal(f.c.device, "mlx5_0");
	assert_int_equal(fb_opt_set_value(&f.spec, "device", "other", &f.e), 0);
	assert_string_equal(f.c.device, "other");
	assert_int_equal(fb_opt_set_value(&f.spec, "inline", "no", &f.e), 0);
	assert_false(f.c.inlined);
	assert_int_equal(fb_opt_set_value(&f.spec, "size", "12Q", &f.e), -EINVAL);
	assert_string_equal(f.e.msg,
		"size = 12Q: \"12Q\" is not a size: unknown suffix \"Q\"; sizes are written 64, 64K, 1M, 2G");
	fb_err_clear(&f.e);
	assert_int_equal(fb_opt_set_value(&f.spec, "sizs", "1", &f.e), -ENOENT);
	assert_string_equal(f.e.msg, "unknown option sizs: did you mean --size?");
	const char *nearest;
	assert_ptr_equal(fb_opt_find(&f.spec, "size", &nearest), &table[5]);
	assert_null(fb_opt_find(&f.spec, "itres", &nearest));
	assert_string_equal(nearest, "iters");
	assert_null(fb_opt_find(&f.spec, "qqqqqqqqqq", &nearest));
	assert_null(nearest);
	fb_opt_free(&f.spec);
}

static void test_json(void **st)
{
	struct fixture f;
	start(&f);
	assert_int_equal(parse(&f, WORDS("-s", "4K", "--op", "send", "--token", "secret", "--rate",
					   "8Gb/s", "--device", "\xff", "--devices", "p,q", "-q")),
		0);
	json_t *asked = fb_opt_to_json(&f.spec, true), *all = fb_opt_to_json(&f.spec, false);
	char *text = json_dumps(asked, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(text,
		"{\"device\":\"\xef\xbf\xbd\",\"devices\":[\"p\",\"q\"],\"op\":\"send\",\"quiet\":true,"
		"\"rate\":1000000000.0,\"size\":4096,\"token\":\"(set)\"}");
	free(text);
	assert_int_equal(json_integer_value(json_object_get(all, "port")), 18515);
	assert_true(json_is_true(json_object_get(all, "inline")));
	assert_null(json_object_get(all, "host"));
	assert_null(json_object_get(all, "break-it"));
	text = json_dumps(all, 0);
	assert_null(strstr(text, "secret"));
	free(text);
	json_decref(asked);
	json_decref(all);
	fb_opt_free(&f.spec);
}

/* The whole help, as it looks, is in testdata/opt_help.txt. */
static void test_help(void **st)
{
	struct fixture f;
	start(&f);
	char *help = NULL, *want = NULL, *rest = NULL;
	size_t len = 0, want_len = 0;
	FILE *out = open_memstream(&help, &len);
	assert_non_null(out);
	fb_opt_help(&f.spec, out);
	fclose(out);
	assert_int_equal(fb_read_file(FB_TESTDATA("bench/core", "opt_help.txt"), 65536, &want,
				 &want_len, &f.e),
		0);
	assert_string_equal(help, want);
	for (char *line = strtok_r(help, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		assert_true(strlen(line) <= 96);
	free(help);
	free(want);
}

static void test_help_asked(void **st)
{
	struct fixture f;
	start(&f);
	int keep = dup(STDOUT_FILENO);
	FILE *null = freopen("/dev/null", "w", stdout);
	int a = parse(&f, WORDS("-q", "--help", "--oops")), b = parse(&f, WORDS("-h"));
	fflush(null);
	dup2(keep, STDOUT_FILENO);
	close(keep);
	assert_int_equal(a, 1);
	assert_int_equal(b, 1);
	assert_null(f.spec.state);
	assert_int_equal(f.e.code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_spelling),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_too_many_positionals),
		cmocka_unit_test(test_one_name_in_two_tables),
		cmocka_unit_test(test_plan_values),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_help_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
