// SPDX-License-Identifier: Apache-2.0
/*
 * Pause, statistics and speed of an interface by SIOCETHTOOL, or from recorded text as the ethtool
 * program prints it. Live answers are first written in that same text, so that both ways are read
 * by one reader.
 */
#include "verbs/lossless/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/strbuf.h"

#define TEXT_MAX   (4u << 20)
#define CANNOT_GET "Cannot get settings: "
#define STATS_MAX  16384 /* of one interface */

/* ---- asking ---------------------------------------------------------------------------------- */

static int call(int fd, const char *ifname, void *data)
{
	struct ifreq ifr = {0};
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	ifr.ifr_data = data;
	return ioctl(fd, SIOCETHTOOL, &ifr) == 0 ? 0 : -errno;
}

static int ask_pause(int fd, const char *ifname, struct fb_strbuf *b)
{
	struct ethtool_pauseparam p = {.cmd = ETHTOOL_GPAUSEPARAM};
	int rc = call(fd, ifname, &p);
	if (rc == 0)
		fb_strbuf_printf(b,
			"Pause parameters for %s:\nAutonegotiate:\t%s\nRX:\t\t%s\nTX:\t\t%s\n",
			ifname, p.autoneg ? "on" : "off", p.rx_pause ? "on" : "off",
			p.tx_pause ? "on" : "off");
	return rc;
}

/* The modes of 10 Gb/s and more, by bit of the kernel's masks (include/uapi/linux/ethtool.h, enum
 * ethtool_link_mode_bit_indices; those from 93 on are newer than some headers). */
static const struct {
	uint8_t bit;
	const char *name;
} modes[] = {{12, "10000baseT/Full"}, {18, "10000baseKX4/Full"}, {19, "10000baseKR/Full"},
	{20, "10000baseR_FEC"}, {21, "20000baseMLD2/Full"}, {22, "20000baseKR2/Full"},
	{23, "40000baseKR4/Full"}, {24, "40000baseCR4/Full"}, {25, "40000baseSR4/Full"},
	{26, "40000baseLR4/Full"}, {27, "56000baseKR4/Full"}, {28, "56000baseCR4/Full"},
	{29, "56000baseSR4/Full"}, {30, "56000baseLR4/Full"}, {31, "25000baseCR/Full"},
	{32, "25000baseKR/Full"}, {33, "25000baseSR/Full"}, {34, "50000baseCR2/Full"},
	{35, "50000baseKR2/Full"}, {36, "100000baseKR4/Full"}, {37, "100000baseSR4/Full"},
	{38, "100000baseCR4/Full"}, {39, "100000baseLR4_ER4/Full"}, {40, "50000baseSR2/Full"},
	{42, "10000baseCR/Full"}, {43, "10000baseSR/Full"}, {44, "10000baseLR/Full"},
	{45, "10000baseLRM/Full"}, {46, "10000baseER/Full"}, {52, "50000baseKR/Full"},
	{53, "50000baseSR/Full"}, {54, "50000baseCR/Full"}, {55, "50000baseLR_ER_FR/Full"},
	{56, "50000baseDR/Full"}, {57, "100000baseKR2/Full"}, {58, "100000baseSR2/Full"},
	{59, "100000baseCR2/Full"}, {60, "100000baseLR2_ER2_FR2/Full"}, {61, "100000baseDR2/Full"},
	{62, "200000baseKR4/Full"}, {63, "200000baseSR4/Full"}, {64, "200000baseLR4_ER4_FR4/Full"},
	{65, "200000baseDR4/Full"}, {66, "200000baseCR4/Full"}, {69, "400000baseKR8/Full"},
	{70, "400000baseSR8/Full"}, {71, "400000baseLR8_ER8_FR8/Full"}, {72, "400000baseDR8/Full"},
	{73, "400000baseCR8/Full"}, {75, "100000baseKR/Full"}, {76, "100000baseSR/Full"},
	{77, "100000baseLR_ER_FR/Full"}, {78, "100000baseCR/Full"}, {79, "100000baseDR/Full"},
	{80, "200000baseKR2/Full"}, {81, "200000baseSR2/Full"}, {82, "200000baseLR2_ER2_FR2/Full"},
	{83, "200000baseDR2/Full"}, {84, "200000baseCR2/Full"}, {85, "400000baseKR4/Full"},
	{86, "400000baseSR4/Full"}, {87, "400000baseLR4_ER4_FR4/Full"}, {88, "400000baseDR4/Full"},
	{89, "400000baseCR4/Full"}, {93, "800000baseCR8/Full"}, {94, "800000baseKR8/Full"},
	{95, "800000baseDR8/Full"}, {96, "800000baseDR8_2/Full"}, {97, "800000baseSR8/Full"},
	{98, "800000baseVR8/Full"}};

static void add_modes(const struct ethtool_link_settings *s, struct fb_strbuf *b)
{
	const uint32_t *supported = (const void *)(s + 1);
	int words = (int)s->link_mode_masks_nwords; /* not negative in an answer */
	const char *before = "\tSupported link modes:   ";
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (modes[i].bit / 32 >= words ||
			!(supported[modes[i].bit / 32] >> modes[i].bit % 32 & 1))
			continue;
		fb_strbuf_printf(b, "%s%s\n", before, modes[i].name);
		before = "\t                        ";
	}
}

static int ask_link(int fd, const char *ifname, struct fb_strbuf *b)
{
	/* three masks of at most 127 words follow the structure */
	_Alignas(8) char raw[sizeof(struct ethtool_link_settings) + 3 * 127 * sizeof(uint32_t)] = {
		0};
	struct ethtool_link_settings *s = (void *)raw;
	s->cmd = ETHTOOL_GLINKSETTINGS;
	int rc = call(fd, ifname, raw);
	if (rc == 0 && s->link_mode_masks_nwords < 0) {
		/* The kernel first says how many words its masks have. */
		s->link_mode_masks_nwords = (int8_t)-s->link_mode_masks_nwords;
		s->cmd = ETHTOOL_GLINKSETTINGS;
		rc = call(fd, ifname, raw);
	}
	if (rc != 0)
		return rc;
	fb_strbuf_printf(b, "Settings for %s:\n", ifname);
	add_modes(s, b);
	if (s->speed == (uint32_t)SPEED_UNKNOWN)
		fb_strbuf_add(b, "\tSpeed: Unknown!\n");
	else
		fb_strbuf_printf(b, "\tSpeed: %uMb/s\n", s->speed);
	fb_strbuf_printf(
		b, "\tAuto-negotiation: %s\n", s->autoneg == AUTONEG_ENABLE ? "on" : "off");
	return 0;
}

static int count_stats(int fd, const char *ifname, uint32_t *n)
{
	_Alignas(8) char raw[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)] = {0};
	struct ethtool_sset_info *info = (void *)raw;
	info->cmd = ETHTOOL_GSSET_INFO;
	info->sset_mask = 1ull << ETH_SS_STATS;
	int rc = call(fd, ifname, raw);
	*n = rc == 0 && info->sset_mask ? info->data[0] : 0;
	if (rc == 0 && *n == 0)
		return -EOPNOTSUPP;
	return rc == 0 && *n > STATS_MAX ? -EOVERFLOW : rc;
}

static int ask_stats(int fd, const char *ifname, struct fb_strbuf *b)
{
	uint32_t n = 0;
	int rc = count_stats(fd, ifname, &n);
	if (rc != 0)
		return rc;
	struct ethtool_gstrings *names = calloc(1, sizeof(*names) + (size_t)n * ETH_GSTRING_LEN);
	struct ethtool_stats *values = calloc(1, sizeof(*values) + (size_t)n * sizeof(uint64_t));
	if (!names || !values) {
		rc = -ENOMEM;
		goto free_both;
	}
	*names = (struct ethtool_gstrings){
		.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = n};
	*values = (struct ethtool_stats){.cmd = ETHTOOL_GSTATS, .n_stats = n};
	rc = call(fd, ifname, names);
	if (rc == 0)
		rc = call(fd, ifname, values);
	if (rc != 0)
		goto free_both;
	fb_strbuf_add(b, "NIC statistics:\n");
	for (uint32_t i = 0; i < n && i < values->n_stats; i++)
		fb_strbuf_printf(b, "     %.*s: %llu\n", ETH_GSTRING_LEN,
			(const char *)names->data + (size_t)i * ETH_GSTRING_LEN,
			(unsigned long long)values->data[i]);
free_both:
	free(names);
	free(values);
	return rc;
}

static int ask(const char *ifname, int (*what)(int fd, const char *ifname, struct fb_strbuf *b),
	char **text)
{
	struct fb_strbuf b = {0};
	*text = NULL;
	if (strlen(ifname) >= IFNAMSIZ)
		return -EINVAL;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int rc = what(fd, ifname, &b);
	close(fd);
	if (rc == 0) {
		*text = fb_strbuf_take(&b);
		rc = *text ? 0 : -ENOMEM;
	}
	fb_strbuf_free(&b);
	return rc;
}

/* What the ethtool program says of a refusal, so that a recording keeps the reason. */
static void refused(int code, char **text)
{
	struct fb_strbuf b = {0};
	if (*text || code == 0)
		return;
	fb_strbuf_printf(&b, "%s%s\n", CANNOT_GET, strerror(-code));
	*text = fb_strbuf_take(&b);
}

int ethtool_text(const char *ifname, char **link, char **pause, char **stats)
{
	int rc = ask(ifname, ask_link, link);
	int rc2 = ask(ifname, ask_pause, pause);
	int rc3 = ask(ifname, ask_stats, stats);
	if (rc == -ENODEV || rc == -EINVAL)
		return rc;
	refused(rc, link);
	refused(rc2, pause);
	refused(rc3, stats);
	return 0;
}

/* ---- reading text ---------------------------------------------------------------------------- */

/* The text after "key:" at the start of a line, white space before it ignored. */
static bool value_of(const char *text, const char *key, char *out, size_t len)
{
	size_t n = strlen(key);
	for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		p += strspn(p, " \t");
		if (strncmp(p, key, n) != 0 || p[n] != ':')
			continue;
		p += n + 1;
		p += strspn(p, " \t");
		size_t k = strcspn(p, "\r\n");
		snprintf(out, len, "%.*s", (int)(k < len ? k : len - 1), p);
		return true;
	}
	return false;
}

static void set_on_off(const char *text, const char *key, struct fact_int *f)
{
	char v[16];
	if (value_of(text, key, v, sizeof(v)) && (strcmp(v, "on") == 0 || strcmp(v, "off") == 0)) {
		f->f.state = FACT_KNOWN;
		f->v = strcmp(v, "on") == 0;
	} else {
		f->f.state = FACT_BROKEN;
		snprintf(f->f.why, sizeof(f->f.why), "no \"%s: on\" or \"off\"", key);
	}
}

static void read_pause(const char *text, struct port_facts *p)
{
	set_on_off(text, "RX", &p->pause_rx);
	set_on_off(text, "TX", &p->pause_tx);
	set_on_off(text, "Autonegotiate", &p->pause_autoneg);
}

/* The fastest of "Supported link modes:", which go on over lines without a colon. */
static void read_modes(const char *text, struct port_facts *p)
{
	static const char key[] = "Supported link modes:";
	struct fact_int *f = &p->max_speed_mbps;
	const char *at = strstr(text, key);
	long long best = 0;
	for (const char *end = NULL; at && at != end;) {
		at += strncmp(at, key, strlen(key)) == 0 ? strlen(key) : 0;
		end = at + strcspn(at, "\n");
		if (memchr(at, ':', (size_t)(end - at)))
			break;
		while (at < end) {
			char *rest;
			at += strspn(at, " \t");
			long long v = strtoll(at, &rest, 10);
			if (rest != at && strncmp(rest, "base", 4) == 0 && v > best)
				best = v;
			at += strcspn(at, " \t\n");
		}
		at = *end ? end + 1 : end;
	}
	f->f.state = best > 0 ? FACT_KNOWN : FACT_ABSENT;
	if (best > 0)
		f->v = best;
	else
		snprintf(f->f.why, sizeof(f->f.why), "the driver names no link modes");
}

static void read_link(const char *text, struct port_facts *p)
{
	char v[32], *end;
	struct fact_int *f = &p->speed_mbps;
	read_modes(text, p);
	if (!value_of(text, "Speed", v, sizeof(v))) {
		f->f.state = FACT_ABSENT;
		snprintf(f->f.why, sizeof(f->f.why), "the driver tells no speed");
		return;
	}
	long long speed = strtoll(v, &end, 10);
	if (end == v || strncmp(end, "Mb/s", 4) != 0 || speed <= 0) {
		f->f.state = FACT_ABSENT;
		snprintf(
			f->f.why, sizeof(f->f.why), "the speed is \"%.24s\": the link is down?", v);
		return;
	}
	f->f.state = FACT_KNOWN;
	f->v = speed;
}

/* "     name: value" a line; a name may hold blanks and brackets, and even colons. */
static void read_stats(const char *text, struct port_facts *p)
{
	json_t *all = json_object();
	for (const char *line = text; line && *line;) {
		const char *end = line + strcspn(line, "\n");
		const char *colon = end;
		while (colon > line && *colon != ':')
			colon--;
		char name[96], *rest;
		const char *first = line + strspn(line, " \t");
		if (colon > first && (size_t)(colon - first) < sizeof(name)) {
			snprintf(name, sizeof(name), "%.*s", (int)(colon - first), first);
			errno = 0;
			unsigned long long v = strtoull(colon + 1, &rest, 10);
			bool number = rest > colon + 1 && rest <= end && errno == 0;
			if (number && v <= INT64_MAX)
				fb_json_set_int(all, name, (int64_t)v);
		}
		line = *end ? end + 1 : NULL;
	}
	if (json_object_size(all) == 0) {
		json_decref(all);
		p->stats_f.state = FACT_ABSENT;
		snprintf(p->stats_f.why, sizeof(p->stats_f.why), "the driver has no statistics");
		return;
	}
	p->stats = all;
	p->stats_f.state = FACT_KNOWN;
}

/* ---- the door -------------------------------------------------------------------------------- */

static void failed(struct fact *f, int code)
{
	f->state = code == EPERM || code == EACCES                          ? FACT_HIDDEN
		   : code == EOPNOTSUPP || code == ENODEV || code == EINVAL ? FACT_ABSENT
									    : FACT_BROKEN;
	snprintf(f->why, sizeof(f->why), "%s",
		code == EOPNOTSUPP ? "the driver does not tell" : strerror(code));
}

static int get(const struct fb_sysroot *r, const char *ifname, const char *recorded,
	int (*what)(int fd, const char *ifname, struct fb_strbuf *b), char **text)
{
	char path[96], real[4096];
	struct fb_err e = {0};
	size_t len;
	if (fb_sysroot_is_live(r))
		return ask(ifname, what, text);
	snprintf(path, sizeof(path), "%s", recorded);
	int rc = fb_sysroot_path(r, path, real, sizeof(real));
	return rc == 0 ? fb_read_file(real, TEXT_MAX, text, &len, &e) : rc;
}

/* The code of a refusal that was recorded; 0: it is none. */
static int recorded_refusal(const char *text)
{
	static const int codes[] = {EPERM, EACCES, EOPNOTSUPP, ENODEV, EINVAL};
	if (strncmp(text, "no stats available", 18) == 0)
		return EOPNOTSUPP;
	if (strncmp(text, "Cannot get ", 11) != 0)
		return 0;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strstr(text, strerror(codes[i])))
			return codes[i];
	return EIO;
}

void ethtool_read(const struct fb_sysroot *r, struct port_facts *p)
{
	struct fact *const pause[] = {&p->pause_rx.f, &p->pause_tx.f, &p->pause_autoneg.f};
	struct fact *const speed[] = {&p->speed_mbps.f, &p->max_speed_mbps.f};
	struct fact *const stats[] = {&p->stats_f};
	const struct {
		const char *call, *recorded;
		int (*what)(int fd, const char *ifname, struct fb_strbuf *b);
		void (*read)(const char *text, struct port_facts *p);
		struct fact *const *f;
		size_t n;
	} doors[] = {{"SIOCETHTOOL GPAUSEPARAM", ETHTOOL_RECORDED_PAUSE, ask_pause, read_pause,
			     pause, 3},
		{"SIOCETHTOOL GLINKSETTINGS", ETHTOOL_RECORDED_LINK, ask_link, read_link, speed, 2},
		{"SIOCETHTOOL GSTATS", ETHTOOL_RECORDED_STATS, ask_stats, read_stats, stats, 1}};
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		char path[96], *text = NULL;
		/* The recorded paths hold the interface's name once. */
		const char *gap = strstr(doors[i].recorded, "%s");
		snprintf(path, sizeof(path), "%.*s%s%s", (int)(gap - doors[i].recorded),
			doors[i].recorded, p->netdev, gap + 2);
		int rc = get(r, p->netdev, path, doors[i].what, &text);
		int code = rc == 0 && text ? recorded_refusal(text) : 0;
		for (size_t k = 0; k < doors[i].n; k++) {
			struct fact *f = doors[i].f[k];
			if (fb_sysroot_is_live(r))
				snprintf(f->read, sizeof(f->read), "%s %s", doors[i].call,
					p->netdev);
			else
				snprintf(f->read, sizeof(f->read), "%s", path);
			if (rc != 0 && fb_sysroot_is_live(r)) {
				failed(f, -rc);
			} else if (rc != 0) {
				f->state = FACT_HIDDEN;
				snprintf(f->why, sizeof(f->why), "not recorded");
			} else if (code != 0) {
				failed(f, code);
			}
		}
		if (rc == 0 && code == 0)
			doors[i].read(text, p);
		free(text);
	}
}
