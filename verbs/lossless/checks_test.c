// SPDX-License-Identifier: Apache-2.0
/*
 * Every tree in testdata/trees has a golden file beside it: what each check finds, in each of the
 * ways that its first line names. With FABRICBENCH_WRITE_GOLDEN set they are written instead, for
 * review. Which check has been seen to pass, fail and skip is counted over all of them.
 */
#include "bench/core/test.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/strbuf.h"
#include "verbs/lossless/checks.h"
#include "verbs/lossless/test_tree.h"

#define DATA         "verbs/lossless/testdata/"
#define TREES        DATA "trees/"
#define MAX_VARIANTS 8
#define MAX_CHECKS   64

struct seen {
	const char *id;
	bool state[FB_CHECK_STATES];
};
struct all {
	struct seen seen[MAX_CHECKS];
	int n;
	struct fb_doc *doc;
	int trees, recorded;
};

/* ---- one tree, one way ----------------------------------------------------------------------- */

/* "stat rx_prio3_pause 40", "counter np_cnp_sent 300", "peer 3 999990", "sent 1000000 26" */
static void window_line(struct port_window *w, const char *line)
{
	char word[64], name[64];
	long long a, b;
	if (sscanf(line, "stat %63s %lld", name, &a) == 2)
		fb_json_set_int(w->stats, name, a);
	else if (sscanf(line, "counter %63s %lld", name, &a) == 2)
		fb_json_set_int(w->counters, name, a);
	else if (sscanf(line, "peer %lld %lld", &a, &b) == 2 && a >= 0 && a < 8)
		w->peer_prio_packets[a] = b;
	else if (sscanf(line, "sent %lld %lld", &a, &b) == 2) {
		w->sent_packets = a;
		w->sent_dscp = (int)b;
	} else if (sscanf(line, "seconds %lld", &a) == 1)
		w->ns = (uint64_t)a * 1000000000;
	else if (sscanf(line, "bytes %lld", &a) == 1)
		w->bytes = (uint64_t)a;
	else if (sscanf(line, "packets %lld", &a) == 1)
		w->packets = (uint64_t)a;
	else if (sscanf(line, "%63s", word) == 1 && word[0] != '#')
		fail_msg("a window has no line \"%s\"", line);
}

static void window_read(struct port_window *w, const char *tree)
{
	char path[256], line[256];
	*w = (struct port_window){.traffic_known = true,
		.stats = json_object(),
		.counters = json_object(),
		.sent_packets = -1};
	for (int i = 0; i < 8; i++)
		w->peer_prio_packets[i] = -1;
	snprintf(path, sizeof(path), TREES "%s.window", tree);
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("there is no %s", path);
	while (fgets(line, sizeof(line), f))
		window_line(w, line);
	fclose(f);
	assert_true(w->ns > 0);
}

struct variant {
	char name[64];
	char state[MAX_CHECKS][8];
};

static void run_variant(
	struct all *all, const char *tree, const struct node_facts *n, struct variant *v)
{
	char words[64], path[256], *save = NULL;
	struct profile profile;
	struct port_window window = {.ns = 0};
	struct test_tree other;
	const struct node_facts *others[1];
	struct fb_err e = {0};
	const char *why;
	profile_none(&profile);
	struct check_input in = {.node = n, .port = &n->port[0], .profile = &profile};
	snprintf(words, sizeof(words), "%.63s", v->name);
	for (char *w = strtok_r(words, "+", &save); w; w = strtok_r(NULL, "+", &save)) {
		if (strcmp(w, "window") == 0) {
			window_read(&window, tree);
			in.window = &window;
		} else if (strncmp(w, "other:", 6) == 0) {
			snprintf(path, sizeof(path), TREES "%s.tree", w + 6);
			test_tree_open(&other, path, "/proc/sys/kernel/hostname = other");
			others[0] = &other.facts;
			in.others = others;
			in.n_others = 1;
		} else if (strcmp(w, "plain") != 0) {
			snprintf(path, sizeof(path), DATA "profiles/%s.ini", w);
			if (access(path, R_OK) != 0)
				snprintf(path, sizeof(path), "%s", w);
			if (profile_read(path, &profile, &e) != 0)
				fail_msg("%s", e.msg);
		}
	}
	const struct port_check *table = checks_of(&n->port[0], &why);
	json_t *checks = json_object_get(fb_doc_json(all->doc), "checks"), *c;
	size_t i;
	json_array_clear(checks);
	checks_run(table ? table : roce_checks, &in, all->doc);
	json_array_foreach (checks, i, c)
		snprintf(v->state[i], sizeof(v->state[i]), "%s", fb_json_str(c, "state", "?"));
	json_decref(window.stats);
	json_decref(window.counters);
	if (in.n_others)
		test_tree_close(&other);
}

/* ---- golden files ---------------------------------------------------------------------------- */

/* "check plain dscp26-cnp48-6 window": the first line that is no comment. @return how many */
static int golden_variants(const char *path, struct fb_strbuf *comments, struct variant *v)
{
	char line[512], *save = NULL;
	int n = 0;
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("%s is missing: a tree needs its expected findings", path);
	while (fgets(line, sizeof(line), f) && line[0] == '#')
		fb_strbuf_add(comments, line);
	fclose(f);
	char *word = strtok_r(line, " \n", &save);
	if (!word || strcmp(word, "check") != 0)
		fail_msg("%s does not begin with a line \"check VARIANT...\"", path);
	while ((word = strtok_r(NULL, " \n", &save)) != NULL) {
		assert_true(n < MAX_VARIANTS);
		snprintf(v[n++].name, sizeof(v->name), "%s", word);
	}
	assert_true(n > 0);
	return n;
}

static void print_golden(
	const struct port_check *table, const struct variant *v, int n, struct fb_strbuf *b)
{
	fb_strbuf_add(b, "check");
	for (int i = 0; i < n; i++)
		fb_strbuf_printf(b, " %s", v[i].name);
	for (int k = 0; table[k].def.id; k++) {
		fb_strbuf_printf(b, "\n%s  ", table[k].def.id);
		for (int i = 0; i < n; i++)
			fb_strbuf_printf(b, " %-5s", v[i].state[k]);
		while (b->s[b->len - 1] == ' ')
			b->s[--b->len] = '\0';
	}
	fb_strbuf_add(b, "\n");
}

static void note(struct all *all, const char *id, const char *state)
{
	int k = 0, s = 0;
	while (k < all->n && strcmp(all->seen[k].id, id) != 0)
		k++;
	if (k == all->n)
		all->seen[all->n++].id = id;
	while (strcmp(fb_check_state_names[s], state) != 0)
		s++;
	all->seen[k].state[s] = true;
}

static void compare_golden(const char *path, const char *now)
{
	char *golden = NULL;
	size_t len;
	struct fb_err e = {0};
	if (getenv("FABRICBENCH_WRITE_GOLDEN")) {
		assert_int_equal(fb_write_file_atomic(path, now, strlen(now), &e), 0);
		return;
	}
	assert_int_equal(fb_read_file(path, 1u << 20, &golden, &len, &e), 0);
	const char *a = golden, *b = now;
	bool same = strcmp(a, b) == 0;
	while (*a && *b && !same) {
		size_t la = strcspn(a, "\n"), lb = strcspn(b, "\n");
		if (la != lb || strncmp(a, b, la) != 0)
			print_error("%s: expected \"%.*s\", got \"%.*s\"\n", path, (int)la, a,
				(int)lb, b);
		a += la + (a[la] == '\n');
		b += lb + (b[lb] == '\n');
	}
	free(golden);
	if (!same)
		fail_msg("%s: other findings than expected", path);
}

static const char *const healthy[] = {"vendor-good", "vendor-lldp", "mlx5-vendor", "healthy-dscp10",
	"healthy-dscp13", "healthy-ar", "upstream", "upstream-root", "pod", "bnxt", "irdma", "efa",
	"rxe", "bare", "ib-hdr", "ib-bare"};

static void one_tree(struct all *all, const char *tree)
{
	struct test_tree t;
	struct variant v[MAX_VARIANTS] = {0};
	struct fb_strbuf text = {0};
	char path[256], golden[256];
	const char *why;
	snprintf(path, sizeof(path), TREES "%s.tree", tree);
	snprintf(golden, sizeof(golden), TREES "%s.golden", tree);
	int n = golden_variants(golden, &text, v);
	test_tree_open(&t, path, NULL);
	if (t.facts.ports != 1)
		fail_msg("%s has %d ports, not 1", path, t.facts.ports);
	const struct port_check *table = checks_of(&t.facts.port[0], &why);
	table = table ? table : roce_checks;
	for (int i = 0; i < n; i++) {
		run_variant(all, tree, &t.facts, &v[i]);
		for (int k = 0; table[k].def.id; k++)
			note(all, table[k].def.id, v[i].state[k]);
	}
	print_golden(table, v, n, &text);
	compare_golden(golden, text.s);
	for (size_t h = 0; h < sizeof(healthy) / sizeof(healthy[0]); h++)
		if (strcmp(healthy[h], tree) == 0 && strstr(text.s, " fail"))
			fail_msg("%s is healthy, and a check fails:\n%s", path, text.s);
	fb_strbuf_free(&text);
	test_tree_close(&t);
}

/* Values that nobody ever read from a machine must say so, and where they come from. */
static void says_its_source(struct all *all, const char *name)
{
	char path[512], *text = NULL;
	size_t len;
	struct fb_err e = {0};
	snprintf(path, sizeof(path), TREES "%s", name);
	assert_int_equal(fb_read_file(path, 1u << 20, &text, &len, &e), 0);
	bool recorded = strstr(text, "# recorded: ") != NULL;
	if (recorded == (strstr(text, "# constructed: ") != NULL))
		fail_msg("%s says neither (or both) \"# recorded: SOURCE\" and \"# constructed: "
			 "SOURCE\"",
			path);
	all->recorded += recorded;
	free(text);
}

static void trees_yield_their_findings(void **state)
{
	struct all *all = *state;
	struct dirent **names;
	int n = scandir(TREES, &names, NULL, alphasort);
	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		char tree[256];
		size_t len = strlen(names[i]->d_name);
		if (len > 5 && strcmp(names[i]->d_name + len - 5, ".tree") == 0) {
			says_its_source(all, names[i]->d_name);
			snprintf(tree, sizeof(tree), "%.*s", (int)(len - 5), names[i]->d_name);
			one_tree(all, tree);
			all->trees++;
		}
		free(names[i]);
	}
	free(names);
	assert_true(all->trees >= 30);
	assert_true(all->recorded >= 1);
}

/* ---- holes ----------------------------------------------------------------------------------- */

/* What no tree can show, each with the reason. Everything else must be there. */
static const struct {
	const char *id, *state, *why;
} holes[] = {
	{"R02", "fail", "the table runs where the link layer is Ethernet"},
	{"R19", "fail", "two agents are a warning"},
	{"R27", "pass", "it needs a peer"},
	{"R27", "fail", "it needs a peer"},
	{"R32", "fail", "the application's fault is a warning"},
	{"R39", "pass", "configuration space is bytes: pci_test has it"},
	{"R39", "fail", "it only warns"},
	{"R40", "pass", "nothing is judged"},
	{"R40", "fail", "nothing is judged"},
	{"R41", "pass", "it only tells"},
	{"R41", "fail", "it only tells"},
	{"I10", "fail", "a smaller MTU is a warning"},
	{"I13", "fail", "other firmware is a warning"},
};

static bool is_hole(const char *id, const char *state)
{
	for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++)
		if (strcmp(holes[i].id, id) == 0 && strcmp(holes[i].state, state) == 0)
			return true;
	return false;
}

static int holes_of(const struct all *all, const struct port_check *table)
{
	static const enum fb_check_state wanted[] = {FB_CHECK_PASS, FB_CHECK_FAIL, FB_CHECK_SKIP};
	int bad = 0;
	for (; table->def.id; table++)
		for (size_t w = 0; w < 3; w++) {
			const char *name = fb_check_state_names[wanted[w]];
			bool found = false;
			for (int k = 0; k < all->n; k++)
				found = found || (strcmp(all->seen[k].id, table->def.id) == 0 &&
							 all->seen[k].state[wanted[w]]);
			if (found == is_hole(table->def.id, name)) {
				print_error("%s: %s tree where it must %s\n", table->def.id,
					found ? "there is a" : "there is no", name);
				bad++;
			}
		}
	return bad;
}

static void each_check_passes_fails_and_skips_somewhere(void **state)
{
	const struct all *all = *state;
	assert_int_equal(holes_of(all, roce_checks) + holes_of(all, ib_checks), 0);
}

/* ---- the tables ------------------------------------------------------------------------------ */

static void table_is_whole(const struct port_check *table, char letter, int n)
{
	int i = 0;
	for (; table[i].def.id; i++) {
		const struct fb_check_def *d = &table[i].def;
		char id[16];
		snprintf(id, sizeof(id), "%c%02d", letter, i + 1);
		assert_string_equal(d->id, id);
		assert_true(d->title && *d->title && d->needs && *d->needs && d->rule && *d->rule);
		assert_true(d->source && *d->source);
		assert_true(strcmp(d->evidence, "recorded") == 0 ||
			    strcmp(d->evidence, "constructed") == 0 ||
			    strcmp(d->evidence, "hardware") == 0);
		assert_non_null(table[i].run);
		/* What changes PFC on mlx5 takes the link down: it has to say so. */
		if (d->remedy && strstr(d->remedy, "pfc set"))
			assert_non_null(strstr(d->side_effect, "link down"));
	}
	assert_int_equal(i, n);
}

static void tables_are_whole(void **state)
{
	(void)state;
	table_is_whole(roce_checks, 'R', 42);
	table_is_whole(ib_checks, 'I', 13);
}

static int setup(void **state)
{
	static char *argv[] = {(char *)"check", NULL};
	struct fb_output_cfg out = {.quiet = true};
	struct fb_err e = {0};
	struct all *all = calloc(1, sizeof(*all));
	if (!all)
		return -1;
	all->doc = fb_doc_new("check all", 1, argv, &out, &e);
	*state = all;
	return all->doc ? 0 : -1;
}

static int teardown(void **state)
{
	struct all *all = *state;
	fb_doc_free(all->doc);
	free(all);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tables_are_whole),
		cmocka_unit_test(trees_yield_their_findings),
		cmocka_unit_test(each_check_passes_fails_and_skips_somewhere)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
