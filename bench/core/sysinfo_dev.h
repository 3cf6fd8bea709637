/* SPDX-License-Identifier: Apache-2.0 */
/* The device part of a host's facts: see sysinfo_dev.c. Each returns a new array, empty when there
 * is nothing or it is not visible from here. */
#ifndef FB_CORE_SYSINFO_DEV_H
#define FB_CORE_SYSINFO_DEV_H

#include <jansson.h>

#include "bench/core/sysroot.h"

/** [{name, fw, board, driver, bdf, numa, guid, netdevs[], ports[{port, state, link_layer, rate}]}]
 */
json_t *fb_sysinfo_rdma(const struct fb_sysroot *r);
/** Network interfaces with a device behind them: [{name, driver, bdf, numa, mac, mtu, state,
 * speed_mbps}] */
json_t *fb_sysinfo_nics(const struct fb_sysroot *r);
/** PCI functions of class 0x03xx (display, 3D) and 0x1200 (accelerator): [{bdf, vendor, vendor_id,
 * device_id, driver, numa}] */
json_t *fb_sysinfo_gpus(const struct fb_sysroot *r);

#endif
