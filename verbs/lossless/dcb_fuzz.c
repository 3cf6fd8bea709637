// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the kernel's DCB answer: no fact is left unread, no table overrun. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/lossless/dcb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dcb_facts d;
	memset(&d, 0, sizeof(d));
	dcb_parse(data, size, false, &d);
	if (d.ieee.state == FACT_UNREAD || d.pfc_f.state == FACT_UNREAD)
		abort();
	if (d.apps > DCB_MAX_APP || d.peer_apps > DCB_MAX_APP || d.trusts > 8)
		abort();
	return 0;
}
