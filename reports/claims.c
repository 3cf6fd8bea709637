// SPDX-License-Identifier: Apache-2.0
/*
 * The Claims section: how many of each verdict, then a row per claim. Only what the document says;
 * nothing is judged here.
 */
#include "reports/claims.h"

#include <math.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/report_priv.h"

static const struct {
	const char *verdict, *cls;
} verdicts[] = {{"possible", "valid"}, {"impossible", "invalid"}, {"depends", "suspect"},
	{"unsourced", "suspect"}};
#define NVERDICTS (sizeof(verdicts) / sizeof(verdicts[0]))

static const char *class_of(const char *verdict)
{
	for (size_t i = 0; i < NVERDICTS; i++)
		if (strcmp(verdict, verdicts[i].verdict) == 0)
			return verdicts[i].cls;
	return NULL;
}

static void summary(struct fb_strbuf *b, const json_t *claims)
{
	const json_t *c;
	size_t i, n[NVERDICTS] = {0};
	json_array_foreach (claims, i, c)
		for (size_t v = 0; v < NVERDICTS; v++)
			n[v] += strcmp(fb_json_str(c, "verdict", ""), verdicts[v].verdict) == 0;
	fb_strbuf_add(b, "<p>");
	rep_text(b, "%zu published figures:", json_array_size(claims));
	for (size_t v = 0; v < NVERDICTS; v++)
		rep_text(b, "%s %zu %s", v ? "," : "", n[v], verdicts[v].verdict);
	fb_strbuf_add(b, ".</p>\n");
	rep_tag(b, "p", "quiet",
		"Judged by arithmetic alone: FLOPs per token against dense data-sheet peaks, bytes of "
		"model states against memory, bytes on the wire against NICs. Nothing was measured "
		"for this. The factor is what is claimed as a share of what can be. Where a source "
		"says FP16 read bf16: both run at the same dense rate, but fp16 ends at 65,504 and "
		"needs loss scaling, while bf16 has fp32's range and needs none.");
}

static void one_claim(struct fb_strbuf *b, const json_t *c)
{
	const char *verdict = fb_json_str(c, "verdict", "?");
	const char *claimed = fb_json_str(c, "claimed", "");
	double factor = fb_json_num(c, "factor_pct", NAN);
	char text[40];
	fb_strbuf_add(b, "<tr>");
	rep_tag(b, "td", "claim", "%s", fb_json_str(c, "id", "?"));
	fb_strbuf_add(b, "<td class=\"says\">");
	rep_tag(b, "div", NULL, "%s", fb_json_str(c, "quantity", ""));
	if (*claimed)
		rep_tag(b, "strong", NULL, "%s", claimed);
	if (fb_json_str(c, "source", NULL))
		rep_tag(b, "div", "quiet", "%s", fb_json_str(c, "source", ""));
	fb_strbuf_add(b, "</td>");
	rep_tag(b, "td", class_of(verdict), "%s", verdict);
	if (isfinite(factor))
		rep_tag(b, "td", "n", "%s %%", rep_num(factor, text, sizeof(text)));
	else
		rep_tag(b, "td", "n", "-");
	rep_tag(b, "td", "why", "%s", fb_json_str(c, "why", ""));
	fb_strbuf_add(b, "</tr>\n");
}

void rep_html_claims(struct fb_strbuf *b, const json_t *doc)
{
	static const char *const names[] = {"claim", "says", "verdict", "factor", "why"};
	const json_t *claims = json_object_get(doc, "claims"), *c;
	size_t i;
	if (json_array_size(claims) == 0)
		return;
	rep_tag(b, "h2", NULL, "Claims");
	fb_strbuf_add(b, "\n");
	summary(b, claims);
	fb_strbuf_add(b, "<div class=\"wide\"><table><thead><tr>");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		rep_tag(b, "th", NULL, "%s", names[i]);
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
	json_array_foreach (claims, i, c)
		one_claim(b, c);
	fb_strbuf_add(b, "</tbody></table></div>\n");
}
