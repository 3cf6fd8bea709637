/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of nvidia-smi's matrix, for its reader.
 */
#ifndef TOPO_SMI_WORDS_H
#define TOPO_SMI_WORDS_H

#include "topo/smi.h"

enum smi_column { SMI_CPUS, SMI_NUMA, SMI_GPU_NUMA, SMI_COLUMNS };

/** Behind the blanks at `s`. */
const char *smi_blanks(const char *s);
/** Take a terminal's commands and CRs out of a line; odd blanks and a table's rules become blanks.
 */
void smi_plain(char *line);
/** Length of `stem` and the number behind it, "GPU10"; 0: not at `s`. */
size_t smi_digits_after(const char *s, const char *stem);
/** Length of one device's name at `s`: names may be stuck together where tabs were lost. */
size_t smi_name_len(const char *s);
/** @param links receives the count of NV. @return the path word's length, 0 when it is none */
size_t smi_path_word(const char *s, enum topo_path *path, unsigned *links);
/** Length of a column's title at `s`, whatever blanks are in it; 0: none. */
size_t smi_title_len(const char *s, enum smi_column *column);
/** Does `s` hold the names of devices and titles of columns, some known, and nothing else? */
bool smi_are_names(const char *s);

#endif
