// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: any bytes as an hwloc XML file. What is read must hold what the model promises. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topo/hwloc_xml.h"

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
	if (topo_parse_hwloc_xml(text, size, "fuzz.xml", &t, &e) != 0) {
		if (t || e.code == 0 || e.msg[0] == '\0')
			abort();
		free(text);
		return 0;
	}
	for (size_t i = 0; i < t->n_pci; i++) {
		unsigned depth = 0;

		for (int up = (int)i; up >= 0; up = t->pci[up].parent)
			if ((size_t)up >= t->n_pci || depth++ > 80)
				abort();
	}
	for (size_t i = 0; i < t->n_fast; i++)
		if (t->fast[i].gpu < 0 || (size_t)t->fast[i].gpu >= t->n_gpus ||
			t->fast[i].peer >= (int)t->n_gpus)
			abort();
	if (topo_devices(t, &devs, &n) == 0) {
		for (size_t i = 0; i < n && n <= 64; i++)
			for (size_t k = 0; k < n; k++) {
				(void)topo_path(t, &devs[i], &devs[k]);
				(void)topo_path_bandwidth(t, &devs[i], &devs[k]);
			}
		free(devs);
	}
	topo_free(t);
	free(text);
	return 0;
}
