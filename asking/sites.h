/* SPDX-License-Identifier: Apache-2.0
 *
 * sites.h - the sites of a question and what joins them: measured between regions of clouds, published for homes, given by the
 * user, or assumed.
 */
#pragma once

#include "asking/question.h"

struct skep_ask_place { /* a site's name, and where it stands in an option, for errors */
	const char *option, *whole, *at, *name;
};

/* The site of that name, which is added if it is not there. */
bool skep_ask_site_find(struct skep_ask_question *question, const struct skep_ask_place *place, uint32_t *ret_site,
	struct skep_diag *reterr);

/* When all sites are there: --line, --site, --link and --what-if, and what is between the others. */
bool skep_ask_sites_join(struct skep_ask_question *question, struct skep_diag *reterr);
