// SPDX-License-Identifier: Apache-2.0
/* What a client or a peer sends over the control channel, as any text: parameters and descriptions
 * must be refused or usable, and what was accepted must survive its own wire form. */
#include <stdint.h>
#include <stdlib.h>

#include "bench/core/json.h"
#include "verbs/addr.h"
#include "verbs/params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_params(const json_t *j)
{
	struct fb_err e = {0};
	struct verbs_params p, again;
	json_t *k;

	if (verbs_params_from_json(&p, j, &e) != 0)
		return;
	k = verbs_params_to_json(&p);
	if (k && verbs_params_from_json(&again, k, &e) != 0)
		abort();
	json_decref(k);
}

static void try_end(const json_t *j)
{
	struct fb_err e = {0};
	struct verbs_end x, again;
	struct verbs_path_want want = {.hop_limit = 64};
	struct ibv_ah_attr ah;
	json_t *k;

	if (verbs_end_from_json(&x, j, &e) != 0)
		return;
	k = verbs_end_to_json(&x);
	if (k && verbs_end_from_json(&again, k, &e) != 0)
		abort();
	if (verbs_ends_fit(&x, &again, 0, &e) > 0)
		(void)!verbs_path(&x, &again, &want, &ah, &e);
	json_decref(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *j = fb_json_parse((const char *)data, size, "fuzz", NULL);

	if (j) {
		try_params(j);
		try_end(j);
		json_decref(j);
	}
	return 0;
}
