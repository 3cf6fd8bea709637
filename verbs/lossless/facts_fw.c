// SPDX-License-Identifier: Apache-2.0
/*
 * How the NIC recovers from loss stands in its register ROCE_ACCL, which no interface of the kernel
 * tells: it is read by the vendor's own tool, mlxreg of MFT or mstreg of mstflint, as a child with
 * a deadline. Only where one is on PATH; it needs root. Source of the fields: NVIDIA, Adaptive
 * Retransmission: Parameters Control, "ROCE_ACCL Layout and Relevant Field Description".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/proc.h"
#include "verbs/lossless/facts_priv.h"

#define ASK_NS 2000000000ull

static const struct {
	const char *field, *name;
} fields[] = {{"roce_adp_retrans_en", "ADP retransmission"}, {"roce_tx_window_en", "TX window"},
	{"roce_slow_restart_en", "slow restart"},
	{"selective_repeat_forced_en", "selective repeat"},
	{"adaptive_routing_forced_en", "forced AR"}};

/* The line "FIELD | 0x00000001". @return -1: there is none */
static long value_of(const char *text, const char *field)
{
	size_t n = strlen(field);
	for (const char *at = text; at && (at = strstr(at, field)) != NULL; at += n) {
		const char *bar = at + n;
		char *end;
		if (at != text && at[-1] != '\n' && at[-1] != ' ')
			continue;
		bar += strspn(bar, " \t");
		if (*bar != '|')
			continue;
		long v = strtol(bar + 1, &end, 0);
		return end == bar + 1 ? -1 : v;
	}
	return -1;
}

static void take_fields(const char *text, struct fact_text *t)
{
	size_t at = 0;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		long v = value_of(text, fields[i].field);
		if (v < 0 || at >= sizeof(t->v))
			continue;
		at += (size_t)snprintf(t->v + at, sizeof(t->v) - at, "%s%s %s", at ? ", " : "",
			fields[i].name, v ? "on" : "off");
	}
	if (at)
		t->f.state = FACT_KNOWN;
	else
		fact_none(&t->f, FACT_BROKEN, "its answer has none of the register's fields");
}

/* The last line that says something: what the tool complains of. */
static void complaint(const char *text, char *out, size_t len)
{
	out[0] = '\0';
	for (const char *line = text; line && *line;) {
		size_t n = strcspn(line, "\n");
		if (n > strspn(line, " \t\r-=*"))
			snprintf(out, len, "%.*s", (int)n, line);
		line += n + (line[n] == '\n');
	}
}

void facts_fw_ask(const char *bdf, struct fact_text *t)
{
	static const char *const tools[] = {"mlxreg", "mstreg"};
	char program[512], why[96];
	size_t i = 0;
	while (i < 2 && fb_find_program(tools[i], program, sizeof(program)) < 0)
		i++;
	fact_read_by(&t->f, "%s -d %s --reg_name ROCE_ACCL --get", tools[i < 2 ? i : 0], bdf);
	if (i == 2) {
		fact_none(&t->f, FACT_ABSENT,
			"neither mlxreg (MFT) nor mstreg (mstflint) is on PATH");
		return;
	}
	const char *const argv[] = {
		program, "-d", bdf, "--yes", "--reg_name", "ROCE_ACCL", "--get", NULL};
	const struct fb_proc_opts o = {.capture = 65536, .deadline_ns = fb_clock_ns() + ASK_NS};
	struct fb_proc_result r = {0};
	struct fb_err e = {0};
	int rc = fb_proc_run(argv, &o, &r, &e);
	if (rc == 0 && r.status == 0 && r.out) {
		take_fields(r.out, t);
	} else {
		complaint(r.err && r.err[0] ? r.err : r.out, why, sizeof(why));
		fact_none(&t->f, FACT_HIDDEN, "%s", rc < 0 ? e.msg : why[0] ? why : "it fails");
	}
	fb_proc_result_free(&r);
}

void facts_read_fw(const struct facts_door *d, struct port_facts *p)
{
	struct fact_text *t = &p->loss_recovery;
	if (strcmp(p->family, "mlx5") != 0 || !p->bdf[0] || !p->ethernet) {
		fact_read_by(&t->f, "mlxreg --reg_name ROCE_ACCL");
		fact_none(&t->f, FACT_ABSENT, "only NVIDIA's NICs have this register");
	} else if (!fb_sysroot_is_live(d->r)) {
		fact_read_by(&t->f, "mlxreg -d %s --reg_name ROCE_ACCL --get", p->bdf);
		fact_none(&t->f, FACT_HIDDEN, "not recorded: only the vendor's tool reads it");
	} else {
		facts_fw_ask(p->bdf, t);
	}
}
