// SPDX-License-Identifier: Apache-2.0
/*
 * Counters by driver. Names: the kernel's drivers/infiniband (hw/mlx5/counters.c, hw/bnxt_re/
 * hw_counters.c, hw/irdma/verbs.c, hw/efa/efa_verbs.c, hw/mlx4/main.c, hw/ionic/ionic_hw_stats.c,
 * sw/rxe/rxe_hw_counters.c).
 */
#include "verbs/counters.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/core/json.h"

const char *const verbs_class_names[VERBS_NUM_CLASSES] = {"loss_seen", "nak", "timeout", "rnr",
	"ecn", "cnp_sent", "cnp_handled", "cnp_ignored", "icrc", "retry_exhausted"};

static const struct {
	const char *driver, *counter;
	enum verbs_counter_class class;
} map[] = {
	/* rxe: out_of_seq_request counts a gap once, completer_retry_err timeouts and NAK retries.
	 */
	{"rxe", "out_of_seq_request", VERBS_LOSS_SEEN},
	{"rxe", "rcvd_seq_err", VERBS_NAK},
	{"rxe", "completer_retry_err", VERBS_TIMEOUT},
	{"rxe", "rcvd_rnr_err", VERBS_RNR},
	{"rxe", "send_rnr_err", VERBS_RNR},
	{"rxe", "retry_exceeded_err", VERBS_RETRY_EXHAUSTED},
	{"rxe", "retry_rnr_exceeded_err", VERBS_RETRY_EXHAUSTED},
	{"mlx5", "out_of_sequence", VERBS_LOSS_SEEN},
	{"mlx5", "implied_nak_seq_err", VERBS_LOSS_SEEN},
	{"mlx5", "packet_seq_err", VERBS_NAK},
	{"mlx5", "local_ack_timeout_err", VERBS_TIMEOUT},
	{"mlx5", "roce_adp_retrans_to", VERBS_TIMEOUT},
	{"mlx5", "rnr_nak_retry_err", VERBS_RNR},
	{"mlx5", "out_of_buffer", VERBS_RNR},
	{"mlx5", "np_ecn_marked_roce_packets", VERBS_ECN},
	{"mlx5", "np_cnp_sent", VERBS_CNP_SENT},
	{"mlx5", "rp_cnp_handled", VERBS_CNP_HANDLED},
	{"mlx5", "rp_cnp_ignored", VERBS_CNP_IGNORED},
	{"mlx5", "rx_icrc_encapsulated", VERBS_ICRC},
	{"mlx5", "req_transport_retries_exceeded", VERBS_RETRY_EXHAUSTED},
	{"mlx5", "req_rnr_retries_exceeded", VERBS_RETRY_EXHAUSTED},
	{"mlx4", "rq_num_oos", VERBS_LOSS_SEEN},
	{"mlx4", "sq_num_oos", VERBS_NAK},
	{"mlx4", "sq_num_to", VERBS_TIMEOUT},
	{"mlx4", "sq_num_rnr", VERBS_RNR},
	{"mlx4", "rq_num_rnr", VERBS_RNR},
	{"mlx4", "sq_num_tree", VERBS_RETRY_EXHAUSTED},
	{"mlx4", "sq_num_rree", VERBS_RETRY_EXHAUSTED},
	/* Broadcom's own driver, and newer kernels, have renamed some; a port has one or the other.
	 */
	{"bnxt_re", "oos_drop_count", VERBS_LOSS_SEEN},
	{"bnxt_re", "missing_resp", VERBS_LOSS_SEEN},
	{"bnxt_re", "seq_err_naks_rcvd", VERBS_NAK},
	{"bnxt_re", "to_retransmits", VERBS_TIMEOUT},
	{"bnxt_re", "rnr_naks_rcvd", VERBS_RNR},
	{"bnxt_re", "rx_out_of_buffer", VERBS_RNR},
	{"bnxt_re", "max_retry_exceeded", VERBS_RETRY_EXHAUSTED},
	{"bnxt_re", "rx_ecn_marked_pkts", VERBS_ECN},
	{"bnxt_re", "tx_cnp_pkts", VERBS_CNP_SENT},
	{"bnxt_re", "rx_cnp_pkts", VERBS_CNP_HANDLED},
	{"bnxt_re", "out_of_sequence", VERBS_LOSS_SEEN},
	{"bnxt_re", "implied_nak_seq_err", VERBS_LOSS_SEEN},
	{"bnxt_re", "packet_seq_err", VERBS_NAK},
	{"bnxt_re", "local_ack_timeout_err", VERBS_TIMEOUT},
	{"bnxt_re", "rnr_nak_retry_err", VERBS_RNR},
	{"bnxt_re", "out_of_buffer", VERBS_RNR},
	{"bnxt_re", "np_ecn_marked_roce_packets", VERBS_ECN},
	{"bnxt_re", "np_cnp_pkts", VERBS_CNP_SENT},
	{"bnxt_re", "np_cnp_sent", VERBS_CNP_SENT},
	{"bnxt_re", "rp_cnp_handled", VERBS_CNP_HANDLED},
	{"irdma", "RxECNMrkd", VERBS_ECN},
	{"irdma", "cnpSent", VERBS_CNP_SENT},
	{"irdma", "cnpHandled", VERBS_CNP_HANDLED},
	{"irdma", "cnpIgnored", VERBS_CNP_IGNORED},
	{"irdma", "Rcvd Out of order packets", VERBS_LOSS_SEEN},
	{"irdma", "Nak Sequence Error Implied", VERBS_LOSS_SEEN},
	{"irdma", "Nak Sequence Error", VERBS_NAK},
	{"irdma", "RTO", VERBS_TIMEOUT},
	{"irdma", "RNR sent", VERBS_RNR},
	{"irdma", "RNR received", VERBS_RNR},
	{"irdma", "tcpRetransSegs", VERBS_NAK}, /* iWARP */
	{"irdma", "RetransSegs", VERBS_NAK},
	{"efa", "rx_drops", VERBS_LOSS_SEEN},
	/* SRD retransmits by itself; what it asks for again is told as packets. */
	{"efa", "retrans_pkts", VERBS_NAK},
	{"efa", "retrans_timeout_events", VERBS_TIMEOUT},
	{"efa", "unresponsive_remote_events", VERBS_RETRY_EXHAUSTED},
	{"ionic", "resp_rx_outouf_seq", VERBS_LOSS_SEEN}, /* the driver's spelling */
	{"ionic", "req_rx_pkt_seq_err", VERBS_NAK},
	{"ionic", "tx_rdma_ack_timeout", VERBS_TIMEOUT},
	{"ionic", "req_rx_rnr_retry_err", VERBS_RNR},
	{"ionic", "rx_rdma_ecn_pkts", VERBS_ECN},
	{"ionic", "tx_rdma_cnp_pkts", VERBS_CNP_SENT},
	{"ionic", "rx_rdma_cnp_pkts", VERBS_CNP_HANDLED},
	{"ionic", "req_tx_retry_excd_err", VERBS_RETRY_EXHAUSTED},
};
#define MAP_SIZE (sizeof map / sizeof map[0])

int verbs_counter_class(const char *driver, const char *counter)
{
	for (size_t i = 0; i < MAP_SIZE; i++)
		if (!strcmp(map[i].driver, driver) && !strcmp(map[i].counter, counter))
			return (int)map[i].class;
	return -1;
}

static void read_folder(const struct fb_sysroot *r, const char *device, unsigned port,
	const char *folder, json_t *into)
{
	char path[256];
	char **names;
	int n;

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/%s", device, port, folder);
	n = fb_sysroot_list(r, path, &names);
	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		int64_t v;
		if (strcmp(names[i], "lifespan") != 0 &&
			fb_sysroot_read_i64(r, &v, "%s/%s", path, names[i]) == 0)
			fb_json_set_int(into, names[i], v);
	}
	fb_sysroot_names_free(names);
}

json_t *verbs_counters_read(const struct fb_sysroot *r, const char *device, unsigned port)
{
	json_t *j = json_object();

	if (j) {
		read_folder(r, device, port, "hw_counters", j);
		read_folder(r, device, port, "counters", j);
	}
	return j;
}

void verbs_counters_settle(const struct fb_sysroot *r, const char *device, unsigned port)
{
	int64_t ms;
	struct timespec t;

	if (fb_sysroot_read_i64(r, &ms, "/sys/class/infiniband/%s/ports/%u/hw_counters/lifespan",
		    device, port) != 0)
		return;
	if (ms < 0 || ms > 10000)
		ms = 10;
	ms += 1; /* jiffies round down */
	t.tv_sec = ms / 1000;
	t.tv_nsec = ms % 1000 * 1000000;
	nanosleep(&t, NULL);
}

void verbs_counters_classify(const char *driver, const json_t *before, const json_t *after,
	int64_t grown[VERBS_NUM_CLASSES])
{
	for (int c = 0; c < VERBS_NUM_CLASSES; c++)
		grown[c] = -1;
	for (size_t i = 0; i < MAP_SIZE; i++) {
		const json_t *b, *a;
		int64_t d;
		if (strcmp(map[i].driver, driver) != 0)
			continue;
		b = json_object_get(before, map[i].counter);
		a = json_object_get(after, map[i].counter);
		if (!b || !a)
			continue;
		d = json_integer_value(a) - json_integer_value(b);
		if (d < 0)
			continue;
		grown[map[i].class] = (grown[map[i].class] < 0 ? 0 : grown[map[i].class]) + d;
	}
}

const char *verbs_loss_text(const int64_t grown[VERBS_NUM_CLASSES], char *buf, size_t len)
{
	static const struct {
		enum verbs_counter_class class;
		const char *text;
	} telling[] = {{VERBS_LOSS_SEEN, "sequence gaps (lost or reordered)"},
		{VERBS_NAK, "retransmissions asked for"}, {VERBS_TIMEOUT, "timeouts or retries"},
		{VERBS_ICRC, "corrupted packets"}, {VERBS_RETRY_EXHAUSTED, "connections given up"}};
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < sizeof telling / sizeof telling[0] && at < len; i++)
		if (grown[telling[i].class] > 0)
			at += (size_t)snprintf(buf + at, len - at, "%s%s %lld", at ? ", " : "",
				telling[i].text, (long long)grown[telling[i].class]);
	return buf;
}

static json_t *source_classes(const int64_t grown[VERBS_NUM_CLASSES])
{
	json_t *j = json_object();

	for (int c = 0; j && c < VERBS_NUM_CLASSES; c++)
		if (grown[c] >= 0)
			fb_json_set_int(j, verbs_class_names[c], grown[c]);
	return j;
}

void verbs_counters_extend(json_t *counters, verbs_driver_of driver, const void *arg)
{
	const json_t *before = json_object_get(counters, "before");
	json_t *by = json_object(), *all = json_object(), *source;
	int64_t sum[VERBS_NUM_CLASSES];
	char note[256] = "not available: ";
	const size_t start = strlen(note);
	size_t at = start;
	const char *name;

	for (int c = 0; c < VERBS_NUM_CLASSES; c++)
		sum[c] = -1;
	json_object_foreach (json_object_get(counters, "after"), name, source) {
		int64_t grown[VERBS_NUM_CLASSES];
		verbs_counters_classify(
			driver(arg, name), json_object_get(before, name), source, grown);
		for (int c = 0; c < VERBS_NUM_CLASSES; c++)
			if (grown[c] >= 0)
				sum[c] = (sum[c] < 0 ? 0 : sum[c]) + grown[c];
		json_object_set_new(by, name, source_classes(grown));
	}
	for (int c = 0; c < VERBS_NUM_CLASSES; c++) {
		json_object_set_new(all, verbs_class_names[c],
			sum[c] < 0 ? json_null() : json_integer((json_int_t)sum[c]));
		if (sum[c] < 0 && at < sizeof note)
			at += (size_t)snprintf(note + at, sizeof note - at, "%s%s",
				at > start ? ", " : "", verbs_class_names[c]);
	}
	json_object_set_new(counters, "classes", all);
	json_object_set_new(counters, "classes_by", by);
	if (at > start)
		fb_json_set_str(counters, "classes_note", note);
}

void verbs_counters_add_port(json_t *c, const char *key, const json_t *before, const json_t *after)
{
	static const char *const words[] = {"before", "after", "delta"};
	const json_t *from = json_object_get(before, "counters"),
		     *to = json_object_get(after, "counters");
	json_t *delta = json_object(), *v;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)to, name, v) {
		const json_t *b = json_object_get(from, name);
		if (json_is_integer(v) && json_is_integer(b))
			fb_json_set_int(delta, name, json_integer_value(v) - json_integer_value(b));
	}
	for (int i = 0; i < 3; i++) {
		const json_t *one = i == 0 ? from : i == 1 ? to : delta;
		if (json_object_size(one))
			json_object_set_new(json_object_get(c, words[i]), key, json_deep_copy(one));
	}
	json_decref(delta);
}
