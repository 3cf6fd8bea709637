// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: any bytes as a file of claims. What is judged must have a verdict with its reason
 * and a JSON form; what is refused must say why. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/predict/claims_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct claims *c = NULL;
	struct fb_err e = {0};
	if (claims_judge((const char *)data, size, "fuzz.csv", &c, &e) != 0) {
		if (e.code == 0 || e.msg[0] == '\0' || e.exit != FB_EXIT_USAGE)
			abort();
		return 0;
	}
	for (size_t i = 0; i < claims_bad(c); i++)
		if (claims_error(c, i)->msg[0] == '\0' || claims_error(c, i)->hint[0] == '\0')
			abort();
	json_t *list = claims_json(c), *one;
	size_t i;
	if (json_array_size(list) != c->n)
		abort();
	json_array_foreach (list, i, one) {
		double f = fb_json_num(one, "factor_pct", 0);
		if (!*fb_json_str(one, "id", "") || strlen(fb_json_str(one, "why", "")) < 8 ||
			!isfinite(f) || f < 0)
			abort();
	}
	json_decref(list);
	claims_free(c);
	return 0;
}
