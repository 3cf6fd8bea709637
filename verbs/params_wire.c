// SPDX-License-Identifier: Apache-2.0
/*
 * The wire form of parameters. One table lists every number with its bounds: writing, reading and
 * checking go through it alone. What a peer sends is held to the same rules as a user's options.
 */
#include <errno.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/params_priv.h"

#define NUM(f, lo, hi)                                       \
	{                                                    \
#f, offsetof(struct verbs_params, f), lo, hi \
	}
static const struct {
	const char *key;
	size_t offset;
	int min, max;
} nums[] = {NUM(bench, 0, VERBS_NUM_BENCHES - 1), NUM(transport, 0, VERBS_NUM_TRANSPORTS - 1),
	NUM(events, 0, 1), NUM(inline_max, -1, 65536), NUM(mtu, 0, 4096), NUM(sl, 0, 15),
	NUM(traffic_class, 0, 255), NUM(flow_label, 0, 0xfffff), NUM(hop_limit, 1, 255),
	NUM(qp_timeout, -1, 31), NUM(retry, -1, 7), NUM(rnr_retry, -1, 7),
	NUM(depth, 1, VERBS_MAX_DEPTH), NUM(rx_depth, 1, VERBS_MAX_DEPTH),
	NUM(qps, 1, VERBS_MAX_QPS), NUM(post_list, 1, 64), NUM(cq_mod, 1, VERBS_MAX_DEPTH),
	NUM(bidirectional, 0, 1), NUM(loopback, 0, 1), NUM(numa, -2, 1023), NUM(all_rails, 0, 1),
	NUM(peer_ib_port, 0, 255), NUM(peer_gid_index, -1, 65535), NUM(gid_type, -1, 2),
	NUM(gid_family, -1, 3), NUM(pkey_index, 0, 65535), NUM(pkey, -1, 0xffff),
	NUM(vlan, 0, 4094), NUM(rdma_cm, 0, 1), NUM(memory, 0, VERBS_NUM_MEMORIES - 1),
	NUM(gpu, 0, 255)};

/* Numbers that need 64 bits. */
static const struct {
	const char *key;
	size_t offset;
	int64_t min, max;
} wides[] = {NUM(rate, 0, (int64_t)VERBS_MAX_RATE), NUM(window_ns, 0, (int64_t)VERBS_MAX_TIME_NS),
	NUM(interval_ns, 0, (int64_t)VERBS_MAX_TIME_NS)};

/* Those that have a stream of their own beside the probe. */
static bool has_load(const struct verbs_params *p)
{
	return p->bench == VERBS_LOAD || p->bench == VERBS_INCAST || p->bench == VERBS_LOSS;
}

static uint64_t *wide_at(const struct verbs_params *p, size_t offset)
{
	return (uint64_t *)(void *)((char *)(uintptr_t)p + offset);
}

static int *num_at(const struct verbs_params *p, size_t offset)
{
	return (int *)((char *)(uintptr_t)p + offset);
}

json_t *verbs_params_to_json(const struct verbs_params *p)
{
	json_t *j = json_object(), *ops = json_array(), *sizes = json_array();

	if (!j || !ops || !sizes) {
		json_decref(j);
		json_decref(ops);
		json_decref(sizes);
		return NULL;
	}
	for (unsigned i = 0; i < sizeof nums / sizeof nums[0]; i++)
		fb_json_set_int(j, nums[i].key, *num_at(p, nums[i].offset));
	for (unsigned i = 0; i < sizeof wides / sizeof wides[0]; i++)
		fb_json_set_int(j, wides[i].key, (int64_t)*wide_at(p, wides[i].offset));
	for (int i = 0; i < p->nops; i++)
		json_array_append_new(ops, json_string(verbs_ops[p->ops[i]].name));
	for (int i = 0; i < p->nsizes; i++)
		json_array_append_new(sizes, json_integer((json_int_t)p->sizes[i]));
	json_object_set_new(j, "ops", ops);
	json_object_set_new(j, "sizes", sizes);
	fb_json_set_str(j, "peer_device", p->peer_device);
	if (has_load(p))
		json_object_set_new(j, "load", verbs_load_to_json(&p->load));
	fb_json_set_str(j, "peer_gid", p->peer_gid);
	return j;
}

static int bad(struct fb_err *e, const char *key)
{
	return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
		"the client's parameters have no valid '%s': not a fabricbench client of this version",
		key);
}

static int read_arrays(struct verbs_params *p, const json_t *j, struct fb_err *e)
{
	const json_t *ops = json_object_get(j, "ops"), *sizes = json_object_get(j, "sizes");
	size_t nops = json_array_size(ops), nsizes = json_array_size(sizes);

	if (nops < 1 || nops > VERBS_NUM_OPS)
		return bad(e, "ops");
	if (nsizes < 1 || nsizes > VERBS_MAX_SIZES)
		return bad(e, "sizes");
	for (size_t i = 0; i < nops; i++) {
		int one[VERBS_NUM_OPS];
		const char *name = json_string_value(json_array_get(ops, i));
		if (!name || verbs_parse_ops(name, one, NULL) != 1)
			return bad(e, "ops");
		p->ops[i] = one[0];
	}
	for (size_t i = 0; i < nsizes; i++) {
		const json_t *v = json_array_get(sizes, i);
		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
			json_integer_value(v) > (json_int_t)VERBS_MAX_MSG)
			return bad(e, "sizes");
		p->sizes[i] = (uint64_t)json_integer_value(v);
	}
	p->nops = (int)nops;
	p->nsizes = (int)nsizes;
	return 0;
}

int verbs_params_from_json(struct verbs_params *p, const json_t *j, struct fb_err *e)
{
	const char *dev;
	int rc;

	memset(p, 0, sizeof *p);
	for (unsigned i = 0; i < sizeof nums / sizeof nums[0]; i++) {
		const json_t *v = json_object_get(j, nums[i].key);
		if (!json_is_integer(v) || json_integer_value(v) < nums[i].min ||
			json_integer_value(v) > nums[i].max)
			return bad(e, nums[i].key);
		*num_at(p, nums[i].offset) = (int)json_integer_value(v);
	}
	for (unsigned i = 0; i < sizeof wides / sizeof wides[0]; i++) {
		const json_t *v = json_object_get(j, wides[i].key);
		if (!json_is_integer(v) || json_integer_value(v) < wides[i].min ||
			json_integer_value(v) > wides[i].max)
			return bad(e, wides[i].key);
		*wide_at(p, wides[i].offset) = (uint64_t)json_integer_value(v);
	}
	rc = read_arrays(p, j, e);
	if (rc)
		return rc;
	if (has_load(p))
		rc = verbs_load_from_json(&p->load, json_object_get(j, "load"), e);
	if (rc)
		return rc;
	dev = fb_json_str(j, "peer_device", NULL);
	if (!dev || strlen(dev) >= sizeof p->peer_device)
		return bad(e, "peer_device");
	memcpy(p->peer_device, dev, strlen(dev) + 1);
	dev = fb_json_str(j, "peer_gid", NULL);
	if (!dev || strlen(dev) >= sizeof p->peer_gid ||
		(*dev && verbs_params_check_address("peer-gid", dev, NULL) != 0))
		return bad(e, "peer_gid");
	memcpy(p->peer_gid, dev, strlen(dev) + 1);
	if (p->rdma_cm && p->transport != VERBS_RC)
		return bad(e, "rdma_cm");
	rc = verbs_params_memory_fits(p, e);
	if (rc)
		return rc;
	if (p->mtu && !verbs_mtu_enum((unsigned)p->mtu))
		return bad(e, "mtu");
	if (p->cq_mod > p->depth || p->post_list > p->depth || p->rx_depth < p->depth)
		return bad(e, "depth");
	return verbs_params_fit(p, p->events, e);
}

static const char *const settings[] = {"depth", "rx_depth", "cq_mod", "post_list", "qps",
	"bidirectional", "traffic_class", "sl", "mtu", "rdma_cm", "vlan", "memory", "transport"};

static int setting_of(const struct verbs_params *p, const char *key)
{
	for (unsigned i = 0; i < sizeof nums / sizeof nums[0]; i++)
		if (!strcmp(nums[i].key, key))
			return *num_at(p, nums[i].offset);
	return 0;
}

json_t *verbs_params_settings(const struct verbs_params *p)
{
	json_t *j = json_object();

	for (unsigned i = 0; j && i < sizeof settings / sizeof settings[0]; i++)
		fb_json_set_int(j, settings[i], setting_of(p, settings[i]));
	return j;
}

int verbs_params_settings_fit(const struct verbs_params *p, const json_t *theirs, struct fb_err *e)
{
	for (unsigned i = 0; i < sizeof settings / sizeof settings[0]; i++) {
		const json_t *v = json_object_get(theirs, settings[i]);
		int mine = setting_of(p, settings[i]);
		if (json_is_integer(v) && json_integer_value(v) == mine)
			continue;
		fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the ends differ in '%s': %d here, %lld there", settings[i], mine,
			(long long)json_integer_value(v));
		fb_hint(e,
			"the client's options settle it for both: use the same fabricbench at both ends");
		return -EPROTO;
	}
	return 0;
}
