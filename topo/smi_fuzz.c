// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: any bytes as nvidia-smi's matrix. What is read must be a whole matrix. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topo/smi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fb_err e = {0};
	struct topo *t = NULL;
	struct topo_dev *devs;
	size_t n;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (topo_parse_smi(text, size, "fuzz.txt", &t, &e) != 0) {
		if (t || e.code == 0 || e.msg[0] == '\0')
			abort();
		free(text);
		return 0;
	}
	if (t->n_given != t->n_gpus + t->n_rdma || t->n_given == 0)
		abort();
	if (topo_devices(t, &devs, &n) == 0) {
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < n; k++)
				if ((topo_path(t, &devs[i], &devs[k]) == TOPO_PATH_SELF) !=
					(i == k))
					abort();
		free(devs);
	}
	topo_free(t);
	free(text);
	return 0;
}
