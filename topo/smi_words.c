// SPDX-License-Identifier: Apache-2.0
/*
 * The words of nvidia-smi's matrix: names, paths and titles, where blanks may be lost, and what
 * terminals and pastes put between them.
 */
#include "topo/smi_words.h"

#include <ctype.h>
#include <string.h>

const char *smi_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/** Length of a terminal's command at `s`: "\x1b[4m", "^[[4m" as cat -v shows it, "[4m" where a
 * paste lost the escape; "\x1b(B". 0: none. */
static size_t escape_len(const char *s)
{
	const char *p = *s == '\x1b' ? s + 1 : s[0] == '^' && s[1] == '[' ? s + 2 : s;

	if (p > s && *p == '(' && p[1])
		return (size_t)(p - s) + 2;
	if (*p != '[')
		return *s == '\x1b';
	size_t n = strspn(p + 1, "0123456789;?");
	char end = p[1 + n];

	/* Without its escape a command is one only with a number and an 'm'. */
	if (p > s ? isalpha((unsigned char)end) != 0 : n && end == 'm')
		return (size_t)(p - s) + n + 2;
	return *s == '\x1b';
}

/** What else a paste makes of blanks, in UTF-8. @return bytes, 0: none; *blank: it has a width */
static size_t odd_blank(const char *s, bool *blank)
{
	static const struct {
		const char *bytes;
		bool blank;
	} odd[] = {
		{"\xc2\xa0", true},      /* not to be broken */
		{"\xe2\x80\x8b", false}, /* of no width */
		{"\xef\xbb\xbf", false}, /* the mark at a file's start */
		{"|", true},             /* a table's rule */
		{"\r", false},
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		size_t n = strlen(odd[i].bytes);

		*blank = odd[i].blank;
		if (strncmp(s, odd[i].bytes, n) == 0)
			return n;
	}
	return 0;
}

void smi_plain(char *line)
{
	char *to = line;

	for (const char *s = line; *s;) {
		bool blank = false;
		size_t n = escape_len(s);

		if (!n)
			n = odd_blank(s, &blank);
		if (blank)
			*to++ = ' ';
		if (!n)
			*to++ = *s++;
		s += n;
	}
	*to = '\0';
}

size_t smi_digits_after(const char *s, const char *stem)
{
	size_t n = strlen(stem), d;

	if (strncmp(s, stem, n) != 0)
		return 0;
	d = strspn(s + n, "0123456789");
	return d ? n + d : 0;
}

size_t smi_name_len(const char *s)
{
	static const char *const stems[] = {"GPU", "NIC", "mlx5_bond_", "mlx5_", "mlx4_"};

	for (size_t i = 0; i < sizeof(stems) / sizeof(*stems); i++) {
		size_t n = smi_digits_after(s, stems[i]);

		if (n && (!s[n] || isspace((unsigned char)s[n]) || isalpha((unsigned char)s[n])))
			return n;
	}
	return strcspn(s, " \t");
}

size_t smi_path_word(const char *s, enum topo_path *path, unsigned *links)
{
	static const struct {
		const char *word;
		enum topo_path path;
	} words[] = {
		{"PIX", TOPO_PATH_PIX},
		{"PXB", TOPO_PATH_PXB},
		{"PHB", TOPO_PATH_PHB},
		{"NODE", TOPO_PATH_NODE},
		{"SYS", TOPO_PATH_SYS},
		{"SOC", TOPO_PATH_SYS},
		{"N/A", TOPO_PATH_UNKNOWN},
		{"X", TOPO_PATH_SELF},
		{"?", TOPO_PATH_UNKNOWN},
	};

	*links = 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i].word);

		if (strncmp(s, words[i].word, n) == 0) {
			*path = words[i].path;
			return n;
		}
	}
	/* At most two digits: an affinity may be stuck to it. */
	if (s[0] != 'N' || s[1] != 'V' || !isdigit((unsigned char)s[2]))
		return 0;
	*path = TOPO_PATH_NV;
	*links = (unsigned)(s[2] - '0');
	/* "NV40-15" is NV4 and the CPUs 0-15. */
	if (!isdigit((unsigned char)s[3]) || s[4] == '-')
		return 3;
	*links = *links * 10 + (unsigned)(s[3] - '0');
	return 4;
}

size_t smi_title_len(const char *s, enum smi_column *column)
{
	static const struct {
		const char *title; /* without its blanks */
		enum smi_column column;
	} titles[] = {
		{"CPUAffinity", SMI_CPUS},
		{"NUMAAffinity", SMI_NUMA},
		{"GPUNUMAID", SMI_GPU_NUMA},
	};

	for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++) {
		const char *at = s, *t = titles[i].title;

		/* A terminal's edge may have put blanks into a word. */
		while (*t && (*at == *t || (at > s && (*at == ' ' || *at == '\t'))))
			if (*at++ == *t)
				t++;
		if (!*t) {
			*column = titles[i].column;
			return (size_t)(at - s);
		}
	}
	return 0;
}

/** Does a device's name, as drivers give it, stand at `s`? All have a number. */
static bool is_name(const char *s, size_t n)
{
	bool digit = false;

	for (size_t i = 0; i < n; i++) {
		digit = digit || isdigit((unsigned char)s[i]);
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '-')
			return false;
	}
	return digit && isalpha((unsigned char)*s);
}

bool smi_are_names(const char *s)
{
	/* A title that a line's end broke in two. */
	static const char *const halves[] = {"CPU", "NUMA", "GPU", "Affinity", "ID"};
	enum smi_column column;
	enum topo_path path;
	unsigned links;
	bool known = false;

	for (s = smi_blanks(s); *s; s = smi_blanks(s)) {
		size_t n = smi_title_len(s, &column), half = strcspn(s, " \t");

		for (size_t i = 0; !n && i < sizeof(halves) / sizeof(*halves); i++)
			if (strlen(halves[i]) == half && strncmp(s, halves[i], half) == 0)
				n = half;
		known = known || n || smi_digits_after(s, "GPU") || smi_digits_after(s, "NIC");
		if (!n && !smi_path_word(s, &path, &links) && is_name(s, smi_name_len(s)))
			n = smi_name_len(s);
		if (!n)
			return false;
		s += n;
	}
	return known;
}
