/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_page.h - the sections of a report of many runs. Private to analysis/report/.
 */
#pragma once

#include "analysis/report/page.h"
#include "analysis/summary/sweep_table.h"

#define SKEP_REPORT_MANY_MAX 256u

/* A row for each choice of values, over its seeds. */
bool skep_page_sweep(struct skep_page *page, const struct skep_sweep_table *table, const int64_t *run, uint32_t runs);

/* A row for each run, with the settings in which it differs from the first. */
bool skep_page_many(struct skep_page *page, const int64_t *run, uint32_t runs);
