/* SPDX-License-Identifier: Apache-2.0
 *
 * question.h - what `skep ask` was asked, taken apart: which machines are where, what joins them, what they cost, which model,
 * how many tokens.
 *
 *     --gpus GROUP,GROUP ...      GROUP: COUNTxGPU[:SPEED][@SITE], as 8xl4@us-central1 or 1xl4:0.5
 *     --site NAME=RATE[,TIME]     the network inside a site; a name that is no region of a cloud and no home needs it
 *     --link A:B=RATE[,TIME]      the line between two sites, which all of their machines share; TIME is one way
 *     --line RATE[,RATE]          down and up of each machine at home
 *     --price GPU[@SITE]=PRICE    of one machine
 *     --model                     a name, a number of parameters, config.json, or a model file
 *
 * A site is one of three kinds: a region of a cloud, as `us-central1` or `gcp:us-central1`, whose links to other regions were
 * measured (topologies/regions/cloud-links.csv); `home` or `home-REGION`, machines behind lines of their own
 * (topologies/regions/home-2019.csv); or a name of the user's, whose network the user says. What nothing says is assumed, and the
 * question keeps a note of each assumption for the page.
 */
#pragma once

#include "base/diag.h"

#define SKEP_ASK_GROUPS_MAX 16u
#define SKEP_ASK_SITES_MAX 8u
#define SKEP_ASK_GIVEN_MAX 32u
#define SKEP_ASK_NOTES_MAX 24u
#define SKEP_ASK_MACHINES_MAX 512u
#define SKEP_ASK_HERE "here" /* the site of machines of which no site is said */

enum skep_ask_objective { SKEP_ASK_TIME, SKEP_ASK_MONEY };

struct skep_ask_request { /* as the command line has it; texts are the caller's */
	const char *gpus, *model, *tokens, *batch, *line;
	const char *link[SKEP_ASK_GIVEN_MAX], *site[SKEP_ASK_GIVEN_MAX], *price[SKEP_ASK_GIVEN_MAX],
		*what_if[SKEP_ASK_GIVEN_MAX], *pipeline;
	uint32_t links, sites, prices, what_ifs;
	uint32_t stages, every; /* 0: free */
	bool spot;
	const char *trace; /* a recording of losses; NULL: that of the provider */
	int objective;     /* enum skep_ask_objective */
	uint64_t seed;
	uint32_t combinations; /* of settings, that the planner looks at */
	const char *folder;    /* NULL: named after the model */
	bool force;            /* the folder's files may be replaced whatever has written them */
	uint32_t processes;
	bool json, quiet;
};

enum skep_ask_kind { SKEP_ASK_CLOUD, SKEP_ASK_HOME, SKEP_ASK_OWN };

struct skep_ask_site {
	char name[32];   /* in the topology */
	char where[40];  /* "at us-central1", or "here" */
	char region[40]; /* "gcp:us-central1", or a region of the home table */
	enum skep_ask_kind kind;
	double inside_Bps, inside_s;
	double up_Bps, down_Bps; /* of each machine; INFINITY: not limited */
};

struct skep_ask_group {
	uint32_t count, site;
	char gpu[32];    /* the profile in the topology */
	char base[32];   /* the profile that it is made from */
	double speed;    /* times that */
	double price[2]; /* of one machine, on demand and spot, USD per hour; NAN: not known */
	bool attached;   /* without processor and memory */
};

struct skep_ask_link { /* an ordered pair of sites */
	double Bps, latency_s;
	double usd_per_byte; /* that its sender pays; NAN: not known */
	bool shared, known, assumed;
};

struct skep_ask_change {       /* of --what-if */
	uint32_t from, to;     /* the same: inside of the site */
	double Bps, latency_s; /* NAN: as it is */
	const char *text;
};

struct skep_ask_question {
	const struct skep_ask_request *request;
	struct skep_ask_group group[SKEP_ASK_GROUPS_MAX];
	struct skep_ask_site site[SKEP_ASK_SITES_MAX];
	struct skep_ask_link link[SKEP_ASK_SITES_MAX][SKEP_ASK_SITES_MAX];
	struct skep_ask_change change[SKEP_ASK_GIVEN_MAX];
	uint32_t groups, sites, machines, changes;
	double window_bytes; /* of a connection */
	uint32_t streams;    /* connections of a pair of machines */
	double tokens;       /* 0: not said */
	double batch_tokens; /* of a step; 0: not said */
	char note[SKEP_ASK_NOTES_MAX][240];
	uint32_t notes;
};

/* Whether the provider of the regions whose losses were recorded is Google Cloud: the recording is then of its machines. */
bool skep_ask_is_gcp(const struct skep_ask_question *question);

/* Everything but the model. `from` is where the topology will be written: GPU profiles are looked for from there. */
bool skep_ask_read(const struct skep_ask_request *request, const char *from, struct skep_ask_question *ret,
	struct skep_diag *reterr);

/* An assumption, for the page; beyond SKEP_ASK_NOTES_MAX none is kept. */
void skep_ask_note(struct skep_ask_question *question, const char *format, ...) __attribute__((format(printf, 2, 3)));
