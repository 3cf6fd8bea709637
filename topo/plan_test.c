// SPDX-License-Identifier: Apache-2.0
/*
 * The plan against machines whose right plan is known, and the matching against every other one.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <hwloc.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "topo/nccl_path.h"
#include "topo/plan.h"
#include "topo/test_model.h"
#include "topo/test_nodes.h"
#include "topo/test_plan.h"

static struct topo *nccl(const char *name)
{
	char path[256];
	struct topo *t;
	struct fb_err e = {0};

	snprintf(path, sizeof(path), FB_TESTDATA("topo", "nccl/%s.xml"), name);
	if (topo_load_nccl_xml(path, &t, &e) != 0)
		fail_msg("%s", e.msg);
	return t;
}

static const struct topo_plan_nic *nic_of(const struct topo_plan *p, const char *name)
{
	for (size_t i = 0; i < p->n_nics; i++)
		if (strcmp(p->devs[p->nics[i].dev].name, name) == 0)
			return &p->nics[i];
	fail_msg("no NIC %s", name);
	return NULL;
}

/** "BDF>NIC:RAIL NIC:RAIL" of one GPU, the NICs by name. */
static void row(const struct topo *t, const struct topo_plan *p, size_t g, char *buf, size_t len)
{
	const struct topo_plan_gpu *gpu = &p->gpus[g];
	size_t n = (size_t)snprintf(buf, len, "%s>", t->pci[p->devs[gpu->dev].pci].bdf);

	for (size_t i = 0; i < gpu->n_nics && n < len; i++)
		n += (size_t)snprintf(buf + n, len - n, "%s%s", i ? " " : "",
			p->devs[p->nics[gpu->nics[i]].dev].name);
}

/* ---- recorded machines ----------------------------------------------------------------------- */

static const struct known {
	const char *file, *rows[8]; /* by PCI address of the GPU, which no numbering changes */
	enum topo_path path;
	const char *note; /* must be there; NULL: none about distance */
} known[] = {
	{"azure-ndv4-topo",
		{"0001:00:00.0>0101:00:00.0", "0002:00:00.0>0102:00:00.0",
			"0003:00:00.0>0103:00:00.0", "0004:00:00.0>0104:00:00.0",
			"000b:00:00.0>0105:00:00.0", "000c:00:00.0>0106:00:00.0",
			"000d:00:00.0>0107:00:00.0", "000e:00:00.0>0108:00:00.0"},
		TOPO_PATH_PIX, NULL},
	{"azure-ndv5-topo",
		{"0001:00:00.0>0101:00:00.0", "0002:00:00.0>0102:00:00.0",
			"0003:00:00.0>0103:00:00.0", "0008:00:00.0>0104:00:00.0",
			"0009:00:00.0>0105:00:00.0", "000a:00:00.0>0106:00:00.0",
			"000b:00:00.0>0107:00:00.0", "000c:00:00.0>0108:00:00.0"},
		TOPO_PATH_PIX, NULL},
	{"aws-p4d-24xl-topo",
		{"0000:10:1c.0>0000:10:1b.0", "0000:10:1d.0>0000:10:1b.0",
			"0000:20:1c.0>0000:20:1b.0", "0000:20:1d.0>0000:20:1b.0",
			"0000:90:1c.0>0000:90:1b.0", "0000:90:1d.0>0000:90:1b.0",
			"0000:a0:1c.0>0000:a0:1b.0", "0000:a0:1d.0>0000:a0:1b.0"},
		TOPO_PATH_PIX, "4 NICs for 8 GPUs"},
	{"oci-BM.GPU4.8-topo-flattened",
		{"0000:0f:00.0>0000:0c:00.0", "0000:15:00.0>0000:16:00.0",
			"0000:51:00.0>0000:48:00.0", "0000:54:00.0>0000:4c:00.0",
			"0000:8d:00.0>0000:8a:00.0", "0000:92:00.0>0000:94:00.0",
			"0000:d6:00.0>0000:c3:00.0", "0000:da:00.0>0000:d1:00.0"},
		TOPO_PATH_PIX, NULL},
	{"topo_8p_940",
		{"0000:0c:00.0>mlx5_0", "0000:15:00.0>mlx5_1", "0000:1e:00.0>mlx5_2",
			"0000:69:00.0>mlx5_3", "0000:9f:00.0>mlx5_4", "0000:af:00.0>mlx5_5",
			"0000:bf:00.0>mlx5_6", "0000:df:00.0>mlx5_7"},
		TOPO_PATH_PXB, NULL},
	{"topo_8p_ts1_n4", {NULL}, TOPO_PATH_SYS, "no local NIC for GPU0"},
	{"topo_8p6l_4nic", {NULL}, TOPO_PATH_PHB, "no NIC on the switch of GPU0"},
};

static void test_recorded_machines(void **state)
{
	char got[256];

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const struct known *k = &known[i];
		struct topo *t = nccl(k->file);
		struct topo_plan *p = plan_of(t);

		assert_int_equal(p->n_gpus, 8);
		for (size_t g = 0; g < 8; g++) {
			assert_false(p->gpus[g].ambiguous);
			assert_int_equal(p->gpus[g].path, k->path);
			assert_int_equal(p->gpus[g].n_nics, 1);
			row(t, p, g, got, sizeof(got));
			if (k->rows[g] && strcmp(got, k->rows[g]) != 0)
				fail_msg("%s: %s, not %s", k->file, got, k->rows[g]);
		}
		if (k->note && !noted(p, k->note))
			fail_msg("%s: no note \"%s\"", k->file, k->note);
		if (!k->note && (noted(p, "no local NIC") || noted(p, "no NIC on the switch")))
			fail_msg("%s: a note about distance", k->file);
		topo_plan_free(p);
		topo_free(t);
	}
}

/** Rails count NICs where there are fewer of them than GPUs, and each carries its share. */
static void test_shared_nics(void **state)
{
	struct topo *t = nccl("aws-p4d-24xl-topo");
	struct topo_plan *p = plan_of(t);

	for (size_t i = 0; i < p->n_nics; i++) {
		assert_int_equal(p->nics[i].role, TOPO_NIC_COMPUTE);
		assert_int_equal(p->nics[i].rail, i);
	}
	topo_plan_free(p);
	topo_free(t);
	/* One NIC for all, and four root ports of one CPU with two NICs: no NIC gets more than
	 * half. */
	t = nccl("topo_8p6l_4nic");
	p = plan_of(t);
	size_t load[4] = {0};

	for (size_t g = 0; g < 8; g++)
		load[p->gpus[g].nics[0]]++;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(load[i], 2);
	topo_plan_free(p);
	topo_free(t);
	t = nccl("azure-ndv2-topo");
	p = plan_of(t);
	for (size_t g = 0; g < 8; g++) {
		assert_false(p->gpus[g].ambiguous);
		assert_int_equal(p->gpus[g].n_nics, 1);
	}
	assert_true(noted(p, "no local NIC for GPU"));
	topo_plan_free(p);
	topo_free(t);
}

/** As AWS p5: eight switches of one GPU and four EFA. Rail i is GPU i's. */
static void test_several_nics_each(void **state)
{
	struct topo *t = model_node(4, 1, 4);
	struct topo_plan *p = plan_of(t);

	assert_int_equal(p->n_gpus, 8);
	assert_int_equal(p->nics_per_gpu, 4);
	for (size_t g = 0; g < 8; g++) {
		assert_int_equal(p->gpus[g].n_nics, 4);
		for (size_t k = 0; k < 4; k++) {
			assert_int_equal(p->gpus[g].nics[k], 4 * g + k);
			assert_int_equal(p->nics[4 * g + k].rail, g);
		}
	}
	topo_plan_free(p);
	topo_free(t);
}

/** DGX A100: two GPUs and two NICs on each of four switches, storage NICs between them in name
 * order. */
static void test_dgx_a100(void **state)
{
	static const int nodes[] = {3, 1, 7, 5};
	struct topo *t = model_new();
	int sw[4], nic = 0;
	char name[32];

	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "%d-%d,%d-%d", i * 16, i * 16 + 15, 128 + i * 16,
			143 + i * 16);
		model_numa(t, name);
	}
	for (int s = 0; s < 4; s++) {
		sw[s] = model_bridge(t, model_bridge(t, TOPO_UNKNOWN, nodes[s]), nodes[s]);
		for (int g = 0; g < 2; g++)
			model_gpu(t, model_bridge(t, sw[s], nodes[s]), nodes[s]);
	}
	for (int s = 0; s < 4; s++) {
		for (int k = 0; k < 2; k++) {
			snprintf(name, sizeof(name), "mlx5_%d", nic++);
			model_rdma(t, name, model_bridge(t, sw[s], nodes[s]), nodes[s],
				"InfiniBand", 200, 4);
		}
		for (int k = 0; s == 1 && k < 2; k++) {
			snprintf(name, sizeof(name), "mlx5_%d", nic++);
			model_rdma(
				t, name, model_bridge(t, TOPO_UNKNOWN, 0), 0, "InfiniBand", 200, 4);
		}
	}
	struct topo_plan *p = plan_of(t);
	static const char *const want[] = {
		"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9"};

	for (size_t g = 0; g < 8; g++) {
		const struct topo_plan_nic *n = &p->nics[p->gpus[g].nics[0]];

		assert_string_equal(p->devs[n->dev].name, want[g]);
		assert_int_equal(n->rail, g);
		assert_int_equal(p->gpus[g].numa, nodes[g / 2]);
	}
	assert_int_equal(nic_of(p, "mlx5_4")->role, TOPO_NIC_SPARE);
	assert_int_equal(nic_of(p, "mlx5_5")->rail, TOPO_UNKNOWN);
	topo_plan_free(p);
	topo_free(t);
}

/** Levante's matrix: two of four GPUs have their NIC on the switch, the others none at all. */
static void test_gpus_without_local_nic(void **state)
{
	struct topo *t = model_new();
	int root[4], numas[] = {3, 1, 7, 5};

	for (int i = 0; i < 8; i++)
		model_numa(t, "0-15");
	for (int i = 0; i < 4; i++) {
		root[i] = model_bridge(t, TOPO_UNKNOWN, numas[i]);
		model_gpu(t, model_bridge(t, root[i], numas[i]), numas[i]);
	}
	model_rdma(t, "mlx5_0", model_bridge(t, root[1], 1), 1, "InfiniBand", 200, 4);
	model_rdma(t, "mlx5_1", model_bridge(t, root[2], 7), 7, "InfiniBand", 200, 4);
	struct topo_plan *p = plan_of(t);

	assert_int_equal(p->gpus[1].nics[0], 0);
	assert_int_equal(p->gpus[1].path, TOPO_PATH_PIX);
	assert_int_equal(p->gpus[2].nics[0], 1);
	for (size_t g = 0; g < 4; g++)
		assert_false(p->gpus[g].ambiguous);
	assert_int_equal(p->gpus[0].nics[0] + p->gpus[3].nics[0], 1);
	assert_true(noted(p, "no local NIC for GPU0, GPU3:"));
	topo_plan_free(p);
	topo_free(t);
}

/** The same as nvidia-smi's text, recorded there: the matrix shows switches, so SYS is a fact. */
static void test_levante_text(void **state)
{
	struct topo *t;
	struct fb_err e = {0};

	if (topo_load_smi(FB_TESTDATA("topo", "smi/levante_4gpu_2nic_topo_mp.txt"), &t, &e) != 0)
		fail_msg("%s", e.msg);
	struct topo_plan *p = plan_of(t);

	for (size_t g = 0; g < 4; g++)
		assert_false(p->gpus[g].ambiguous);
	assert_int_equal(p->gpus[1].nics[0], 0);
	assert_int_equal(p->gpus[2].nics[0], 1);
	assert_string_equal(p->gpus[0].cpus, "48-63,176-191");
	assert_true(noted(p, "no local NIC for GPU0, GPU3:"));
	topo_plan_free(p);
	topo_free(t);
}

/* ---- what the tree cannot tell --------------------------------------------------------------- */

static void test_guest_is_not_guessed(void **state)
{
	struct topo *t = model_new();
	struct fb_strbuf b = {0};

	model_numa(t, "0-31");
	for (int i = 0; i < 8; i++)
		model_gpu(t, TOPO_UNKNOWN, 0);
	for (int i = 0; i < 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "mlx5_%d", i);
		model_rdma(t, name, TOPO_UNKNOWN, 0, "InfiniBand", 400, 4);
	}
	for (int vm = 0; vm < 2; vm++) {
		/* A flat tree tells as little where nobody says that it is a guest's. */
		t->virtual_machine = vm;
		struct topo_plan *p = plan_of(t);

		for (size_t g = 0; g < 8; g++) {
			assert_true(p->gpus[g].ambiguous);
			assert_int_equal(p->gpus[g].n_nics, 8);
			assert_non_null(strstr(p->gpus[g].why, "hides the switches"));
			assert_non_null(p->gpus[g].cpus);
		}
		for (size_t i = 0; i < 8; i++)
			assert_int_equal(p->nics[i].rail, TOPO_UNKNOWN);
		topo_plan_hca(t, p, &b);
		assert_int_equal(b.len, 0);
		topo_plan_text(t, p, &b);
		assert_non_null(strstr(b.s, "Ambiguous"));
		fb_strbuf_free(&b);
		topo_plan_free(p);
	}
	topo_free(t);
}

/** A guest with one GPU and one NIC on each NUMA node leaves nothing to guess. */
static void test_guest_that_tells(void **state)
{
	struct topo *t = model_new();

	t->virtual_machine = true;
	model_numa(t, "0-3");
	model_numa(t, "4-7");
	for (int i = 0; i < 2; i++)
		model_gpu(t, TOPO_UNKNOWN, i);
	model_rdma(t, "mlx5_0", TOPO_UNKNOWN, 1, "InfiniBand", 400, 4);
	model_rdma(t, "mlx5_1", TOPO_UNKNOWN, 0, "InfiniBand", 400, 4);
	struct topo_plan *p = plan_of(t);

	assert_false(p->gpus[0].ambiguous);
	assert_int_equal(p->gpus[0].nics[0], 1);
	assert_int_equal(p->gpus[1].nics[0], 0);
	assert_int_equal(p->nics[1].rail, 0);
	topo_plan_free(p);
	topo_free(t);
}

/** Emulated root ports in a guest whose CPU flags nobody recorded. */
static void test_emulated_bridges(void **state)
{
	struct topo *t = model_new();

	model_numa(t, "0-3");
	for (int i = 0; i < 4; i++) {
		int port = model_pci(t, TOPO_UNKNOWN, 0x060400, 0x1b36, 0x000c, 0);

		if (i < 2)
			model_gpu(t, port, 0);
		else
			model_rdma(t, i == 2 ? "mlx5_0" : "mlx5_1", port, 0, "InfiniBand", 400, 4);
	}
	struct topo_plan *p = plan_of(t);

	assert_true(p->gpus[0].ambiguous && p->gpus[1].ambiguous);
	assert_non_null(strstr(p->gpus[0].why, "emulated"));
	topo_plan_free(p);
	topo_free(t);
}

/* ---- candidates ------------------------------------------------------------------------------ */

static void test_exclusions(void **state)
{
	static const struct {
		const char *name, *why;
	} want[] = {
		{"mlx5_bond_0", "200 Gb/s"},
		{"mlx5_eth", "Ethernet"},
		{"mlx5_an0", "SHARP"},
		{"mlx5_down", "DOWN"},
		{"mlx5_slow", "100 Gb/s, the compute NICs have 400"},
		{"mlx5_vf", "a virtual function of mlx5_0"},
		{"rxe0", "software RDMA"},
	};
	struct topo *t = model_node(2, 1, 1);
	int port = model_bridge(t, TOPO_UNKNOWN, 0);

	model_rdma(t, "mlx5_bond_0", port, 0, "Ethernet", 200, 4);
	model_rdma(t, "mlx5_eth", port, 0, "Ethernet", 400, 4);
	model_rdma(t, "mlx5_an0", port, 0, "InfiniBand", 400, 4);
	model_rdma(t, "mlx5_down", port, 0, "InfiniBand", 400, 1);
	model_rdma(t, "mlx5_slow", port, 0, "InfiniBand", 100, 4);
	t->pci[model_rdma(t, "mlx5_vf", port, 0, "InfiniBand", 400, 4)->pci].physfn =
		topo_find_rdma(t, "mlx5_0")->pci;
	model_rdma(t, "rxe0", port, 0, "Ethernet", 400, 4)->soft = true;
	struct topo_plan *p = plan_of(t);

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		const struct topo_plan_nic *n = nic_of(p, want[i].name);

		if (n->role != TOPO_NIC_EXCLUDED || !strstr(n->why, want[i].why))
			fail_msg("%s: role %d, %s", want[i].name, n->role, n->why);
		assert_int_equal(n->rail, TOPO_UNKNOWN);
	}
	for (size_t g = 0; g < 4; g++) {
		assert_int_equal(p->gpus[g].n_nics, 1);
		assert_int_equal(p->gpus[g].path, TOPO_PATH_PIX);
	}
	topo_plan_free(p);
	topo_free(t);
}

/** Bonds are the compute NICs where nothing else is; a slow one of the same model stays and is
 * told. */
static void test_bonds_and_slow_siblings(void **state)
{
	struct topo *t = model_node(2, 1, 0);

	for (int i = 0; i < 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "mlx5_bond_%d", i);
		model_rdma(t, name, t->pci[t->pci[t->gpus[i].pci].parent].parent, i / 2, "Ethernet",
			i == 2 ? 200 : 400, 4);
	}
	struct topo_plan *p = plan_of(t);

	for (size_t g = 0; g < 4; g++) {
		assert_int_equal(p->gpus[g].n_nics, 1);
		assert_int_equal(p->gpus[g].nics[0], g);
	}
	assert_true(noted(p, "mlx5_bond_2 runs at 200 Gb/s, others of its model at 400"));
	topo_plan_free(p);
	topo_free(t);
}

/** More NICs than GPUs, but not twice: the far ones are spare (DGX H100's storage ports). */
static void test_spare_nics(void **state)
{
	struct topo *t = model_node(4, 1, 1);

	model_rdma(t, "storage0", model_bridge(t, TOPO_UNKNOWN, 0), 0, "InfiniBand", 400, 4);
	model_rdma(t, "storage1", model_bridge(t, TOPO_UNKNOWN, 1), 1, "InfiniBand", 400, 4);
	struct topo_plan *p = plan_of(t);
	struct fb_strbuf b = {0};

	assert_int_equal(nic_of(p, "storage0")->role, TOPO_NIC_SPARE);
	assert_int_equal(nic_of(p, "storage1")->rail, TOPO_UNKNOWN);
	assert_int_equal(nic_of(p, "mlx5_7")->rail, 7);
	topo_plan_hca(t, p, &b);
	assert_string_equal(b.s, "=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7");
	fb_strbuf_free(&b);
	topo_plan_free(p);
	topo_free(t);
}

/** A device with two ports of which one is up is named with its port. */
static void test_hca_ports(void **state)
{
	struct topo *t = model_node(1, 1, 1);
	struct topo_rdma *r = &t->rdma[1];
	struct topo_rdma_port *port = model_grow((void **)&r->ports, &r->n_ports, sizeof(*port));
	struct fb_strbuf b = {0};

	*port = r->ports[0];
	port->num = 2;
	r->ports[0].state = 1;
	struct topo_plan *p = plan_of(t);

	topo_plan_hca(t, p, &b);
	assert_string_equal(b.s, "=mlx5_0,mlx5_1:2");
	fb_strbuf_free(&b);
	topo_plan_free(p);
	topo_free(t);
}

/** Grace: GPU and NIC meet at the CPU only, but C2C makes its own CPU's NIC the near one. */
static void test_c2c(void **state)
{
	struct topo *t = model_new();
	enum topo_nccl c[9 * 9];
	struct topo_dev *devs;
	size_t n;

	model_numa(t, "0-71");
	model_numa(t, "72-143");
	for (int i = 0; i < 4; i++) {
		model_gpu(t, model_bridge(t, TOPO_UNKNOWN, i / 2), i / 2);
		model_fast(t, TOPO_FAST_C2C, (size_t)i, SIZE_MAX, 1);
		t->fast[t->n_fast - 1].peer_class = 0;
	}
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "mlx5_%d", i);
		model_rdma(
			t, name, model_bridge(t, TOPO_UNKNOWN, i / 2), i / 2, "InfiniBand", 400, 4);
	}
	struct topo_plan *p = plan_of(t);

	for (size_t g = 0; g < 4; g++)
		assert_int_equal(p->gpus[g].nics[0], g);
	assert_false(noted(p, "no NIC on the switch"));
	topo_plan_free(p);
	assert_int_equal(topo_devices(t, &devs, &n), 0);
	assert_int_equal(topo_nccl_classes(t, devs, n, c), 0);
	assert_int_equal(c[0 * n + 4], TOPO_NCCL_P2C);
	assert_int_equal(c[0 * n + 6], TOPO_NCCL_SYS);
	assert_int_equal(c[0 * n + 1], TOPO_NCCL_C2C);
	assert_int_equal(c[0 * n + 2], TOPO_NCCL_SYS);
	free(devs);
	topo_free(t);
}

/* ---- matching -------------------------------------------------------------------------------- */

static int64_t brute(const int64_t *cost, size_t n_gpus, size_t n_nics, unsigned cap, int64_t load,
	size_t g, unsigned *used)
{
	int64_t best = INT64_MAX;

	if (g == n_gpus)
		return 0;
	for (size_t n = 0; n < n_nics; n++) {
		if (used[n] == cap)
			continue;
		int64_t here = cost[g * n_nics + n] + load * used[n];

		used[n]++;
		int64_t rest = brute(cost, n_gpus, n_nics, cap, load, g + 1, used);

		used[n]--;
		if (rest != INT64_MAX && here + rest < best)
			best = here + rest;
	}
	return best;
}

static void test_matching_is_least(void **state)
{
	uint32_t seed = 1;

	for (int round = 0; round < 300; round++) {
		int64_t cost[25], total = 0;
		bool pair[25];
		unsigned used[5] = {0}, taken[5] = {0};
		size_t n_gpus = 1 + (size_t)round % 5, n_nics = 1 + (size_t)round / 5 % 5;
		unsigned cap = (unsigned)((n_gpus + n_nics - 1) / n_nics);

		for (size_t i = 0; i < n_gpus * n_nics; i++) {
			seed = seed * 1664525u + 1013904223u;
			cost[i] = (seed >> 24) % 6 * 10;
		}
		assert_int_equal(topo_plan_match(cost, n_gpus, n_nics, 1, cap, 30, pair), 0);
		for (size_t g = 0; g < n_gpus; g++) {
			size_t found = 0;

			for (size_t n = 0; n < n_nics; n++)
				if (pair[g * n_nics + n]) {
					total += cost[g * n_nics + n] + 30 * taken[n]++;
					found++;
				}
			assert_int_equal(found, 1);
		}
		assert_int_equal(total, brute(cost, n_gpus, n_nics, cap, 30, 0, used));
	}
}

/** Equal costs: low GPU, low NIC; and enough for each when several are needed. */
static void test_matching_ties(void **state)
{
	int64_t cost[4 * 9] = {0};
	bool pair[4 * 9];

	assert_int_equal(topo_plan_match(cost, 4, 9, 2, 1, 30, pair), 0);
	for (size_t g = 0; g < 4; g++)
		for (size_t n = 0; n < 9; n++)
			assert_int_equal(pair[g * 9 + n], n / 2 == g);
	assert_int_equal(topo_plan_match(cost, 4, 2, 1, 2, 30, pair), 0);
	for (size_t g = 0; g < 4; g++)
		assert_true(pair[g * 2 + g / 2]);
}

/* ---- cores ----------------------------------------------------------------------------------- */

static hwloc_bitmap_t bits(const char *list)
{
	hwloc_bitmap_t b = hwloc_bitmap_alloc();

	assert_non_null(list);
	assert_int_equal(hwloc_bitmap_list_sscanf(b, list), 0);
	return b;
}

/** Shares are equal, disjoint, near, and leave the interrupt cores alone. */
static void test_cores_of_a_model(void **state)
{
	struct topo *t = model_node(2, 2, 1);
	struct topo_plan *p = plan_of(t);
	hwloc_bitmap_t all = hwloc_bitmap_alloc();

	assert_int_equal(p->n_gpus, 8);
	assert_int_equal(p->n_irq, 2);
	for (size_t i = 0; i < p->n_irq; i++) {
		hwloc_bitmap_t b = bits(p->irq[i].cpus);

		/* 32 pairs of threads, 4 GPUs, 2 NICs: 30 do not divide, 28 do. */
		assert_int_equal(hwloc_bitmap_weight(b), 8);
		assert_int_equal(p->irq[i].n_nics, 2);
		hwloc_bitmap_or(all, all, b);
		hwloc_bitmap_free(b);
	}
	for (size_t g = 0; g < 8; g++) {
		hwloc_bitmap_t b = bits(p->gpus[g].cpus), near = bits(t->numa[g / 4].cpus);

		assert_int_equal(hwloc_bitmap_weight(b), 14);
		assert_false(hwloc_bitmap_intersects(all, b));
		assert_true(hwloc_bitmap_isincluded(b, near));
		hwloc_bitmap_or(all, all, b);
		/* Whole cores: the thread 64 higher goes along. */
		for (int c = hwloc_bitmap_first(b); c >= 0 && c < 64; c = hwloc_bitmap_next(b, c))
			assert_true(hwloc_bitmap_isset(b, (unsigned)c + 64));
		assert_int_equal(p->gpus[g].n_cores, 0);
		assert_null(p->gpus[g].cores);
		hwloc_bitmap_free(b);
		hwloc_bitmap_free(near);
	}
	assert_int_equal(hwloc_bitmap_weight(all), 128);
	assert_true(noted(p, "not recorded"));
	hwloc_bitmap_free(all);
	topo_plan_free(p);
	topo_free(t);
}

/** A file that gives all NUMA nodes one mask is not believed. */
static void test_masks_of_all_nodes(void **state)
{
	struct topo *t = nccl("azure-ndv4-topo");
	struct topo_plan *p = plan_of(t);

	for (size_t g = 0; g < 8; g++)
		assert_null(p->gpus[g].cpus);
	assert_true(noted(p, "the same CPUs"));
	topo_plan_free(p);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded_machines),
		cmocka_unit_test(test_shared_nics),
		cmocka_unit_test(test_several_nics_each),
		cmocka_unit_test(test_dgx_a100),
		cmocka_unit_test(test_gpus_without_local_nic),
		cmocka_unit_test(test_levante_text),
		cmocka_unit_test(test_guest_is_not_guessed),
		cmocka_unit_test(test_guest_that_tells),
		cmocka_unit_test(test_emulated_bridges),
		cmocka_unit_test(test_exclusions),
		cmocka_unit_test(test_bonds_and_slow_siblings),
		cmocka_unit_test(test_spare_nics),
		cmocka_unit_test(test_hca_ports),
		cmocka_unit_test(test_c2c),
		cmocka_unit_test(test_matching_is_least),
		cmocka_unit_test(test_matching_ties),
		cmocka_unit_test(test_cores_of_a_model),
		cmocka_unit_test(test_masks_of_all_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
