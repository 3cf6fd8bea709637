// SPDX-License-Identifier: Apache-2.0
/*
 * The calls of oob.h over any transport: collectives of a star around rank 0.
 *
 * Every message starts with the call's number and kind, so that ranks which have drifted apart are
 * told so instead of reading each other's bytes. The first failure breaks the handle: the other
 * ranks are told its cause, and every later call returns it. It knows transports by oob_ops.h only.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/plugin.h"
#include "bench/core/result.h"
#include "bench/oob/oob_priv.h"

enum kind { BCAST = 1, GATHER, BARRIER_IN, BARRIER_OUT };

static const char *kind_name(unsigned kind)
{
	static const char *const names[] = {
		"an unknown call", "a broadcast", "a gather", "a barrier", "a barrier"};
	return names[kind < sizeof(names) / sizeof(names[0]) ? kind : 0];
}

struct tag {
	uint32_t seq, kind; /* network order */
};

/* One collective call: the error is kept apart, because e may be NULL or may hold an earlier one.
 */
struct call {
	struct oob_front *f;
	struct fb_oob *o;
	struct fb_err err;
	uint64_t deadline;
};

double oob_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

const char *oob_hostname(char *buf, size_t len)
{
	if (gethostname(buf, len) != 0 || buf[0] == '\0')
		snprintf(buf, len, "unknown");
	buf[len - 1] = '\0';
	return buf;
}

struct fb_oob *oob_new(struct fb_err *e)
{
	struct oob_front *f = calloc(1, sizeof(*f));
	if (!f) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the control channel");
		return NULL;
	}
	f->o.stopped = fb_stop_requested;
	return &f->o;
}

static struct oob_front *front_of(struct fb_oob *o)
{
	return (struct oob_front *)o; /* o is its first member */
}

void oob_delete(struct fb_oob *o)
{
	if (o)
		free(front_of(o));
}

static int pass_on(struct fb_err *e, const struct fb_err *why)
{
	int rc = fb_fail(e, why->exit, why->code, "%s", why->msg);
	if (why->hint[0] != '\0')
		fb_hint(e, "%s", why->hint);
	return rc;
}

/* Does the text name its rank already ("rank 3 on node07: ...")? It has gone through an agreement.
 */
static bool names_rank(const char *msg)
{
	int host = 0;
	if (sscanf(msg, "rank %*d on %n", &host) != 0 || host == 0)
		return false;
	size_t len = strcspn(msg + host, " ");
	return len > 1 && msg[host + (int)len - 1] == ':';
}

static void prefixed(struct fb_oob *o, const struct fb_err *in, struct fb_err *out)
{
	char who[128];
	fb_err_clear(out);
	if (names_rank(in->msg)) {
		*out = *in;
		return;
	}
	fb_fail(out, in->exit, in->code, "%s: %s", fb_oob_peer(o, o->rank, who, sizeof(who)),
		in->msg);
	if (in->hint[0] != '\0')
		fb_hint(out, "%s", in->hint);
}

/* The first failure: remember it, tell the others. Rank 0's word stands by itself, another rank's
 * with its name. */
static void break_with(struct call *c, int rc)
{
	if (c->err.code == 0)
		fb_fail(&c->err, FB_EXIT_UNMEASURED, rc, "the control channel failed: %s",
			strerror(-rc));
	c->f->broken = c->err;
	struct fb_err told = c->err;
	if (c->o->rank != 0)
		prefixed(c->o, &c->err, &told);
	c->o->ops->abort(c->o, &told);
}

static int call_begin(struct call *c, struct fb_oob *o, uint64_t deadline)
{
	c->f = front_of(o);
	c->o = o;
	c->deadline = c->f->limit && c->f->limit < deadline ? c->f->limit : deadline;
	memset(&c->err, 0, sizeof(c->err));
	c->f->seq++;
	if (c->f->broken.code != 0)
		return pass_on(&c->err, &c->f->broken);
	return 0;
}

static int call_end(struct call *c, int rc, struct fb_err *e)
{
	if (rc == 0)
		return 0;
	if (c->f->broken.code == 0)
		break_with(c, rc);
	return pass_on(e, &c->f->broken);
}

static int put(struct call *c, int dst, enum kind kind, const void *buf, uint32_t len)
{
	if (len > FB_OOB_MAX_MSG)
		return fb_fail(&c->err, FB_EXIT_UNMEASURED, EMSGSIZE,
			"a control message of %u bytes is over the limit of %u", len,
			FB_OOB_MAX_MSG);
	struct tag tag = {htonl(c->f->seq), htonl(kind)};
	unsigned char small[sizeof(tag) + 256], *m = small;
	if (len > sizeof(small) - sizeof(tag))
		m = malloc(sizeof(tag) + len);
	if (!m)
		return fb_fail(&c->err, FB_EXIT_UNMEASURED, ENOMEM,
			"no memory for a message of %u bytes", len);
	memcpy(m, &tag, sizeof(tag));
	if (len > 0)
		memcpy(m + sizeof(tag), buf, len);
	int rc = c->o->ops->send(c->o, dst, m, (uint32_t)sizeof(tag) + len, c->deadline, &c->err);
	if (m != small)
		free(m);
	return rc;
}

/* The next message of src, which has to be of this call. *buf is the caller's, and begins with the
 * payload. */
static int get(struct call *c, int src, enum kind kind, unsigned char **buf, uint32_t *len)
{
	void *raw = NULL;
	uint32_t n = 0;
	struct tag tag;
	char who[128];
	int rc = c->o->ops->recv(c->o, src, &raw, &n, c->deadline, &c->err);
	if (rc != 0)
		return rc;
	fb_oob_peer(c->o, src, who, sizeof(who));
	if (n < sizeof(tag)) {
		free(raw);
		return fb_fail(&c->err, FB_EXIT_UNMEASURED, EPROTO,
			"%s sent a message of %u bytes: too short", who, n);
	}
	memcpy(&tag, raw, sizeof(tag));
	if (ntohl(tag.kind) != (uint32_t)kind || ntohl(tag.seq) != c->f->seq) {
		free(raw);
		return fb_fail(&c->err, FB_EXIT_UNMEASURED, EPROTO,
			"%s is in %s (call %u) while this rank is in %s (call %u)", who,
			kind_name(ntohl(tag.kind)), ntohl(tag.seq), kind_name(kind), c->f->seq);
	}
	n -= (uint32_t)sizeof(tag);
	memmove(raw, (unsigned char *)raw + sizeof(tag), n);
	*buf = raw;
	*len = n;
	return 0;
}

static int get_exact(struct call *c, int src, enum kind kind, void *out, uint32_t len)
{
	unsigned char *m = NULL;
	uint32_t n = 0;
	char who[128];
	int rc = get(c, src, kind, &m, &n);
	if (rc != 0)
		return rc;
	if (n != len)
		rc = fb_fail(&c->err, FB_EXIT_UNMEASURED, EPROTO,
			"%s sent %u bytes in %s where %u were expected: is it the same command?",
			fb_oob_peer(c->o, src, who, sizeof(who)), n, kind_name(kind), len);
	else if (len > 0)
		memcpy(out, m, len);
	free(m);
	return rc;
}

/* Rank 0's *buf to all; on the others *buf is malloc'ed. */
static int spread(struct call *c, unsigned char **buf, uint32_t *len)
{
	if (c->o->rank != 0)
		return get(c, 0, BCAST, buf, len);
	int rc = 0;
	for (int i = 1; i < c->o->size && rc == 0; i++)
		rc = put(c, i, BCAST, *buf, *len);
	return rc;
}

static int collect(struct call *c, const void *buf, uint32_t len, struct fb_oob_part **parts)
{
	*parts = NULL;
	if (c->o->rank != 0)
		return put(c, 0, GATHER, buf, len);
	struct fb_oob_part *p = calloc((size_t)c->o->size, sizeof(*p));
	if (p)
		p[0].data = malloc(len > 0 ? len : 1);
	if (!p || !p[0].data) {
		free(p);
		return fb_fail(&c->err, FB_EXIT_UNMEASURED, ENOMEM,
			"no memory to gather from %d ranks", c->o->size);
	}
	if (len > 0)
		memcpy(p[0].data, buf, len);
	p[0].len = len;
	for (int i = 1; i < c->o->size; i++) {
		unsigned char *m = NULL;
		int rc = get(c, i, GATHER, &m, &p[i].len);
		if (rc != 0) {
			fb_oob_parts_free(c->o, p);
			return rc;
		}
		p[i].data = m;
	}
	*parts = p;
	return 0;
}

int fb_oob_bcast(struct fb_oob *o, void *buf, uint32_t len, uint64_t deadline, struct fb_err *e)
{
	struct call c;
	int rc = call_begin(&c, o, deadline);
	if (rc != 0)
		return call_end(&c, rc, e);
	if (o->rank != 0) {
		rc = get_exact(&c, 0, BCAST, buf, len);
	} else {
		for (int i = 1; i < o->size && rc == 0; i++)
			rc = put(&c, i, BCAST, buf, len);
	}
	return call_end(&c, rc, e);
}

int fb_oob_gather(struct fb_oob *o, const void *buf, uint32_t len, struct fb_oob_part **parts,
	uint64_t deadline, struct fb_err *e)
{
	struct call c;
	*parts = NULL;
	int rc = call_begin(&c, o, deadline);
	if (rc == 0)
		rc = collect(&c, buf, len, parts);
	return call_end(&c, rc, e);
}

void fb_oob_parts_free(struct fb_oob *o, struct fb_oob_part *parts)
{
	if (!parts)
		return;
	for (int i = 0; i < o->size; i++)
		free(parts[i].data);
	free(parts);
}

int fb_oob_barrier(struct fb_oob *o, uint64_t deadline, struct fb_err *e)
{
	struct call c;
	int rc = call_begin(&c, o, deadline);
	if (rc == 0 && o->rank != 0) {
		rc = put(&c, 0, BARRIER_IN, NULL, 0);
		if (rc == 0)
			rc = get_exact(&c, 0, BARRIER_OUT, NULL, 0);
		return call_end(&c, rc, e);
	}
	for (int i = 1; i < o->size && rc == 0; i++)
		rc = get_exact(&c, i, BARRIER_IN, NULL, 0);
	for (int i = 1; i < o->size && rc == 0; i++)
		rc = put(&c, i, BARRIER_OUT, NULL, 0);
	return call_end(&c, rc, e);
}

int fb_oob_allgather(struct fb_oob *o, const void *mine, uint32_t len, void *out, uint64_t deadline,
	struct fb_err *e)
{
	struct call c;
	int rc = call_begin(&c, o, deadline);
	if (rc != 0)
		return call_end(&c, rc, e);
	if ((uint64_t)len * (unsigned)o->size > FB_OOB_MAX_MSG) {
		rc = fb_fail(&c.err, FB_EXIT_UNMEASURED, EMSGSIZE,
			"%d blocks of %u bytes are over the limit of %u for a control message",
			o->size, len, FB_OOB_MAX_MSG);
		return call_end(&c, rc, e);
	}
	const uint32_t all = len * (uint32_t)o->size;
	unsigned char *to = out;
	if (o->rank != 0) {
		rc = put(&c, 0, GATHER, mine, len);
		if (rc == 0)
			rc = get_exact(&c, 0, BCAST, out, all);
		return call_end(&c, rc, e);
	}
	if (len > 0)
		memcpy(to, mine, len);
	for (int i = 1; i < o->size && rc == 0; i++)
		rc = get_exact(&c, i, GATHER, to + (size_t)i * len, len);
	for (int i = 1; i < o->size && rc == 0; i++)
		rc = put(&c, i, BCAST, out, all);
	return call_end(&c, rc, e);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static int dump(struct call *c, const json_t *j, char **text, uint32_t *len)
{
	const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
	char *s = json_dumps(j, flags);
	if (!s)
		return fb_fail(&c->err, FB_EXIT_UNMEASURED, EINVAL,
			"a JSON value for the control channel cannot be written");
	*text = s;
	*len = (uint32_t)strlen(s);
	return 0;
}

static json_t *parse(struct call *c, int src, const void *text, uint32_t len)
{
	char who[128];
	json_error_t je;
	json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
	if (!j)
		fb_fail(&c->err, FB_EXIT_UNMEASURED, EPROTO, "%s sent no valid JSON: %s",
			fb_oob_peer(c->o, src, who, sizeof(who)), je.text);
	return j;
}

int fb_oob_bcast_json(struct fb_oob *o, json_t **j, uint64_t deadline, struct fb_err *e)
{
	struct call c;
	unsigned char *buf = NULL;
	uint32_t len = 0;
	int rc = call_begin(&c, o, deadline);
	if (o->rank != 0)
		*j = NULL;
	else if (rc == 0)
		rc = dump(&c, *j, (char **)&buf, &len);
	if (rc == 0)
		rc = spread(&c, &buf, &len);
	if (rc == 0 && o->rank != 0) {
		*j = parse(&c, 0, buf, len);
		if (!*j)
			rc = -EPROTO;
	}
	free(buf);
	return call_end(&c, rc, e);
}

int fb_oob_gather_json(
	struct fb_oob *o, const json_t *mine, json_t **all, uint64_t deadline, struct fb_err *e)
{
	struct call c;
	char *text = NULL;
	uint32_t len = 0;
	struct fb_oob_part *parts = NULL;
	*all = NULL;
	int rc = call_begin(&c, o, deadline);
	if (rc == 0)
		rc = dump(&c, mine, &text, &len);
	if (rc == 0)
		rc = collect(&c, text, len, &parts);
	free(text);
	if (!parts)
		return call_end(&c, rc, e);
	json_t *array = json_array();
	for (int i = 0; i < o->size && rc == 0; i++) {
		json_t *j = parse(&c, i, parts[i].data, parts[i].len);
		if (!j || json_array_append_new(array, j) != 0)
			rc = -EPROTO;
	}
	fb_oob_parts_free(o, parts);
	if (rc == 0)
		*all = array;
	else
		json_decref(array);
	return call_end(&c, rc, e);
}

/* ---- one rank at a time ---------------------------------------------------------------------- */

int fb_oob_tell(struct fb_oob *o, int rank, const json_t *j, uint64_t deadline, struct fb_err *e)
{
	struct call c = {.f = front_of(o), .o = o};
	char *text = NULL;
	uint32_t len = 0;
	int rc = dump(&c, j, &text, &len);
	if (rc == 0)
		rc = o->ops->send(o, rank, text, len, deadline, &c.err);
	free(text);
	return rc == 0 ? 0 : pass_on(e, &c.err);
}

int fb_oob_hear(struct fb_oob *o, int rank, json_t **j, uint64_t deadline, struct fb_err *e)
{
	struct call c = {.f = front_of(o), .o = o};
	void *text = NULL;
	uint32_t len = 0;
	*j = NULL;
	int rc = o->ops->recv(o, rank, &text, &len, deadline, &c.err);
	if (rc == 0) {
		*j = parse(&c, rank, text, len);
		free(text);
		rc = *j ? 0 : -EPROTO;
	}
	return rc == 0 ? 0 : pass_on(e, &c.err);
}

void fb_oob_limit(struct fb_oob *o, uint64_t deadline)
{
	front_of(o)->limit = deadline;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

static int outcome_of(struct call *c, int src, const void *m, uint32_t len, struct fb_err *its)
{
	char version[OOB_VERSION];
	if (oob_err_get(m, len, version, its) == 0)
		return 0;
	return fb_fail(
		&c->err, FB_EXIT_UNMEASURED, EPROTO, "rank %d sent no readable outcome", src);
}

int fb_oob_agree(struct fb_oob *o, struct fb_err *e, uint64_t deadline)
{
	struct call c;
	struct fb_err first = {0};
	struct fb_oob_part *parts = NULL;
	if (o->size == 1)
		return e ? e->code : 0;
	int rc = call_begin(&c, o, deadline);
	if (e && e->code != 0)
		prefixed(o, e, &first);
	struct fb_strbuf b = {0};
	oob_err_put(&b, &first);
	if (rc == 0)
		rc = b.failed ? fb_fail(&c.err, FB_EXIT_UNMEASURED, ENOMEM, "no memory to agree")
			      : collect(&c, b.s, (uint32_t)b.len, &parts);
	unsigned char *verdict =
		(unsigned char *)b.s; /* rank 0's own, unless another failed first */
	uint32_t len = (uint32_t)b.len;
	for (int i = 1; parts && rc == 0 && i < o->size && first.code == 0; i++) {
		rc = outcome_of(&c, i, parts[i].data, parts[i].len, &first);
		if (first.code != 0) {
			verdict = parts[i].data;
			len = parts[i].len;
		}
	}
	if (rc == 0)
		rc = spread(&c, &verdict, &len);
	if (rc == 0 && o->rank != 0) {
		fb_err_clear(&first);
		rc = outcome_of(&c, 0, verdict, len, &first);
		free(verdict);
	}
	fb_oob_parts_free(o, parts);
	fb_strbuf_free(&b);
	if (e)
		fb_err_clear(e);
	if (rc != 0)
		return call_end(&c, rc, e);
	return first.code != 0 ? pass_on(e, &first) : 0;
}

int fb_oob_lost(struct fb_oob *o, struct fb_err *e)
{
	struct call c = {.f = front_of(o), .o = o};
	if (c.f->broken.code != 0)
		return pass_on(e, &c.f->broken);
	return call_end(&c, o->ops->lost(o, &c.err), e);
}

void fb_oob_abort(struct fb_oob *o, const struct fb_err *why)
{
	struct oob_front *f = front_of(o);
	if (f->broken.code != 0 || why->code == 0)
		return; /* the others know a cause already */
	struct fb_err told = *why;
	if (o->size > 1)
		prefixed(o, why, &told);
	f->broken = *why;
	o->ops->abort(o, &told);
}

const char *fb_oob_peer(struct fb_oob *o, int rank, char *buf, size_t len)
{
	const char *host = o->ops->host(o, rank);
	if (host && host[0] != '\0')
		snprintf(buf, len, "rank %d on %s", rank, host);
	else
		snprintf(buf, len, "rank %d", rank);
	return buf;
}

int fb_oob_rank(const struct fb_oob *o)
{
	return o->rank;
}

int fb_oob_size(const struct fb_oob *o)
{
	return o->size;
}

void fb_oob_close(struct fb_oob *o)
{
	if (!o)
		return;
	if (o->ops && o->ops->close)
		o->ops->close(o);
	oob_delete(o);
}
