/* SPDX-License-Identifier: Apache-2.0
 *
 * sites.h - the sites of a question and what joins them: measured between regions of clouds, published for homes, given by the
 * user, or assumed.
 */
#pragma once

#include "asking/question.h"

struct skep_ask_place {                  /* for errors: what stands where in an option */
	const char *option, *whole, *at; /* whole: as the user wrote it; at: this part of it */
	const char *name;                /* of a site */
};

/* What is wrong from `at` on. Returns false, for `return skep_ask_wrong(...)`. */
bool skep_ask_wrong(const struct skep_ask_place *place, const char *at, struct skep_diag *reterr, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* The site of that name, which is added if it is not there. */
bool skep_ask_site_find(struct skep_ask_question *question, const struct skep_ask_place *place, uint32_t *ret_site,
	struct skep_diag *reterr);

/* When all sites are there: --line, --site, --link and --what-if, and what is between the others. */
bool skep_ask_sites_join(struct skep_ask_question *question, struct skep_diag *reterr);
