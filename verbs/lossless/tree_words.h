/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of a .tree file work on, and those words themselves. */
#ifndef VERBS_LOSSLESS_TREE_WORDS_H
#define VERBS_LOSSLESS_TREE_WORDS_H

#include <jansson.h>

#include "bench/core/strbuf.h"
#include "verbs/lossless/tree_priv.h"

#define TREE_NETDEVS_MAX 64

/* What one interface's DCB and ethtool will answer. */
struct tree_net {
	char name[32];
	struct dcb_facts dcb;
	bool has_dcb;
	int error; /* an errno instead of an answer */
	json_t *stats;
	char speed[32], modes[512];
	int rx, tx, autoneg; /* -1: no pause parameters */
};

struct tree_maker {
	struct fb_sysroot root;
	char device[64], bdf[16], driver[32];
	int port;
	struct tree_net *net; /* the selected one */
	struct tree_net all[TREE_NETDEVS_MAX];
	int nets;
	struct fb_strbuf hidden, env;
	const char *file;
	int line, depth;
	struct fb_err *e;
};

/** An error of the line at hand. @return -EINVAL */
int tree_wrong(struct tree_maker *m, const char *fmt, ...) FB_PRINTF(2, 3);
int tree_put(struct tree_maker *m, const char *path, const char *text);
/** printf-like path. */
int tree_putf(struct tree_maker *m, const char *text, const char *fmt, ...) FB_PRINTF(3, 4);
/** The buffer's text as a file, none when it is empty; frees it. */
int tree_put_text(struct tree_maker *m, const char *path, struct fb_strbuf *b);
int tree_number(struct tree_maker *m, const char *s, long most, long *v);
/** "0,0,0,3,0,0,6,0" */
int tree_eight(struct tree_maker *m, const char *s, long most, long v[8]);
/** Is an interface, a port selected? */
int tree_want_net(struct tree_maker *m);
int tree_want_port(struct tree_maker *m);

/* Words: w[0] is the word itself. tree_words.c */
int tree_do_netdev(struct tree_maker *m, char **w, int n);
int tree_do_device(struct tree_maker *m, char **w, int n);
int tree_do_port(struct tree_maker *m, char **w, int n);
int tree_do_gid(struct tree_maker *m, char **w, int n);
int tree_do_pkey(struct tree_maker *m, char **w, int n);
int tree_do_counter(struct tree_maker *m, char **w, int n);
int tree_do_active_mtu(struct tree_maker *m, char **w, int n);
int tree_do_env(struct tree_maker *m, char **w, int n);
int tree_do_hidden(struct tree_maker *m, char **w, int n);
int tree_do_memlock(struct tree_maker *m, char **w, int n);
int tree_do_recorded(struct tree_maker *m, char **w, int n);
int tree_do_dir(struct tree_maker *m, char **w, int n);
int tree_do_link(struct tree_maker *m, char **w, int n);
int tree_do_remove(struct tree_maker *m, char **w, int n);
/* tree_net.c */
int tree_do_pfc(struct tree_maker *m, char **w, int n);
int tree_do_pfc_field(struct tree_maker *m, char **w, int n);
int tree_do_app(struct tree_maker *m, char **w, int n);
int tree_do_ets(struct tree_maker *m, char **w, int n);
int tree_do_buffer(struct tree_maker *m, char **w, int n);
int tree_do_dcbx(struct tree_maker *m, char **w, int n);
int tree_do_apptrust(struct tree_maker *m, char **w, int n);
int tree_do_no_dcb(struct tree_maker *m, char **w, int n);
int tree_do_stat(struct tree_maker *m, char **w, int n);
int tree_do_pause(struct tree_maker *m, char **w, int n);
int tree_do_speed(struct tree_maker *m, char **w, int n);
/** What the interface answers, when all lines are read. */
int tree_put_dcb(struct tree_maker *m, const struct tree_net *x);
int tree_put_ethtool(struct tree_maker *m, const struct tree_net *x);

#endif
