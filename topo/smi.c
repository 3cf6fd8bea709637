// SPDX-License-Identifier: Apache-2.0
/*
 * `nvidia-smi topo -m` and `-mp`, as printed or as pasted: underlined headers, tabs that became
 * blanks or nothing, columns named mlx5_0 (old drivers) or NIC0 with a legend (new ones), SOC for
 * SYS, affinities that a cgroup emptied. The matrix is what the driver said and is kept as such;
 * it tells no PCI addresses, so a GPU's function has none.
 *
 * Words and columns: nvidia-smi's own legend, drivers 352 to 570.
 */
#include "topo/smi_words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"

#define MAX_FILE (16u << 20)
#define MAX_LINE 16384

struct smi_dev {
	char name[TOPO_NAME];
	bool gpu, seen;
	int numa;
	char *cpus;
};

struct smi {
	const char *what;
	struct fb_err *e;
	struct smi_dev *devs;
	size_t n;
	enum topo_path *paths; /* n x n, in the columns' order */
	unsigned *links;       /* of NV */
	enum smi_column columns[SMI_COLUMNS];
	size_t n_columns;
	bool header_tabs, more_titles; /* titles that are not known, behind those that are */
	int line;
	bool in_legend;
	/* What stands before the header, and then before every line: "> ", "node17: ". */
	char prefix[TOPO_NAME];
	/* The header, and the row that is being read: lines may be wrapped. */
	char header[MAX_LINE], row[MAX_LINE];
	int row_line; /* 0: none */
	bool rows;    /* any yet */
};

static int FB_PRINTF(3, 4) refuse(struct smi *s, int code, const char *fmt, ...)
{
	char why[384];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	for (char *c = why; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return fb_fail(s->e, FB_EXIT_USAGE, code, "%s:%d: %s", s->what, s->line, why);
}

/* ---- the header ------------------------------------------------------------------------------ */

/** A header begins with a device and has no path word behind it. */
static bool is_header(const char *line)
{
	const char *s = smi_blanks(line);
	size_t n = smi_name_len(s);
	enum topo_path path;
	unsigned links;

	if (!smi_digits_after(s, "GPU") || s[n] == ':')
		return false;
	s = smi_blanks(s + n);
	return !smi_path_word(s, &path, &links);
}

/** The header's names behind what a quote or a log puts before every line; NULL: no header. */
static const char *behind_prefix(struct smi *s, const char *line)
{
	if (is_header(line))
		return line;
	for (const char *p = strstr(line, "GPU"); p; p = strstr(p + 1, "GPU")) {
		size_t n = (size_t)(p - line);

		if (!smi_digits_after(p, "GPU"))
			continue;
		while (n && isspace((unsigned char)line[n - 1]))
			n--;
		if (n >= sizeof(s->prefix) || !smi_are_names(p))
			return NULL;
		memcpy(s->prefix, line, n);
		s->prefix[n] = '\0';
		return line + n;
	}
	return NULL;
}

static int read_header(struct smi *s, const char *line)
{
	s->header_tabs = strchr(line, '\t') != NULL;
	s->n = s->n_columns = 0;
	s->more_titles = false;
	for (const char *p = smi_blanks(line); *p; p = smi_blanks(p)) {
		enum smi_column column = SMI_COLUMNS;
		size_t n = smi_title_len(p, &column);

		if (n) {
			if (s->n_columns < SMI_COLUMNS)
				s->columns[s->n_columns++] = column;
			p += n;
			continue;
		}
		/* Unknown titles stand behind the known ones. */
		s->more_titles = s->n_columns > 0;
		if (s->more_titles)
			break;
		n = smi_name_len(p);
		if (s->n >= TOPO_MAX_MATRIX)
			return refuse(s, EFBIG, "more than %d devices: no machine has that many",
				TOPO_MAX_MATRIX);
		struct smi_dev *d = topo_grow((void **)&s->devs, &s->n, sizeof(*d));

		if (!d)
			return -ENOMEM;
		if (n >= sizeof(d->name))
			return refuse(s, EINVAL, "\"%.20s...\" is no device's name", p);
		char name[TOPO_NAME];

		memcpy(name, p, n);
		name[n] = '\0';
		topo_copy(d->name, sizeof(d->name), name);
		d->gpu = smi_digits_after(p, "GPU") == n;
		d->numa = TOPO_UNKNOWN;
		for (size_t i = 0; i + 1 < s->n; i++)
			if (strcmp(s->devs[i].name, d->name) == 0)
				return refuse(s, EINVAL, "two columns are named %s", d->name);
		p += n;
	}
	free(s->paths);
	free(s->links);
	s->paths = calloc(s->n * s->n + 1, sizeof(*s->paths));
	s->links = calloc(s->n * s->n + 1, sizeof(*s->links));
	return s->paths && s->links ? 0 : -ENOMEM;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/** The device whose name a row begins with; the longest such name. */
static struct smi_dev *row_of(struct smi *s, const char *line, size_t *len)
{
	struct smi_dev *best = NULL;

	*len = 0;
	for (size_t i = 0; i < s->n; i++) {
		size_t n = strlen(s->devs[i].name);

		if (n > *len && strncmp(line, s->devs[i].name, n) == 0 &&
			!isdigit((unsigned char)line[n]) && line[n] != ':') {
			best = &s->devs[i];
			*len = n;
		}
	}
	return best;
}

static int set_affinity(struct smi_dev *d, enum smi_column column, const char *text, size_t n)
{
	char buf[MAX_LINE];
	const char *end;

	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	if (!n || n >= sizeof(buf))
		return 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (!isspace((unsigned char)text[i]))
			buf[k++] = text[i];
	buf[k] = '\0';
	if (column == SMI_CPUS && topo_cpulist_sane(buf) && !d->cpus) {
		d->cpus = strdup(buf);
		return d->cpus ? 0 : -ENOMEM;
	}
	if (column == SMI_NUMA) {
		unsigned long v = strtoul(buf, (char **)&end, 10);

		/* "0-1" is several nodes: no node. */
		if (isdigit((unsigned char)buf[0]) && !*end && v <= TOPO_MAX_CPU)
			d->numa = (int)v;
	}
	return 0;
}

/** A list goes on behind blanks when it ends with '-' or ',': a terminal's edge put them there. */
static size_t affinity_len(const char *s)
{
	size_t n = strcspn(s, " \t");

	while (n && (s[n - 1] == '-' || s[n - 1] == ',')) {
		size_t gap = strspn(s + n, " \t");

		if (!isdigit((unsigned char)s[n + gap]))
			break;
		n += gap + strcspn(s + n + gap, " \t");
	}
	return n;
}

/**
 * The affinities behind the paths. With tabs an empty one keeps its place; without them as many
 * words as columns tell each other apart, fewer do not.
 */
static int read_affinities(struct smi *s, struct smi_dev *d, const char *rest)
{
	bool tabs = s->header_tabs && *rest == '\t';
	int rc = 0;

	if (!tabs) {
		size_t words = 0;

		for (const char *p = smi_blanks(rest); *p; words++)
			p = smi_blanks(p + affinity_len(p));
		if (words < s->n_columns || (words > s->n_columns && !s->more_titles))
			return 0;
	}
	const char *p = tabs ? rest + 1 : smi_blanks(rest);

	for (size_t i = 0; i < s->n_columns && !rc; i++) {
		size_t n = tabs ? strcspn(p, "\t") : affinity_len(p);
		const char *word = p + strspn(p, " ");

		if (word < p + n)
			rc = set_affinity(d, s->columns[i], word, (size_t)(p + n - word));
		/* Long titles take two tab stops, their values one or two. */
		p += n;
		p = tabs ? p + strspn(p, "\t") : smi_blanks(p);
	}
	return rc;
}

static int read_row(struct smi *s, const char *line)
{
	size_t len;
	struct smi_dev *d = row_of(s, line, &len);
	size_t self = (size_t)(d - s->devs);

	if (d->seen)
		return refuse(s, EINVAL, "two rows are named %s", d->name);
	d->seen = true;
	const char *p = smi_blanks(line + len);

	for (size_t i = 0; i < s->n; i++) {
		size_t at = self * s->n + i;
		size_t n = smi_path_word(p, &s->paths[at], &s->links[at]);

		if (!n && (strncmp(p, "OK", 2) == 0 || strncmp(p, "CNS", 3) == 0 ||
				  strncmp(p, "GNS", 3) == 0 || strncmp(p, "NS", 2) == 0))
			return refuse(s, ENOTSUP,
				"this is nvidia-smi topo -p2p; give what -m or -mp prints");
		if (!n && !*p)
			return refuse(s, EINVAL,
				"the row of %s has %zu of %zu paths: the text is cut", d->name, i,
				s->n);
		if (!n)
			return refuse(s, EINVAL,
				"\"%.20s\" is no path between devices (PIX, PXB, PHB, NODE, SYS, "
				"SOC, NV1, X)",
				p);
		if ((s->paths[at] == TOPO_PATH_SELF) != (i == self))
			return refuse(
				s, EINVAL, "the row of %s has its X in another column", d->name);
		p += n;
		if (i + 1 < s->n)
			p = smi_blanks(p);
	}
	/* From the tab behind the last path on: " X \t0-15". */
	return read_affinities(s, d, p + strspn(p, " "));
}

/** The row that was begun is whole. */
static int end_row(struct smi *s)
{
	int line = s->line, rc = 0;

	if (!s->row_line)
		return 0;
	s->line = s->row_line;
	s->row_line = 0;
	rc = read_row(s, s->row);
	s->line = line;
	return rc;
}

/** Does a line go on with a row: more paths, or affinities that the row lacks? */
static bool goes_on(const struct smi *s, const char *line)
{
	enum topo_path path;
	unsigned links;
	size_t words = 0;

	if (!s->row_line)
		return false;
	if (smi_path_word(line, &path, &links) && strncmp(line, "N/A", 3) != 0)
		return true;
	for (const char *p = smi_blanks(s->row); *p; words++)
		p = smi_blanks(p + strcspn(p, " \t"));
	return !s->header_tabs && strncmp(s->row, "GPU", 3) == 0 && words > s->n &&
	       words <= s->n + s->n_columns &&
	       (isdigit((unsigned char)*line) || strncmp(line, "N/A", 3) == 0);
}

static int append(struct smi *s, char to[MAX_LINE], const char *line)
{
	size_t n = strlen(to), more = strlen(line);

	if (n + more + 2 > MAX_LINE)
		return refuse(s, EFBIG, "a wrapped line of more than %d bytes", MAX_LINE);
	if (n)
		to[n++] = ' ';
	memcpy(to + n, line, more + 1);
	return 0;
}

/** A line below the header: a row's begin, more of it, or none of the matrix. */
static int matrix_line(struct smi *s, const char *line)
{
	enum topo_path path;
	unsigned links;
	size_t len;

	if (goes_on(s, line))
		return append(s, s->row, line);
	int rc = end_row(s);

	if (rc)
		return rc;
	if (row_of(s, line, &len)) {
		s->rows = true;
		s->row_line = s->line;
		s->row[0] = '\0';
		return append(s, s->row, line);
	}
	/* Prompts and other lines may stand between; a row of the matrix may not. */
	len = smi_digits_after(line, "GPU");
	if (len && smi_path_word(smi_blanks(line + len), &path, &links))
		return refuse(
			s, EINVAL, "the row of %.*s has no column of its own", (int)len, line);
	return 0;
}

/** "  NIC0: mlx5_0" */
static int read_legend(struct smi *s, const char *line)
{
	const char *p = smi_blanks(line);
	size_t n = smi_digits_after(p, "NIC");

	if (!n || p[n] != ':')
		return 0;
	const char *name = smi_blanks(p + n + 1);
	/* Letters of a device's name: a paste may have more behind it ("mlx5_0<br>"). */
	size_t len =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:");

	for (size_t i = 0; i < s->n; i++) {
		struct smi_dev *d = &s->devs[i];

		if (strlen(d->name) != n || strncmp(d->name, p, n) != 0)
			continue;
		if (!len || len >= sizeof(d->name))
			return refuse(s, EINVAL, "the legend's name of %s is none", d->name);
		char text[TOPO_NAME];

		memcpy(text, name, len);
		text[len] = '\0';
		topo_copy(d->name, sizeof(d->name), text);
		return 0;
	}
	return 0;
}

/* ---- the text -------------------------------------------------------------------------------- */

static int refuse_others(struct smi *s, const char *text)
{
	const char *first = text + strspn(text, " \t\r\n");

	s->line = 1;
	if (*first == '<')
		return refuse(s, EINVAL,
			"this is XML: give it by --hwloc-xml, or an NCCL topology by --nccl-xml");
	if (strstr(text, "ROCm System Management Interface") || strstr(text, "between two GPUs") ||
		strstr(text, "LINK TYPE TABLE") || strstr(text, "ACCESS TABLE")) {
		int rc = refuse(s, ENOTSUP,
			"this is the topology text of rocm-smi or amd-smi, which tells no NICs and "
			"is not read");

		fb_hint(s->e,
			"record the node (scripts/record) and give it by --sysroot, or export "
			"hwloc's XML there (lstopo --of xml) and give it by --hwloc-xml");
		return rc;
	}
	return 0;
}

/** A line without what terminals and pastes put into it. */
static int read_line(struct smi *s, const char *line)
{
	size_t n = strlen(s->prefix);
	int rc = 0;

	if (!s->n) {
		line = behind_prefix(s, line);
		return !line ? 0 : append(s, s->header, line) ? -EFBIG : read_header(s, s->header);
	}
	if (strncmp(line, s->prefix, n) == 0)
		line += n;
	/* Below "Legend:" the words stand again, and NICs have their names. */
	s->in_legend = s->in_legend || strstr(line, "Legend:");
	if (s->in_legend) {
		rc = end_row(s);
		return rc ? rc : read_legend(s, line);
	}
	/* Between the header and its first row: the rest of a wrapped header. */
	if (!s->rows && *smi_blanks(line)) {
		bool whole = smi_are_names(s->header), names = smi_are_names(line);
		size_t end = strlen(s->header);

		rc = append(s, s->header, line);
		if (rc || names || (!whole && smi_are_names(s->header)))
			return rc ? rc : read_header(s, s->header);
		s->header[end] = '\0';
	}
	return matrix_line(s, smi_blanks(line));
}

static int read_lines(struct smi *s, const char *text, size_t len)
{
	char line[MAX_LINE];
	int rc = 0;

	s->line = 0;
	for (const char *p = text, *end = text + len; p < end && !rc;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);

		s->line++;
		if (n >= sizeof(line))
			return refuse(s, EFBIG, "a line of %zu bytes", n);
		memcpy(line, p, n);
		line[n] = '\0';
		p += n + 1;
		if (strlen(line) != n)
			return refuse(s, EINVAL, "the line holds a NUL: this is no text");
		smi_plain(line);
		rc = read_line(s, line);
	}
	return rc ? rc : end_row(s);
}

static int check_whole(struct smi *s)
{
	size_t rows = 0;
	const char *missing = NULL;

	for (size_t i = 0; i < s->n; i++) {
		rows += s->devs[i].seen;
		if (!s->devs[i].seen && !missing)
			missing = s->devs[i].name;
	}
	if (s->n == 0) {
		int rc = refuse(s, EINVAL,
			"no matrix of nvidia-smi topo in it: no line that begins with GPU0");

		fb_hint(s->e, "nvidia-smi topo -m > FILE");
		return rc;
	}
	if (!missing)
		return 0;
	int rc = refuse(s, EINVAL,
		"the matrix has %zu columns and %zu rows, none for %s: the text is cut", s->n, rows,
		missing);

	fb_hint(s->e, "nvidia-smi topo -m > FILE");
	return rc;
}

/* ---- the model ------------------------------------------------------------------------------- */

static int add_device(struct topo *t, struct smi_dev *d)
{
	if (!d->gpu) {
		struct topo_rdma *r = topo_grow((void **)&t->rdma, &t->n_rdma, sizeof(*r));

		if (!r)
			return -ENOMEM;
		topo_copy(r->name, sizeof(r->name), d->name);
		r->nic = r->pci = TOPO_UNKNOWN;
		r->numa = d->numa;
		r->cpus = d->cpus;
		d->cpus = NULL;
		return 0;
	}
	struct topo_pci *p = topo_grow((void **)&t->pci, &t->n_pci, sizeof(*p));
	struct topo_gpu *g = p ? topo_grow((void **)&t->gpus, &t->n_gpus, sizeof(*g)) : NULL;

	if (!g)
		return -ENOMEM;
	p->vendor = 0x10de;
	p->parent = p->physfn = TOPO_UNKNOWN;
	p->numa = d->numa;
	p->cpus = d->cpus;
	d->cpus = NULL;
	topo_copy(g->name, sizeof(g->name), d->name);
	g->pci = (int)(t->n_pci - 1);
	return 0;
}

/** Columns in the order of topo_devices(): GPUs, then the rest. */
static size_t *order(const struct smi *s)
{
	size_t *at = calloc(s->n + 1, sizeof(*at)), k = 0;

	for (int gpus = 1; gpus >= 0 && at; gpus--)
		for (size_t i = 0; i < s->n; i++)
			if (s->devs[i].gpu == (gpus == 1))
				at[k++] = i;
	return at;
}

static int add_paths(struct topo *t, const struct smi *s, const size_t *at)
{
	t->given = calloc(s->n * s->n + 1, sizeof(*t->given));
	if (!t->given)
		return -ENOMEM;
	t->n_given = s->n;
	for (size_t a = 0; a < s->n; a++)
		for (size_t b = 0; b < s->n; b++) {
			size_t from = at[a] * s->n + at[b], back = at[b] * s->n + at[a];

			t->given[a * s->n + b] = s->paths[from];
			if (a < b && s->paths[from] != s->paths[back])
				topo_warn(t, "%s to %s and back are not the same path in this text",
					s->devs[at[a]].name, s->devs[at[b]].name);
			if (s->paths[from] != TOPO_PATH_NV || a >= t->n_gpus || b >= t->n_gpus)
				continue;
			struct topo_fast *f = topo_grow((void **)&t->fast, &t->n_fast, sizeof(*f));

			if (!f)
				return -ENOMEM;
			f->kind = TOPO_FAST_NVLINK;
			f->gpu = (int)a;
			f->peer = (int)b;
			f->count = s->links[from];
		}
	return 0;
}

/** What the text alone cannot decide. */
static void add_warnings(struct topo *t)
{
	bool far = true;

	if (t->n_gpus > 1 && !t->n_fast)
		topo_warn(t,
			"no NVLink in this text: these GPUs have none, or it was made by topo -mp, "
			"which leaves it out");
	for (size_t a = 0; a < t->n_given; a++)
		for (size_t b = 0; b < t->n_given; b++)
			far = far && (a == b || t->given[a * t->n_given + b] == TOPO_PATH_SYS ||
					     t->given[a * t->n_given + b] == TOPO_PATH_NV);
	if (t->n_gpus && t->n_rdma && t->n_given > 2 && far)
		topo_warn(t, "SYS between all devices: in a virtual machine that means that the "
			     "switches are hidden, not that the devices are far");
}

static int build(struct smi *s, struct topo **out)
{
	struct topo *t = calloc(1, sizeof(*t));
	size_t *at = order(s);
	int rc = t && at ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->n && !rc; i++)
		rc = add_device(t, &s->devs[at[i]]);
	if (!rc)
		rc = add_paths(t, s, at);
	free(at);
	if (rc) {
		topo_free(t);
		return rc;
	}
	t->source = TOPO_FROM_SMI;
	add_warnings(t);
	*out = t;
	return 0;
}

int topo_parse_smi(
	const char *text, size_t len, const char *what, struct topo **out, struct fb_err *e)
{
	struct smi s = {.what = what, .e = e};

	*out = NULL;
	int rc = refuse_others(&s, text);

	if (!rc)
		rc = read_lines(&s, text, len);
	if (!rc)
		rc = check_whole(&s);
	if (!rc)
		rc = build(&s, out);
	for (size_t i = 0; i < s.n; i++)
		free(s.devs[i].cpus);
	free(s.devs);
	free(s.paths);
	free(s.links);
	return rc ? fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory to read %s", what) : 0;
}

int topo_load_smi(const char *path, struct topo **out, struct fb_err *e)
{
	char *text;
	size_t len;

	*out = NULL;
	int rc = fb_read_file(path, MAX_FILE, &text, &len, e);

	if (rc < 0)
		return rc;
	rc = topo_parse_smi(text, len, path, out, e);
	free(text);
	return rc;
}
