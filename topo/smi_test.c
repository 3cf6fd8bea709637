// SPDX-License-Identifier: Apache-2.0
/*
 * nvidia-smi's matrix in the shapes it comes in. The matrices are re-typed from the forms that the
 * drivers print, without any host's name; a real one is in manifest_test.c.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "topo/smi.h"

static struct topo *parse(const char *text)
{
	struct topo *t = NULL;
	struct fb_err e = {0};

	if (topo_parse_smi(text, strlen(text), "matrix.txt", &t, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(t->source, TOPO_FROM_SMI);
	assert_int_equal(t->n_given, t->n_gpus + t->n_rdma);
	return t;
}

static void refused(const char *text, int rc, const char *why)
{
	struct topo *t = NULL;
	struct fb_err e = {0};
	int got = topo_parse_smi(text, strlen(text), "matrix.txt", &t, &e);

	if (got != rc || e.exit != FB_EXIT_USAGE || !strstr(e.msg, why))
		fail_msg("%d, exit %d, %s instead of %d, %s", got, e.exit, e.msg, rc, why);
	assert_null(t);
	assert_memory_equal(e.msg, "matrix.txt:", 11);
}

static void path_is(const struct topo *t, const char *a, const char *b, const char *want)
{
	struct topo_dev *devs, *x = NULL, *y = NULL;
	char got[16];
	size_t n;

	assert_int_equal(topo_devices(t, &devs, &n), 0);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(devs[i].name, a) == 0)
			x = &devs[i];
		if (strcmp(devs[i].name, b) == 0)
			y = &devs[i];
	}
	assert_non_null(x);
	assert_non_null(y);
	enum topo_path p = topo_path(t, x, y);

	snprintf(got, sizeof(got), "%s", topo_path_name(p));
	if (p == TOPO_PATH_NV)
		snprintf(got, sizeof(got), "NV%u", topo_fast_links(t, x->index, y->index));
	assert_string_equal(got, want);
	free(devs);
}

/* ---- forms ----------------------------------------------------------------------------------- */

/** Driver 535 and later: underlined header, NIC legend, GPU NUMA ID behind two tabs. */
static void test_new_form(void **state)
{
	static const char text[] =
		"$ nvidia-smi topo -m\n"
		"\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA "
		"ID\x1b[0m\r\n"
		"GPU0\t X \tNV18\tPIX\tNODE\tSYS\t0-55,112-167\t0\t\tN/A\r\n"
		"GPU1\tNV18\t X \tSYS\tSYS\tPXB\t56-111,168-223\t1\t\tN/A\r\n"
		"NIC0\tPIX\tSYS\t X \tNODE\tSYS\t\t\t\t\r\n"
		"NIC1\tNODE\tSYS\tNODE\t X \tSYS\t\t\t\t\r\n"
		"NIC2\tSYS\tPXB\tSYS\tSYS\t X \t\t\t\t\r\n"
		"\r\n"
		"Legend:\r\n\r\n"
		"  X    = Self\r\n"
		"  NV#  = Connection traversing a bonded set of # NVLinks\r\n\r\n"
		"NIC Legend:\r\n\r\n"
		"  NIC0: mlx5_0\r\n"
		"  NIC1: mlx5_bond_0\r\n"
		"  NIC2: mlx5_4\r\n";
	struct topo *t = parse(text);

	assert_int_equal(t->n_gpus, 2);
	assert_int_equal(t->n_rdma, 3);
	path_is(t, "GPU0", "GPU1", "NV18");
	path_is(t, "GPU0", "mlx5_0", "PIX");
	path_is(t, "mlx5_bond_0", "GPU0", "NODE");
	path_is(t, "GPU1", "mlx5_4", "PXB");
	path_is(t, "mlx5_4", "mlx5_0", "SYS");
	assert_int_equal(t->pci[t->gpus[1].pci].numa, 1);
	assert_string_equal(t->pci[t->gpus[1].pci].cpus, "56-111,168-223");
	assert_string_equal(t->pci[t->gpus[1].pci].bdf, "");
	assert_int_equal(t->n_warnings, 0);
	topo_free(t);
}

/** Driver 352: SOC, devices by name, one affinity; and the blanks of a paste for its tabs. */
static void test_old_form_without_tabs(void **state)
{
	struct topo *t = parse("        [4mGPU0   GPU1   mlx4_0   CPU Affinity[0m\n"
			       "GPU0     X     SOC    PHB      0-7,16-23\n"
			       "GPU1    SOC     X     SOC      8-15,24-31\n"
			       "mlx4_0  PHB    SOC     X\n");

	path_is(t, "GPU0", "GPU1", "SYS");
	path_is(t, "GPU0", "mlx4_0", "PHB");
	assert_string_equal(t->pci[t->gpus[0].pci].cpus, "0-7,16-23");
	assert_int_equal(t->pci[t->gpus[0].pci].numa, TOPO_UNKNOWN);
	topo_free(t);
}

/** Tabs that became nothing at all; ten devices and more. */
static void test_glued(void **state)
{
	struct topo *t = parse("GPU0GPU1GPU10mlx5_1CPU Affinity\n"
			       "GPU0 X NV12SYSPIX0-7\n"
			       "GPU1NV12 X SYSSYS0-7\n"
			       "GPU10SYSSYS X PXB\n"
			       "mlx5_1PIXSYSPXB X\n");

	assert_int_equal(t->n_gpus, 3);
	path_is(t, "GPU0", "GPU1", "NV12");
	path_is(t, "GPU10", "mlx5_1", "PXB");
	assert_string_equal(t->pci[t->gpus[0].pci].cpus, "0-7");
	topo_free(t);
	t = parse("GPU0GPU1CPU Affinity\nGPU0 X NV40-15\nGPU1NV4 X 16-31\n");
	path_is(t, "GPU0", "GPU1", "NV4");
	assert_string_equal(t->pci[t->gpus[0].pci].cpus, "0-15");
	topo_free(t);
}

/** A cgroup shows no CPUs, or few: an empty column keeps its place between tabs. */
static void test_affinities(void **state)
{
	struct topo *t = parse("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
			       "GPU0\t X \tNV4\t\t3\t\tN/A\n"
			       "GPU1\tNV4\t X \t1\t0-1\t\tN/A\n");

	assert_null(t->pci[t->gpus[0].pci].cpus);
	assert_int_equal(t->pci[t->gpus[0].pci].numa, 3);
	assert_string_equal(t->pci[t->gpus[1].pci].cpus, "1");
	/* Two nodes are no node. */
	assert_int_equal(t->pci[t->gpus[1].pci].numa, TOPO_UNKNOWN);
	topo_free(t);
	/* Without tabs one word in two columns may be either. */
	t = parse("GPU0 GPU1 CPU Affinity NUMA Affinity\n"
		  "GPU0 X NV4 3\n"
		  "GPU1 NV4 X 8-15 1\n");
	assert_null(t->pci[t->gpus[0].pci].cpus);
	assert_int_equal(t->pci[t->gpus[0].pci].numa, TOPO_UNKNOWN);
	assert_int_equal(t->pci[t->gpus[1].pci].numa, 1);
	topo_free(t);
	t = parse("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-15\t0\n");
	assert_int_equal(t->n_gpus, 1);
	assert_string_equal(t->pci[t->gpus[0].pci].cpus, "0-15");
	topo_free(t);
}

/** NICs before GPUs keep their paths; the model has GPUs first. */
static void test_order(void **state)
{
	struct topo *t = parse("GPU0 mlx5_0 GPU1\n"
			       "GPU0 X PIX SYS\n"
			       "mlx5_0 PIX X NODE\n"
			       "GPU1 SYS NODE X\n");

	path_is(t, "GPU0", "GPU1", "SYS");
	path_is(t, "GPU1", "mlx5_0", "NODE");
	path_is(t, "mlx5_0", "GPU0", "PIX");
	topo_free(t);
}

static bool warns(const struct topo *t, const char *what)
{
	for (size_t i = 0; i < t->n_warnings; i++)
		if (strstr(t->warnings[i], what))
			return true;
	return false;
}

static void test_warnings(void **state)
{
	struct topo *t = parse("GPU0 GPU1 NIC0\nGPU0 X NV4 PIX\nGPU1 NV4 X SYS\nNIC0 PXB SYS X\n");

	assert_true(warns(t, "not the same path"));
	assert_false(warns(t, "-mp"));
	topo_free(t);
	t = parse("GPU0 GPU1 NIC0\nGPU0 X SYS SYS\nGPU1 SYS X SYS\nNIC0 SYS SYS X\n");
	assert_true(warns(t, "virtual machine"));
	assert_true(warns(t, "-mp"));
	topo_free(t);
}

/* ---- pastes ---------------------------------------------------------------------------------- */

static void is_whole(const char *text)
{
	struct topo *t = parse(text);

	assert_int_equal(t->n_gpus, 2);
	assert_int_equal(t->n_rdma, 2);
	path_is(t, "GPU0", "GPU1", "NV18");
	path_is(t, "GPU0", "bnxt_re0", "PIX");
	path_is(t, "GPU1", "mlx5_4", "PXB");
	path_is(t, "bnxt_re0", "mlx5_4", "SYS");
	assert_int_equal(t->pci[t->gpus[1].pci].numa, 1);
	assert_string_equal(t->pci[t->gpus[1].pci].cpus, "56-111,168-223");
	topo_free(t);
}

/** Quoted in a mail, out of a log, from a terminal's or an editor's screen, as a table. */
static void test_pastes(void **state)
{
	is_whole("On Monday GPU1 was slow:\n"
		 "> > \tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
		 "> > GPU0\t X \tNV18\tPIX\tNODE\t0-55,112-167\t0\t\tN/A\n"
		 "> > GPU1\tNV18\t X \tSYS\tPXB\t56-111,168-223\t1\t\tN/A\n"
		 "> > NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t\n"
		 "> > NIC1\tNODE\tPXB\tSYS\t X \t\t\t\t\n> >\n"
		 "> > NIC Legend:\n> >\n> >   NIC0: bnxt_re0\n> >   NIC1: mlx5_4\n");
	is_whole("\xef\xbb\xbf\xc2\xa0 GPU0 GPU1 NIC0 NIC1 CPU Affinity\xc2\xa0NUMA Affinity\n"
		 "GPU0\xc2\xa0\xc2\xa0X NV18 PIX NODE 0-55,112-167 0\n"
		 "GPU1 NV18\xe2\x80\x8b X SYS PXB 56-111,168-223 1\n"
		 "NIC0 PIX SYS X SYS\nNIC1 NODE PXB SYS X\n"
		 "Legend:\nNIC0: bnxt_re0<br>\nNIC1: mlx5_4\n");
	is_whole("^[[4m\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity^[[0m\n"
		 "GPU0\t X \tNV18\tPIX\tNODE\t0-55,112-167\t0\x1b[K\n"
		 "GPU1\tNV18\t X \tSYS\tPXB\t56-111,168-223\t1\x1b(B\n"
		 "NIC0\tPIX\tSYS\t X \tSYS\nNIC1\tNODE\tPXB\tSYS\t X \n"
		 "Legend:\nNIC0: bnxt_re0\x1b[K\nNIC1: mlx5_4\n");
	is_whole("node17: | | GPU0 | GPU1 | bnxt_re0 | mlx5_4 | CPU Affinity | NUMA Affinity |\n"
		 "node17: |---|---|---|---|---|---|---|\n"
		 "node17: | GPU0 | X | NV18 | PIX | NODE | 0-55,112-167 | 0 |\n"
		 "node17: | GPU1 | NV18 | X | SYS | PXB | 56-111,168-223 | 1 |\n"
		 "node17: | bnxt_re0 | PIX | SYS | X | SYS | | |\n"
		 "node17: | mlx5_4 | NODE | PXB | SYS | X | | |\n");
}

/** Lines that a mail or a narrow window broke: header, paths and affinities go on below. */
static void test_wrapped(void **state)
{
	is_whole("        GPU0    GPU1    NIC0    NIC1    CPU\n"
		 "Affinity    NUMA Affinity   GPU NUMA ID\n"
		 "GPU0     X      NV18    PIX     NODE    0-55,112-167\n"
		 "0               N/A\n"
		 "GPU1    NV18     X      SYS\n"
		 "PXB    56-111,168-223    1               N/A\n"
		 "NIC0    PIX     SYS      X\nSYS\nNIC1    NODE\n   PXB     SYS      X\n"
		 "\nLegend:\n\n  X    = Self\n\nNIC Legend:\n  NIC0: bnxt_re0\n  NIC1: mlx5_4\n");
	is_whole(
		"GPU0 GPU1\nbnxt_re0 NIC1 CPU Affinity NUMA Affinity\n"
		"GPU0 X NV18 PIX NODE\n0-55,112-167 0\nGPU1 NV18 X SYS PXB\n56-111,168-223 1\n"
		"bnxt_re0 PIX SYS X SYS\nNIC1 NODE PXB SYS X\n2 nodes\nNIC Legend:\nNIC1: mlx5_4\n");
	/* In the middle of a word, with a line's end or with a line's blanks. */
	is_whole("GPU0 GPU1 bnxt_re0 mlx5_4 CPU Affi\nnity    NUMA Affinity\n"
		 "GPU0 X NV18 PIX NODE 0-55,112-\n167     0\n"
		 "GPU1 NV18 X SYS PXB 56-111,                                 168-223  1\n"
		 "bnxt_re0 PIX SYS X SYS\nmlx5_4 NODE PXB SYS X\n");
	struct topo *t = parse("GPU0 CPU Affinity NUMA Affinity\nGPU0 X 0-15,32-4 7 0\n");

	/* Three words in two columns: none is believed. */
	assert_null(t->pci[t->gpus[0].pci].cpus);
	assert_int_equal(t->pci[t->gpus[0].pci].numa, TOPO_UNKNOWN);
	topo_free(t);
	t = parse("GPU0 CPU Affinity NUMA\nGPU0 X 0-15 0\n");
	assert_string_equal(t->pci[t->gpus[0].pci].cpus, "0-15");
	topo_free(t);
	refused("GPU0 GPU1\nNIC0\nGPU0 X SYS\n\nPIX\n", -EINVAL, "matrix.txt:3: the row of GPU0");
	refused("GPU0 GPU1\nGPU0 X SYS PIX\nPIX GPU1\n", -EINVAL, "none for GPU1");
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_truncated(void **state)
{
	refused("GPU0 GPU1 NIC0\nGPU0 X SYS PIX\nGPU1 SYS X SYS\n", -EINVAL, "none for NIC0");
	refused("GPU0 GPU1 NIC0\nGPU0 X SYS\n", -EINVAL, "2 of 3 paths");
	refused("GPU0 GPU1\n", -EINVAL, "0 rows");
	refused("", -EINVAL, "no matrix");
}

static void test_wrong(void **state)
{
	refused("GPU0 GPU1\nGPU0 X BAR\n", -EINVAL, "\"BAR\"");
	refused("GPU0 GPU1\nGPU0 SYS X\n", -EINVAL, "X in another column");
	refused("GPU0 GPU1\nGPU0 X X\n", -EINVAL, "X in another column");
	refused("GPU0 GPU0\n", -EINVAL, "two columns");
	refused("GPU0\nGPU0 X\nGPU0 X\n", -EINVAL, "two rows");
	refused("GPU0\nGPU0 X\nGPU1 X\n", -EINVAL, "no column");
	char nul[] = "GPU0\nGPU0 X\nab";
	struct topo *t = NULL;
	struct fb_err e = {0};

	nul[12] = '\0';
	assert_int_equal(topo_parse_smi(nul, sizeof(nul) - 1, "matrix.txt", &t, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "NUL"));
}

static void test_other_texts(void **state)
{
	refused("======= ROCm System Management Interface =======\n", -ENOTSUP, "rocm-smi");
	refused("Weight between two GPUs\n GPU0 GPU1\nGPU0 0 15\n", -ENOTSUP, "rocm-smi");
	refused("ACCESS TABLE:\n", -ENOTSUP, "amd-smi");
	refused(" \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n", -ENOTSUP, "-p2p");
	refused("<system version=\"1\">\n", -EINVAL, "--nccl-xml");
	refused("GPU 0: NVIDIA H100 (UUID: x)\n", -EINVAL, "no matrix");
}

static void test_ten_thousand_devices(void **state)
{
	struct fb_strbuf b = {0};

	for (unsigned i = 0; i < 10000; i++)
		fb_strbuf_printf(&b, "GPU%u\n", i);
	for (char *s = b.s; *s; s++)
		if (*s == '\n')
			*s = ' ';
	struct topo *t = NULL;
	struct fb_err e = {0};

	assert_int_equal(topo_parse_smi(b.s, b.len, "matrix.txt", &t, &e), -EFBIG);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	/* The same below the bound of a line. */
	for (size_t i = 12000; i < b.len; i++)
		b.s[i] = i == 12000 ? '\n' : b.s[i];
	fb_err_clear(&e);
	assert_int_equal(topo_parse_smi(b.s, b.len, "matrix.txt", &t, &e), -EFBIG);
	assert_non_null(strstr(e.msg, "devices"));
	fb_strbuf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_form),
		cmocka_unit_test(test_old_form_without_tabs),
		cmocka_unit_test(test_glued),
		cmocka_unit_test(test_affinities),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_pastes),
		cmocka_unit_test(test_wrapped),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_other_texts),
		cmocka_unit_test(test_ten_thousand_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
