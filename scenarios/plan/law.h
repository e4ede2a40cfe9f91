/* SPDX-License-Identifier: Apache-2.0
 *
 * law.h - the loss of a run without its arithmetic: a law of few parameters, fitted to runs whose arithmetic was
 * done (`skep fit`), kept in a file, and asked by the simulator (`arithmetic: law`).
 *
 *     L(D, H, M, s) = min (L0, E + A ((D' + D0) / (D1 + D0))^-alpha),      D' = D / (H^gamma  M^(mu ln H)  (1 + s)^delta)
 *
 *   L      mean loss of a microbatch: nats per token of a text, the unit of the squared error of `quadratic`
 *   D      tokens trained on before the parameters that it is computed with; of models without sequences samples
 *   H      inner steps between two outer ones; 1: every step is synchronous
 *   M      replicas: workers that take part in the reduction of a stage, of the stage that has most
 *   s      staleness: steps that the parameters lacked on which the gradients were computed
 *   E      what no training takes away, and A: how far above it a synchronous run is after D1 tokens. D1 is no parameter:
 *          the most tokens of the runs that were fitted, so that A is what the points lie near
 *   D0     tokens that pass before the fall is a power law
 *   L0     the first loss, which L never exceeds: how training begins is not in the law
 *
 * Sources. A constant and a power of the data seen: Hoffmann et al. 2022, arXiv 2203.15556, eq. 2, at one size of
 * the model. Powers of M and of H: Charles et al. 2025, arXiv 2503.09799, fit the loss of DiLoCo by a power of the
 * number of replicas for a fixed H; Douillard et al. 2023, arXiv 2311.08105, measured that it rises slowly with H.
 * Here both are a factor on the data instead of on the loss, which far from the start is the same with exponents
 * alpha times as large, and leaves the first loss alone, as it must. The exponent of M has ln H in it because with
 * H = 1 replicas change nothing: a synchronous step is the same on any number of workers. Staleness as a factor on
 * the steps that are needed: Stich and Karimireddy 2020, arXiv 1909.05350, bound delayed SGD so.
 *
 * Or one that others have published, as a sum of powers (`law: powers`), each term with the exponents that it is given:
 *
 *     L = min (L0, E + sum over i of F_i N^a_i D^b_i H^c_i M^d_i B^e_i),    N: parameters of the model, B: tokens of a step
 *
 * Kept true: a parameter that the runs could not tell is 0 and says why; what is asked of the law outside the
 * conditions that it was fitted in is answered and reported, never silently.
 */
#pragma once

#include <stdio.h>

#include "base/reader.h"

enum skep_law_parameter {
	SKEP_LAW_FLOOR,     /* E, the unit of the loss */
	SKEP_LAW_AMPLITUDE, /* A, the unit of the loss */
	SKEP_LAW_EXPONENT,  /* alpha */
	SKEP_LAW_ONSET,     /* D0, tokens */
	SKEP_LAW_PERIOD,    /* gamma */
	SKEP_LAW_REPLICAS,  /* mu */
	SKEP_LAW_STALENESS, /* delta */
	SKEP_LAW_PARAMETERS
};

/* What a loss depends on. The batch is not in the formula, but a law is only as good as the batch that it was fitted with. */
enum skep_law_axis {
	SKEP_LAW_TOKENS,  /* D */
	SKEP_LAW_EVERY,   /* H */
	SKEP_LAW_MEMBERS, /* M */
	SKEP_LAW_STALE,   /* s */
	SKEP_LAW_BATCH,   /* tokens of a step */
	SKEP_LAW_AXES
};

#define SKEP_LAW_TERMS_MAX 8u

struct skep_law_term { /* a product of powers */
	double factor, power[SKEP_LAW_AXES];
	double size_power; /* of the model's parameters */
};

struct skep_law {
	char path[512];
	char model[64];   /* whose loss it is */
	char source[256]; /* of `powers`: who published it; "" */
	double reference; /* D1, tokens */
	double first;     /* L0, the unit of the loss: that of the parameters that training begins with */
	double value[SKEP_LAW_PARAMETERS];
	double error[SKEP_LAW_PARAMETERS];                /* one standard error; NAN: the parameter is fixed ... */
	char fixed[SKEP_LAW_PARAMETERS][64];              /* ... because of this; "": it was fitted */
	double least[SKEP_LAW_AXES], most[SKEP_LAW_AXES]; /* that it was fitted in */
	uint32_t
		terms; /* more than 0: `powers`; of the parameters above only E is asked, and the model by its size alone */
	struct skep_law_term term[SKEP_LAW_TERMS_MAX];
	double size;                  /* parameters of the model that it is asked about ... */
	double size_least, size_most; /* ... and of those that it is of */
	double misfit;                /* root mean square of (loss of the runs - law) / law */
};

/* `at` is [SKEP_LAW_AXES]; at the batch laws of powers alone look. */
double skep_law_loss(const struct skep_law *law, const double *at);

/* Is it outside of what the law was fitted in? Then says how, as "1.2e+06 tokens (fitted: 0 to 5e+05); H = 8 (fitted: 1)". */
bool skep_law_leaves(const struct skep_law *law, const char *model, const double *at, char *ret, size_t size);

/* The same of one quantity, and of the model: its size where the law has powers of it, else its name. */
bool skep_law_leaves_axis(const struct skep_law *law, enum skep_law_axis axis, double value);
bool skep_law_leaves_model(const struct skep_law *law, const char *model);

const char *skep_law_name(enum skep_law_parameter parameter); /* as in the file: E, A, alpha, D0, gamma, mu, delta */

bool skep_law_read(const char *path, struct skep_law *ret, struct skep_diag *reterr);
void skep_law_write(const struct skep_law *law, FILE *out); /* what skep_law_read() reads; not of `powers` */
