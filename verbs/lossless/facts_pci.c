// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of the PCI function's configuration space: relaxed ordering, and whether a bridge above
 * sends traffic between devices up to the root first (ACS). Sources: PCI Express Base
 * Specification, Device Control register and ACS extended capability; Linux
 * include/uapi/linux/pci_regs.h. Only root can read beyond the first 64 bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/facts_priv.h"

#define CONFIG_MAX     4096
#define HEADER         64
#define CAP_POINTER    0x34
#define CAP_EXPRESS    0x10
#define DEVICE_CONTROL 8
#define RELAXED        0x0010
#define EXTENDED       0x100
#define EXT_ACS        0x000d
#define ACS_CONTROL    6
#define ACS_REDIRECT   0x000c /* of requests and completions between peers */

static unsigned u16(const uint8_t *c, size_t at)
{
	return c[at] | (unsigned)c[at + 1] << 8;
}

/* @return its length, with f set where there is none */
static int read_config(
	const struct facts_door *d, struct fact *f, const char *dir, uint8_t config[CONFIG_MAX])
{
	char path[512], real[4096], *text = NULL;
	size_t len = 0;
	struct fb_err e = {0};
	memset(config, 0, CONFIG_MAX);
	snprintf(path, sizeof(path), "%.400s/config", dir);
	fact_read_by(f, "%.150s", path);
	int rc = fb_sysroot_path(d->r, path, real, sizeof(real));
	if (rc == 0)
		rc = fb_read_file(real, CONFIG_MAX, &text, &len, &e);
	if (rc == 0)
		memcpy(config, text, len);
	free(text);
	if (rc == -EACCES || (rc == 0 && len <= HEADER) || (rc < 0 && facts_is_hidden(d, path)))
		fact_none(f, FACT_HIDDEN,
			"needs root: others read 64 bytes of PCI configuration space");
	else if (rc == -ENOENT)
		fact_none(f, fb_sysroot_is_live(d->r) ? FACT_ABSENT : FACT_HIDDEN, "%s",
			fb_sysroot_is_live(d->r) ? "no such file" : "not recorded");
	else if (rc < 0)
		fact_none(f, FACT_BROKEN, "cannot be read: %s", strerror(-rc));
	else
		return (int)len;
	return -1;
}

/* Offset of the PCI Express capability; 0: none. A ring of pointers ends after 48 hops. */
static size_t express(const uint8_t *c, size_t len)
{
	size_t at = c[CAP_POINTER] & 0xfcu;
	for (int hops = 0; at >= HEADER && at + 12 <= len && at < 256 && hops < 48; hops++) {
		if (c[at] == CAP_EXPRESS)
			return at;
		at = c[at + 1] & 0xfcu;
	}
	return 0;
}

/* Control register of the ACS capability; -1: none; -2: what was read ends before that is known. */
static int acs_control(const uint8_t *c, size_t len)
{
	size_t at = EXTENDED;
	/* A conventional bridge has 256 bytes and no ACS; an express one has more. */
	if (len <= EXTENDED && len >= 256 && express(c, len) == 0)
		return -1;
	for (int hops = 0; at >= EXTENDED && at + 8 <= len && hops < 96; hops++) {
		if (u16(c, at) == EXT_ACS)
			return (int)u16(c, at + ACS_CONTROL);
		at = u16(c, at + 2) >> 4 & 0xffcu;
	}
	return at >= EXTENDED && at + 8 > len && len < CONFIG_MAX ? -2 : -1;
}

static void read_relaxed(const struct facts_door *d, struct port_facts *p)
{
	uint8_t c[CONFIG_MAX];
	char dir[160];
	struct fact *f = &p->relaxed_ordering.f;
	snprintf(dir, sizeof(dir), "/sys/class/infiniband/%s/device", p->device);
	int len = read_config(d, f, dir, c);
	if (len < 0)
		return;
	size_t at = express(c, (size_t)len);
	if (at == 0) {
		fact_none(f, FACT_BROKEN, "no PCI Express capability in %d bytes", len);
		return;
	}
	p->relaxed_ordering.v = (u16(c, at + DEVICE_CONTROL) & RELAXED) != 0;
	f->state = FACT_KNOWN;
}

static bool is_bdf(const char *s)
{
	unsigned domain, bus, dev, fn;
	int end = 0;
	return sscanf(s, "%x:%x:%x.%x%n", &domain, &bus, &dev, &fn, &end) == 4 && s[end] == '\0';
}

/* The bridges above, from the function upwards; those that redirect are named. */
static void read_acs(const struct facts_door *d, struct port_facts *p)
{
	uint8_t c[CONFIG_MAX];
	char dir[4096];
	struct fact_text *t = &p->acs_redirect;
	size_t at = 0;
	int bridges = 0;
	snprintf(dir, sizeof(dir), "/sys/class/infiniband/%s/device", p->device);
	fact_read_by(&t->f, "config of the bridges above %s", p->bdf);
	if (fb_sysroot_realpath(d->r, dir, dir, sizeof(dir)) < 0) {
		fact_none(&t->f, FACT_HIDDEN, "where the function is in the tree is not visible");
		return;
	}
	for (char *slash; (slash = strrchr(dir, '/')) != NULL && slash != dir;) {
		*slash = '\0';
		const char *name = strrchr(dir, '/');
		if (!name || !is_bdf(name + 1))
			break;
		struct fact one = {0};
		int len = read_config(d, &one, dir, c);
		if (len < 0) {
			t->f = one;
			return;
		}
		bridges++;
		int control = acs_control(c, (size_t)len);
		if (control == -2) {
			fact_none(&t->f, FACT_HIDDEN,
				"needs root: only %d bytes of the configuration of bridge %s can "
				"be read",
				len, name + 1);
			return;
		}
		if (control > 0 && (control & ACS_REDIRECT) && at < sizeof(t->v))
			at += (size_t)snprintf(
				t->v + at, sizeof(t->v) - at, "%s%s", at ? ", " : "", name + 1);
	}
	if (bridges == 0)
		fact_none(&t->f, FACT_HIDDEN,
			"no bridge is visible above the function: a virtual machine?");
	else
		t->f.state = FACT_KNOWN;
}

void facts_read_pci(const struct facts_door *d, struct port_facts *p)
{
	if (p->bdf[0]) {
		read_relaxed(d, p);
		read_acs(d, p);
		return;
	}
	fact_none(&p->relaxed_ordering.f, FACT_ABSENT, "the device is no PCI function");
	p->acs_redirect.f = p->relaxed_ordering.f;
}
