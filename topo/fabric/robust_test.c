// SPDX-License-Identifier: Apache-2.0
/*
 * Files that are cut, binary, cyclic or made to hurt: each is read or refused with a place, quickly
 * and in memory that its size bounds.
 */
#include <sys/resource.h>

#include "bench/core/clock.h"
#include "topo/fabric/fabric_test.h"

typedef int parse_fn(struct fabric *, const char *, size_t, const char *, struct fb_err *);

static int parse(parse_fn *fn, const char *text, size_t len, struct fb_err *e)
{
	struct fabric *f = fabric_new();
	memset(e, 0, sizeof(*e));
	int rc = fn(f, text, len, "file", e);
	if (rc == 0)
		rc = fabric_finish(f, "file", e);
	if (rc == 0)
		assert_true(f->link.n > 0);
	else
		assert_true(e->code < 0 && e->msg[0] && e->exit == FB_EXIT_USAGE);
	fabric_free(f);
	return rc;
}

/* Counters need a fabric to belong to. */
static int parse_counters(
	struct fabric *f, const char *text, size_t len, const char *name, struct fb_err *e)
{
	static const char small[] =
		"Switch\t36 \"S-0000000000200000\"\t\t# \"sw\" base port 0 lid 2 lmc 0\n"
		"[3]\t\"H-0000000000000020\"[1](21) \t\t# \"n1 mlx5_0\" lid 3 4xHDR\n";
	int rc = fabric_parse_discover(f, small, sizeof(small) - 1, name, e);
	return rc == 0 ? fabric_parse_counters(f, text, len, name, e) : rc;
}

/* Cut in the middle of a line a file is refused, or at least loses nothing but that line. */
static void cut_everywhere(const char *file, parse_fn *fn)
{
	size_t len;
	struct fb_err e;
	char *text = read_data(file, &len);
	/* A copy of just that size, so that a sanitizer sees every byte read beyond it. */
	for (size_t n = 1; n < len; n++) {
		char *cut = malloc(n + 1);
		memcpy(cut, text, n);
		cut[n] = '\0';
		parse(fn, cut, n, &e);
		free(cut);
	}
	free(text);
}

static void test_cut(void **state)
{
	cut_everywhere("rail2_misrail_edr.ibnetdiscover.txt", fabric_parse_discover);
	cut_everywhere("rail2_misrail_edr.ibsim.net", fabric_parse_discover);
	cut_everywhere("ibexporter_ibnetdiscover_p_test.txt", fabric_parse_discover);
	cut_everywhere("rail2_misrail_edr.iblinkinfo-l.txt", fabric_parse_linkinfo);
	cut_everywhere("rail2_misrail_edr.iblinkinfo.txt", fabric_parse_linkinfo);
	cut_everywhere("rail2_misrail_edr.ibqueryerrors.txt", parse_counters);
	cut_everywhere("ibexporter_perfquery_0x506b4b03005c2740.txt", parse_counters);
}

/* In the middle of its last line a plain file is refused with the place. */
static void test_cut_line(void **state)
{
	static const char *const lines[] = {"[1]\t\"H-00000000000000",
		"[1]\t\"H-0000000000000020\"[1](21) ", "[1]",
		"[1]\t\"H-0000000000000020\"[1](21) \t\t# \"n1 mlx5_0\"",
		"[1]\t\"H-0000000000000020\"[1](21) \t\t# \"n1 mlx5_0\" lid 2",
		"[1]\t\"H-0000000000000020\"[1](21) \t\t# \"n1 mlx5_0\" lid 2 4xH"};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[512];
		struct fb_err e;
		int n = snprintf(text, sizeof(text),
			"Switch\t36 \"S-0000000000000010\"\t\t# \"sw\" base port 0 lid 1 lmc 0\n"
			"[2]\t\"H-0000000000000030\"[1](31) \t\t# \"n2 mlx5_0\" lid 3 4xHDR\n%s",
			lines[i]);
		assert_int_equal(parse(fabric_parse_discover, text, (size_t)n, &e), -EINVAL);
		assert_has(e.msg, "file:3: ");
	}
}

static void test_malformed(void **state)
{
#define SW "Switch\t36 \"S-0000000000000010\"\t\t# \"sw\" base port 0 lid 1 lmc 0\n"
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"[1]\t\"S-0000000000000010\"[1]\t\t# \"x\" lid 1 4xHDR\n",
			"file:1: a port before"},
		{SW "[256]\t\"S-0000000000000011\"[1]\t\t# \"x\" lid 1 4xHDR\n",
			"file:2: a port number"},
		{SW "[37]\t\"S-0000000000000011\"[1]\t\t# \"x\" lid 1 4xHDR\n",
			"port 37 of a node with 36"},
		{SW "[1]\t\"S-0000000000000011\"[999]\t\t# \"x\" lid 1 4xHDR\n",
			"must be joined to"},
		{SW "[1]\t\"S-0000000000000011\"[1]\t\t# \"x\" lid 99999 4xHDR\n",
			"a LID that is no number"},
		{SW "[1]\t\"S-0000000000000011\"[1]\t\t# \"x\" lid 1 \n",
			"without width and speed"},
		{"Switch\t999 \"S-0000000000000010\"\t\t# \"sw\"\n", "number of ports up to 255"},
		{"Switch\t36 S-0000000000000010\n", "without a node id in quotes"},
		{"vendid=0xffffffffff\n", "vendid= without a number"},
		{"sysimgguid=0x12345678901234567\n", "sysimgguid= without a GUID"},
		{"SW  1719 999 0x7cfe9003009ce5b0 4x EDR\n", "no line of ibnetdiscover -p"},
		{"SW  1719 9 0x7cfe9003009ce5b0 4x EDR - CA 1\n", "the other end must be"},
		{SW, "no cable between two ports"},
	};
	struct fb_err e;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
			parse(fabric_parse_discover, rows[i].text, strlen(rows[i].text), &e),
			-EINVAL);
		assert_has(e.msg, rows[i].why);
	}
}

static void test_binary(void **state)
{
	static char noise[65536];
	unsigned x = 1;
	struct fb_err e;
	parse_fn *const all[] = {fabric_parse_discover, fabric_parse_linkinfo, parse_counters};
	for (size_t i = 0; i < sizeof(noise); i++) {
		x = x * 1664525u + 1013904223u;
		noise[i] = (char)(x >> 24);
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(parse(all[i], noise, sizeof(noise) - 1, &e), -EINVAL);
		memset(noise, 'a', 4096);
		assert_int_equal(parse(all[i], noise, 4096, &e), -EINVAL);
		assert_has(e.msg, "a line of");
		noise[0] = '\0';
		assert_int_equal(parse(all[i], noise, 100, &e), -EINVAL);
		assert_has(e.msg, "no text");
		assert_has(e.hint, "--cache");
		noise[0] = 'x';
	}
}

/* ---- made to hurt ---------------------------------------------------------------------------- */

static double seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6;
}

static void judge_hostile(const char *what, char *text, size_t len)
{
	struct judged j;
	double before = seconds();
	judge_text(&j, text, len, fabric_parse_discover, NULL, NULL);
	if (j.rc < 0)
		fail_msg("%s: %s", what, j.e.msg);
	size_t rows = json_array_size(json_object_get(fb_doc_json(j.doc), "checks"));
	print_message("%s: %zu nodes, %zu ports, %zu rows, %.2f s of CPU\n", what, j.f->node.n,
		j.f->port.n, rows, seconds() - before);
	/* Rows are bounded whatever a file says. */
	assert_true(rows <= FABRIC_CHECKS * (FABRIC_MAX_ROWS + 2));
	assert_true(j.f->port.n <= len / 8);
	judged_free(&j);
	free(text);
}

/* A ring of 20,000 switches: as deep as levels can be. */
static void test_ring(void **state)
{
	enum { N = 20000 };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	for (int i = 0; i < N; i++) {
		fprintf(out, "Switch\t3 \"S-%016x\"\n[1] \"S-%016x\"[2] # \"s\" lid 1 4xHDR\n",
			i + 1, (i + 1) % N + 1);
		if (i % 5000 == 0)
			fprintf(out, "[3] \"H-%016x\"[1] # \"n%d mlx5_0\" lid 1 4xHDR\n",
				0x1000000 + i, i);
	}
	fclose(out);
	judge_hostile("ring", text, len);
}

/* Everything slow, unnamed, twice: every row of every check. */
static void test_all_wrong(void **state)
{
	enum { N = 12000 };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	for (int i = 0; i < N; i++)
		fprintf(out,
			"Switch\t254 \"S-%016x\"\n[1] \"H-%016x\"[1](7) # \"MT1\" lid 1 %s\n"
			"[2] \"S-%016x\"[1] # \"\" lid 1 1xSDR\n[3] \"S-%016x\"[3] # \"\" lid 1 4xHDR\n",
			i + 1, i / 3, i % 5 ? "4xNDR" : "1xSDR", i * 7 % N + 1, i + 1);
	fclose(out);
	judge_hostile("all wrong", text, len);
}

/* Each host has 64 HCAs on 64 full switches: the most that votes can cost. */
static void test_votes(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	for (int s = 0; s < 64; s++) {
		fprintf(out, "Switch\t254 \"S-%016x\"\n", s + 1);
		for (int h = 0; h < 254; h++)
			fprintf(out, "[%d] \"H-%016x\"[1] # \"n%d mlx5_%d\" lid 1 4xHDR\n", h + 1,
				0x100000 + h * 64 + s, h, (s + h) % 64);
	}
	fclose(out);
	judge_hostile("votes", text, len);
}

/* Full switches all joined to each other, many times over. */
static void test_mesh(void **state)
{
	enum { N = 500 };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	for (int s = 0; s < N; s++) {
		fprintf(out, "Switch\t254 \"S-%016x\"\n[254] \"H-%016x\"[1] # \"n\" lid 1 4xHDR\n",
			s + 1, 0x100000 + s);
		for (int p = 1; p < 254; p++)
			fprintf(out, "[%d] \"S-%016x\"[%d] # \"s\" lid 1 4xHDR\n", p, 0x200000 + p,
				s % 254 + 1);
	}
	fclose(out);
	judge_hostile("mesh", text, len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_cut_line),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_binary),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_all_wrong),
		cmocka_unit_test(test_votes),
		cmocka_unit_test(test_mesh),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
