// SPDX-License-Identifier: Apache-2.0
/*
 * The section on packet loss: what it means in words, the pictures, and their figures as tables.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/loss.h"

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static void value(struct fb_strbuf *b, double v)
{
	char text[40];

	rep_tag(b, "td", "n", "%s", rep_num(v, text, sizeof(text)));
}

static void signed_share(struct fb_strbuf *b, double v)
{
	if (isfinite(v))
		rep_tag(b, "td", "n", "%+.1f", v * 100);
	else
		rep_tag(b, "td", "n", "-");
}

static void head(struct fb_strbuf *b, const char *const *names)
{
	fb_strbuf_add(b, "<div class=\"wide\"><table><thead><tr>");
	for (; *names; names++)
		rep_tag(b, "th", NULL, "%s", *names);
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
}

static void foot(struct fb_strbuf *b)
{
	fb_strbuf_add(b, "</tbody></table></div>\n");
}

static void image(struct fb_strbuf *b, const struct rep_figure *f, const char *no_plots)
{
	fb_strbuf_printf(b, "<figure id=\"%s\">\n", f->id);
	if (!rep_html_image(b, f->svg, f->title))
		rep_tag(b, "p", "quiet", "%s. No picture: %s. The data are in %s.dat.", f->title,
			no_plots ? no_plots : "it could not be drawn", f->id);
}

/* ---- a sweep --------------------------------------------------------------------------------- */

static const char *nature(const char *made_by)
{
	if (strcmp(made_by, "netem") == 0)
		return "Independent loss in an emulator, not congestion.";
	return strcmp(made_by, "command") == 0
		       ? "Loss made by a command of the operator's, not by congestion."
		       : "The loss that the links had by themselves.";
}

static void points(struct fb_strbuf *b, const struct rep_loss *s)
{
	static const char *const names[] = {"lost [%]", "turns", "goodput [Gb/s]",
		"of lossless [%]", "packets sent per needed", "small messages p50 [ms]", "p99 [ms]",
		"longest [ms]", "n", "NAKs", "time-outs (and, in rxe, NAKs)", "use", NULL};
	const json_t *p;
	size_t i;

	head(b, names);
	json_array_foreach (get(s->block, "points"), i, p) {
		double rate = fb_json_num(p, "rate", NAN);
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", "n", "%g", rate);
		rep_tag(b, "td", "n", "%lld", (long long)fb_json_int(p, "turns", 0));
		value(b, fb_json_num(p, "goodput", NAN) * 8 / 1e9);
		value(b, fb_json_num(p, "goodput_share", NAN) * 100);
		value(b, fb_json_num(p, "packets_per_packet", NAN));
		value(b, fb_json_num(p, "p50_ns", NAN) / 1e6);
		value(b, fb_json_num(p, "p99_ns", NAN) / 1e6);
		value(b, fb_json_num(p, "max_ns", NAN) / 1e6);
		rep_tag(b, "td", "n", "%lld", (long long)fb_json_int(p, "n", 0));
		value(b, fb_json_num(p, "naks", NAN));
		value(b, fb_json_num(p, "timeouts", NAN));
		rep_tag(b, "td", NULL, "%s",
			json_is_true(get(p, "fitted")) ? "fitted"
			: rate > 0                     ? "predicted"
						       : "base");
		fb_strbuf_add(b, "</tr>\n");
	}
	foot(b);
}

static void errors(struct fb_strbuf *b, const json_t *list, const char *use)
{
	const json_t *p;
	size_t i;

	json_array_foreach (list, i, p) {
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", "n", "%g", fb_json_num(p, "rate", NAN));
		rep_tag(b, "td", NULL, "%s", use);
		value(b, 1 / fb_json_num(p, "eta", NAN));
		value(b, 1 / fb_json_num(p, "predicted", NAN));
		signed_share(b, fb_json_num(p, "error", NAN));
		signed_share(b, fb_json_num(p, "error_alone", NAN));
		fb_strbuf_add(b, "</tr>\n");
	}
}

static void model(struct fb_strbuf *b, const struct rep_loss *s)
{
	static const char *const names[] = {"lost [%]", "use", "1/eta measured",
		"1/eta by the model", "eta off by [%]", "with W alone [%]", NULL};
	const json_t *m = get(s->block, "model");
	const bool packets = strcmp(fb_json_str(m, "signal", ""), "packets") == 0;
	char w[40], r[40], alone[40];

	rep_tag(b, "h3", NULL, "A model of it");
	if (!isfinite(s->w)) {
		rep_tag(b, "p", NULL, "No model: %s.", fb_json_str(m, "W_reason", "not fitted"));
		return;
	}
	rep_tag(b, "p", NULL,
		"1/eta = 1 + W p/(1-p) + R p². p is the share of packets lost and eta %s. W = %s packets resent per loss; R = %s stands for retransmissions that are lost in turn, each a time-out%s. Fitted by least squares on relative errors; with R = 0, W alone is %s. It is a model: losses are independent, and W and R the same at every rate.",
		packets ? "the packets needed per packet sent, by the sender's counters"
			: "goodput over lossless goodput, because the driver counts no packets that it has sent",
		rep_num(s->w, w, sizeof(w)), rep_num(s->r, r, sizeof(r)),
		json_is_true(get(m, "held_at_0"))
			? " (a constant that came out below 0 was held there)"
			: "",
		rep_num(s->w_alone, alone, sizeof(alone)));
	head(b, names);
	errors(b, get(m, "residuals"), "fitted");
	errors(b, get(m, "predicted"), "predicted");
	foot(b);
}

static void sweep(struct fb_strbuf *b, const struct rep_loss *s, const char *no_plots)
{
	image(b, &s->f, no_plots);
	rep_tag(b, "figcaption", NULL,
		"Measured %s. %s A reliable connection streams in the direction that loses packets; then, alone on the link, RDMA reads of %lld B are posted in the same direction, one at a time: a lost request waits for the ack timeout. The model counts packets: where time-outs add waiting to what is sent again, goodput falls below its line.",
		rep_where_text(s->f.where), nature(fb_json_str(s->block, "made_by", "given")),
		(long long)fb_json_int(s->block, "probe_size", 0));
	points(b, s);
	model(b, s);
	fb_strbuf_add(b, "</figure>\n");
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void steps_table(struct fb_strbuf *b, const struct rep_losses *x, const struct rep_loss *m)
{
	static const char *const names[] = {"run", "lost [%]", "step [ms]", "predicted [ms]",
		"predicted over measured", "MFU, PaLM [%]", "exposed communication [ms]", NULL};

	head(b, names);
	for (size_t i = 0; i < x->nsteps; i++) {
		const struct rep_loss_step *s = &x->step[i];
		const struct rep_loss_group *g = &x->group[s->group];
		double inverse = m ? rep_loss_inverse(m->w, m->r, s->rate) : NAN;
		double step = rep_loss_step_predicted(g->step, g->exposed, inverse);
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", g->name);
		rep_tag(b, "td", "n", "%g", s->rate);
		value(b, s->step / 1e6);
		value(b, step / 1e6);
		value(b, step / s->step);
		value(b, s->mfu * 100);
		value(b, s->exposed / 1e6);
		fb_strbuf_add(b, "</tr>\n");
	}
	foot(b);
}

static void steps(struct fb_strbuf *b, const struct rep_losses *x, const char *no_plots)
{
	const struct rep_loss *m = NULL;
	bool own = false;

	for (size_t i = 0; !m && i < x->n; i++)
		if (isfinite(x->v[i].w))
			m = &x->v[i];
	for (size_t i = 0; i < x->nsteps; i++)
		own = own || (x->step[i].own_peak && isfinite(x->step[i].mfu));
	image(b, &x->train, no_plots);
	rep_tag(b, "figcaption", NULL,
		"Training steps over the same kind of link%s MFU is of %s. Predicted: step = compute + exposed communication × 1/eta%s",
		m ? ", beside what the sweep's model makes of the step without loss."
		  : "; no sweep in this document gives a model to predict them by.",
		own ? "the rate of the step's own products, timed alone, where no data-sheet peak is known"
		    : "the dense data-sheet peak",
		m ? ", where compute is all of the lossless step but its exposed communication, and 1/eta is the first sweep's. What overlaps with computing is not in it, and becomes exposed once it takes longer than that."
		  : ".");
	steps_table(b, x, m);
	fb_strbuf_add(b, "</figure>\n");
}

void rep_html_losses(struct fb_strbuf *b, const struct rep_losses *x, const char *no_plots)
{
	if (!x || (x->n == 0 && x->nsteps == 0))
		return;
	rep_tag(b, "h2", NULL, "Packet loss");
	fb_strbuf_add(b, "\n");
	rep_tag(b, "p", NULL,
		"Why PFC and ECN matter: an RDMA sender that has lost one packet sends again what it had in flight behind it, so that one packet in a hundred can cost most of the goodput and any small message a whole time-out; PFC keeps a full buffer from dropping, and ECN slows senders down before PFC has to.");
	fb_strbuf_add(b, "\n<div class=\"figures\">\n");
	for (size_t i = 0; i < x->n; i++)
		sweep(b, &x->v[i], no_plots);
	if (x->nsteps > 0)
		steps(b, x, no_plots);
	fb_strbuf_add(b, "</div>\n");
}
