// SPDX-License-Identifier: Apache-2.0
/*
 * The table of completion statuses. Meanings: ibv_poll_cq(3) and IBTA vol. 1, 11.6.2; the causes
 * are what these statuses turn out to be on RoCE and InfiniBand fabrics.
 */
#include "verbs/wc.h"

#include <errno.h>

#define ROW(s, c, n)                            \
	{                                       \
		s, #s, c, n, FB_EXIT_UNMEASURED \
	}

static const struct verbs_wc_info table[] = {
	ROW(IBV_WC_SUCCESS, "none: the operation succeeded", "nothing"),
	ROW(IBV_WC_LOC_LEN_ERR,
		"a message longer than the posted receive, or longer than the port allows (max_msg_sz)",
		"compare --size and the transport's limits at both ends"),
	ROW(IBV_WC_LOC_QP_OP_ERR,
		"the local QP could not process the request: the own link is down, or the device refused "
		"the request",
		"ip link show and ibv_devinfo -v on this host: is the port ACTIVE?"),
	ROW(IBV_WC_LOC_EEC_OP_ERR, "the local end-to-end context failed (RD transport)",
		"dmesg of this host"),
	ROW(IBV_WC_LOC_PROT_ERR,
		"the local memory key does not cover the buffer or lacks local write",
		"a fault of this program or of its plug-in's memory: report it with the size used"),
	ROW(IBV_WC_WR_FLUSH_ERR,
		"the QP had already failed; an earlier completion, or the peer's, holds the cause",
		"look for the first error at either end"),
	ROW(IBV_WC_MW_BIND_ERR, "a memory window could not be bound", "dmesg of this host"),
	ROW(IBV_WC_BAD_RESP_ERR,
		"the answer had an unexpected opcode: packets of another QP or a stale connection",
		"repeat; when it persists compare firmware of both NICs (ethtool -i)"),
	ROW(IBV_WC_LOC_ACCESS_ERR, "a remote write into local memory without the right for it",
		"a fault of this program: report it with the operation used"),
	ROW(IBV_WC_REM_INV_REQ_ERR,
		"the peer found the request invalid: longer than its receive, an operation its QP does not "
		"allow, or too many reads outstanding",
		"compare --size, --op and max_qp_rd_atom (ibv_devinfo -v) at both ends"),
	ROW(IBV_WC_REM_ACCESS_ERR,
		"the peer's memory does not allow it: wrong key, address out of range, missing permission, "
		"or the peer has already released it",
		"is the server still the one that was connected to? look at its log"),
	ROW(IBV_WC_REM_OP_ERR, "the peer could not complete the request for a reason of its own",
		"dmesg and the server's log on the peer"),
	ROW(IBV_WC_RETRY_EXC_ERR,
		"no answer from the peer after all retries: it is gone, its link is down, UDP port 4791 or "
		"the GID is not routed, the MTU of the path is too small, or the GID types differ",
		"ping the peer's GID address from this netdev, with ping -M do -s 4200 for the MTU; then "
		"show_gids or ibv_devinfo -v on both"),
	ROW(IBV_WC_RNR_RETRY_EXC_ERR,
		"the peer had no receive posted for longer than the retries allow: it is overloaded, "
		"stopped or swapping",
		"load of the peer (top); give --rnr-retry 7 to wait for ever"),
	ROW(IBV_WC_LOC_RDD_VIOL_ERR, "reliable datagram domains differ (RD transport)",
		"dmesg of this host"),
	ROW(IBV_WC_REM_INV_RD_REQ_ERR, "invalid reliable datagram request (RD transport)",
		"dmesg of the peer"),
	ROW(IBV_WC_REM_ABORT_ERR, "the peer aborted the operation", "dmesg of the peer"),
	ROW(IBV_WC_INV_EECN_ERR, "invalid end-to-end context number (RD transport)",
		"dmesg of this host"),
	ROW(IBV_WC_INV_EEC_STATE_ERR, "invalid end-to-end context state (RD transport)",
		"dmesg of this host"),
	ROW(IBV_WC_FATAL_ERR, "the device reported a fatal error",
		"dmesg of this host: device reset, PCIe error, firmware assert"),
	ROW(IBV_WC_RESP_TIMEOUT_ERR, "the device did not answer in time", "dmesg of this host"),
	ROW(IBV_WC_GENERAL_ERR, "an error the device does not explain further",
		"dmesg of this host"),
	ROW(IBV_WC_TM_ERR, "tag matching failed", "not used here: report it"),
	ROW(IBV_WC_TM_RNDV_INCOMPLETE, "a tag-matching rendezvous stayed incomplete",
		"not used here: report it"),
};

static const struct verbs_wc_info unknown = {IBV_WC_GENERAL_ERR, "unknown status",
	"a status newer than this program",
	"dmesg of this host; the vendor's manual for the vendor code", FB_EXIT_UNMEASURED};

const struct verbs_wc_info *verbs_wc_lookup(enum ibv_wc_status status)
{
	for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++)
		if (table[i].status == status)
			return &table[i];
	return &unknown;
}

/*
 * mlx5 copies the last byte of its error CQE into vendor_err (libmlx5: vendor_err_synd). NVIDIA
 * documents none of these; each row is a pair that public reports of failed runs show, with what
 * those runs turned out to suffer from: 12/0x81 NCCL #1405 and #1698, UCX #5732; 4/0x51 NCCL #928,
 * perftest #173; 4/0x52 FD.io CSIT-1906; 5/0xf9 NCCL #1353; 9/0x8a charm++ #2532, NCCL #1710;
 * 10/0x88 NVIDIA's forum, 207715. Where a code is not here, the status alone speaks.
 */
static const struct {
	enum ibv_wc_status status;
	uint32_t code;
	const char *text;
	const char *next;
} vendor[] = {
	{IBV_WC_RETRY_EXC_ERR, 0x81,
		"no acknowledgement came at all, which points to the path (GID type, route, ACL on UDP port "
		"4791, a lossless class that is paused for ever) and not to the peer's memory",
		"then `fabricbench check` on both hosts for PFC, DSCP and MTU along the path"},
	{IBV_WC_WR_FLUSH_ERR, 0xf9, "flushed because the queue pair had failed before", NULL},
	{IBV_WC_LOC_PROT_ERR, 0x51,
		"the NIC could not reach the local buffer over PCIe; with GPU memory this is mostly ACS or an "
		"IOMMU between GPU and NIC",
		"repeat with host memory; lspci -vvv | grep ACSCtl shows ACS"},
	{IBV_WC_LOC_PROT_ERR, 0x52,
		"the local key or the range of the local buffer was refused by the NIC", NULL},
	{IBV_WC_REM_INV_REQ_ERR, 0x8a,
		"the peer's NIC refused the request itself: too long for its receive, or its queue pair "
		"was set up otherwise than ours",
		NULL},
	{IBV_WC_REM_ACCESS_ERR, 0x88, "the peer's NIC refused the remote key or address", NULL},
};

const char *verbs_wc_vendor(enum ibv_wc_status status, uint32_t code, const char **next)
{
	for (unsigned i = 0; i < sizeof vendor / sizeof vendor[0]; i++) {
		if (vendor[i].status == status && vendor[i].code == code) {
			*next = vendor[i].next;
			return vendor[i].text;
		}
	}
	*next = NULL;
	return NULL;
}

int verbs_wc_fail(struct fb_err *e, const struct ibv_wc *wc, const char *what)
{
	const struct verbs_wc_info *info = verbs_wc_lookup(wc->status);
	int code = wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RNR_RETRY_EXC_ERR
			   ? ETIMEDOUT
			   : EIO;
	const char *vendor_text, *vendor_next;

	vendor_text = verbs_wc_vendor(wc->status, wc->vendor_err, &vendor_next);
	fb_fail(e, info->exit, code, "%s failed: %s (status %d, vendor code 0x%x): %s%s%s", what,
		info->name, (int)wc->status, wc->vendor_err, info->causes,
		vendor_text ? "; on mlx5 that vendor code says: " : "",
		vendor_text ? vendor_text : "");
	fb_hint(e, "%s%s%s", info->next, vendor_next ? "; " : "", vendor_next ? vendor_next : "");
	return -code;
}
