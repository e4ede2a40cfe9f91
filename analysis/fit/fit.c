/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.c - fits a law of losses: see fit.h, and scenarios/plan/law.h for the law.
 *
 * GSL's trust region method minimises the sum of ((law - loss) / loss)^2, from several starts, as the surface has valleys; A,
 * alpha and D0 are searched by their logarithms, so that they stay above 0. Standard errors are those of Newey and West 1987
 * within each run: points of a run may differ in how noisy they are and follow each other. What all runs have in common (the
 * same data, a law that is a little wrong) no error tells.
 *
 * A parameter is left out when the runs do not vary what it is about, when they do not flatten (E) and when they do not tell how
 * they begin (D0).
 */
#include "analysis/fit/fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ITERATIONS_MAX 200
#define TOLERANCE 1e-9
#define LAGS 4u           /* of points in the errors */
#define SPARE_POINTS 4u   /* beyond the parameters, at least */
#define RCOND_LEAST 1e-10 /* of the Jacobian: below it two parameters do the same */
#define ONSET_ERROR 1.5   /* of ln D0: more says nothing */
#define WASTE_ERROR 3     /* of gamma, mu and delta: more says nothing */
#define ONSET_LEAST 1e-6  /* of D1: less is none */
#define EXPONENT_ERROR 0.7
#define MISFIT_MOST 0.5 /* more is no fit */

struct problem {
	const struct skep_loss_points *points;
	struct skep_law law; /* with what is fixed */
	int free[SKEP_LAW_PARAMETERS];
	size_t parameters; /* of them */
};

static bool logarithmic(int parameter)
{
	return parameter == SKEP_LAW_AMPLITUDE || parameter == SKEP_LAW_EXPONENT || parameter == SKEP_LAW_ONSET;
}

static void set_law(struct problem *p, const gsl_vector *x)
{
	for (size_t i = 0; i < p->parameters; i++) {
		double value = gsl_vector_get(x, i);
		p->law.value[p->free[i]] = logarithmic(p->free[i]) ? exp(value) : value;
	}
}

static int residuals(const gsl_vector *x, void *context, gsl_vector *ret)
{
	struct problem *p = context;
	set_law(p, x);
	for (uint32_t i = 0; i < p->points->count; i++) {
		const struct skep_loss_point *point = &p->points->point[i];
		double residual = skep_law_loss(&p->law, point->at) / point->loss - 1;
		if (!isfinite(residual))
			return GSL_EBADFUNC;
		gsl_vector_set(ret, i, residual);
	}
	return GSL_SUCCESS;
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

/* Adds to S the products of the gradients of points i and i + lag, both ways, by Bartlett's weight. */
static void add_products(const struct problem *p, const gsl_matrix *J, const gsl_vector *f, size_t lag, gsl_matrix *S)
{
	double weight = lag == 0 ? 0.5 : 1 - (double)lag / (LAGS + 1);
	for (size_t i = 0; i + lag < p->points->count; i++) {
		double both = weight * gsl_vector_get(f, i) * gsl_vector_get(f, i + lag);
		if (p->points->point[i].run != p->points->point[i + lag].run)
			continue;
		gsl_vector_const_view a = gsl_matrix_const_row(J, i), b = gsl_matrix_const_row(J, i + lag);
		gsl_blas_dger(both, &a.vector, &b.vector, S);
		gsl_blas_dger(both, &b.vector, &a.vector, S);
	}
}

/* covariance = n / (n - p) B S B with B = (J^T J)^-1 */
static bool covariance(const struct problem *p, gsl_multifit_nlinear_workspace *work, gsl_matrix *ret)
{
	const gsl_matrix *J = gsl_multifit_nlinear_jac(work);
	const gsl_vector *f = gsl_multifit_nlinear_residual(work);
	double n = p->points->count, k = (double)p->parameters;
	gsl_matrix *B = gsl_matrix_alloc(p->parameters, p->parameters);
	gsl_matrix *S = gsl_matrix_calloc(p->parameters, p->parameters);
	gsl_matrix *BS = gsl_matrix_alloc(p->parameters, p->parameters);
	bool good = B && S && BS && gsl_multifit_nlinear_covar(J, 0, B) == GSL_SUCCESS;
	for (size_t lag = 0; good && lag <= LAGS; lag++)
		add_products(p, J, f, lag, S);
	if (good) {
		gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, n / (n - k), B, S, 0, BS);
		gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1, BS, B, 0, ret);
	}
	gsl_matrix_free(B);
	gsl_matrix_free(S);
	gsl_matrix_free(BS);
	return good;
}

/* Of the values that were searched: of logarithms where these were. */
static bool set_errors(struct problem *p, gsl_multifit_nlinear_workspace *work, double *ret_rcond)
{
	gsl_matrix *C = gsl_matrix_alloc(p->parameters, p->parameters);
	bool good = C && gsl_multifit_nlinear_rcond(ret_rcond, work) == GSL_SUCCESS && covariance(p, work, C);
	for (size_t i = 0; good && i < p->parameters; i++)
		p->law.error[p->free[i]] = sqrt(fmax(gsl_matrix_get(C, i, i), 0));
	gsl_matrix_free(C);
	return good;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static double cost(gsl_multifit_nlinear_workspace *work)
{
	double norm = gsl_blas_dnrm2(gsl_multifit_nlinear_residual(work));
	return norm * norm;
}

/* Start number s: all pairs of three exponents and three onsets, with the floor at 0 and near the least loss. */
#define STARTS 18u
static void set_start(const struct problem *p, uint32_t s, gsl_vector *ret)
{
	static const double exponent[] = {0.3, 1, 3}, onset[] = {0.01, 0.1, 1};
	double least = INFINITY, most = p->law.reference;
	for (uint32_t i = 0; i < p->points->count; i++)
		least = fmin(least, p->points->point[i].loss);
	double floor = s / 9 ? 0.9 * least : 0;
	const double start[SKEP_LAW_PARAMETERS] = {
		floor, log(least - floor), log(exponent[s % 3]), log(onset[s / 3 % 3] * most), 0, 0, 0};
	for (size_t i = 0; i < p->parameters; i++)
		gsl_vector_set(ret, i, start[p->free[i]]);
}

/* The best of all starts stays in *work. */
static bool search(struct problem *p, gsl_multifit_nlinear_fdf *f, gsl_multifit_nlinear_workspace *work)
{
	gsl_vector *x = gsl_vector_alloc(p->parameters), *best = gsl_vector_alloc(p->parameters);
	double least = INFINITY;
	int why;
	for (uint32_t s = 0; x && best && s < STARTS; s++) {
		set_start(p, s, x);
		if (gsl_multifit_nlinear_init(x, f, work) != GSL_SUCCESS)
			continue;
		gsl_multifit_nlinear_driver(ITERATIONS_MAX, TOLERANCE, TOLERANCE, TOLERANCE, NULL, NULL, &why, work);
		if (cost(work) < least) {
			least = cost(work);
			gsl_vector_memcpy(best, gsl_multifit_nlinear_position(work));
		}
	}
	bool found = isfinite(least) && gsl_multifit_nlinear_init(best, f, work) == GSL_SUCCESS;
	if (found)
		set_law(p, best);
	gsl_vector_free(x);
	gsl_vector_free(best);
	return found;
}

static bool fit_once(struct problem *p, double *ret_rcond, struct skep_diag *reterr)
{
	gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
	p->parameters = 0;
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++)
		if (p->law.fixed[i][0] == '\0')
			p->free[p->parameters++] = i;
	size_t n = p->points->count, k = p->parameters;
	if (n < k + SPARE_POINTS)
		return skep_fail(reterr,
			"%zu points are too few for %zu parameters: fit longer runs, of at least %zu rounds", n, k,
			k + SPARE_POINTS);
	gsl_multifit_nlinear_fdf f = {.f = residuals, .n = n, .p = k, .params = p};
	gsl_multifit_nlinear_workspace *work =
		gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, n, k);
	bool good = work && search(p, &f, work) && set_errors(p, work, ret_rcond);
	if (!good)
		skep_fail(reterr, "no law fits these losses: do they fall?");
	gsl_multifit_nlinear_free(work);
	return good;
}

/* ---- what the runs can tell ---------------------------------------------------------------------------------------- */

/* Values of an axis among the points that know of it: those behind the first tokens, and of replicas those with H > 1. */
struct span {
	double least, most;
	uint32_t points;
};

static struct span spanned(const struct skep_loss_points *points, enum skep_law_axis axis)
{
	struct span span = {INFINITY, -INFINITY, 0};
	for (uint32_t i = 0; i < points->count; i++) {
		const double *at = points->point[i].at;
		if (axis != SKEP_LAW_TOKENS && axis != SKEP_LAW_BATCH && at[SKEP_LAW_TOKENS] == 0)
			continue;
		if (axis == SKEP_LAW_MEMBERS && at[SKEP_LAW_EVERY] == 1)
			continue;
		span.least = fmin(span.least, at[axis]);
		span.most = fmax(span.most, at[axis]);
		span.points++;
	}
	return span;
}

static void fix(struct skep_law *law, enum skep_law_parameter parameter, double value, const char *why)
{
	law->value[parameter] = value;
	law->error[parameter] = NAN;
	snprintf(law->fixed[parameter], sizeof law->fixed[parameter], "%s", why);
}

static void fix_what_does_not_vary(const struct skep_loss_points *points, struct skep_law *law)
{
	char why[64];
	struct span every = spanned(points, SKEP_LAW_EVERY), replicas = spanned(points, SKEP_LAW_MEMBERS),
		    stale = spanned(points, SKEP_LAW_STALE);
	snprintf(why, sizeof why, "all runs have H = %g", every.least);
	if (!(every.most > every.least))
		fix(law, SKEP_LAW_PERIOD, 0, why);
	snprintf(why, sizeof why, "all runs with H > 1 have %g replicas", replicas.least);
	if (!(replicas.most > replicas.least))
		fix(law, SKEP_LAW_REPLICAS, 0, replicas.points > 0 ? why : "no run has H > 1");
	snprintf(why, sizeof why, "all runs have staleness %g", stale.least);
	if (!(stale.most > stale.least))
		fix(law, SKEP_LAW_STALENESS, 0, why);
}

/* The conditions that the law was fitted in; replicas of all runs, as the file says what there was. */
static void set_range(const struct skep_loss_points *points, struct skep_law *law)
{
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++) {
		law->least[axis] = INFINITY;
		law->most[axis] = -INFINITY;
		for (uint32_t i = 0; i < points->count; i++) {
			const double *at = points->point[i].at;
			if (axis == SKEP_LAW_STALE && at[SKEP_LAW_TOKENS] == 0)
				continue;
			law->least[axis] = fmin(law->least[axis], at[axis]);
			law->most[axis] = fmax(law->most[axis], at[axis]);
		}
	}
	law->most[SKEP_LAW_TOKENS] = fmax(law->most[SKEP_LAW_TOKENS], points->most_tokens);
}

/* Errors of logarithms become those of the parameters. */
static void scale_errors(struct skep_law *law)
{
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++)
		if (logarithmic(i))
			law->error[i] *= law->value[i];
}

/* What the last fit could not tell is fixed, and true comes back. */
static bool fix_what_cannot_be_told(struct problem *p, double rcond)
{
	struct skep_law *law = &p->law;
	bool onset = law->fixed[SKEP_LAW_ONSET][0] == '\0', floor = law->fixed[SKEP_LAW_FLOOR][0] == '\0';
	if (onset && (!(rcond > RCOND_LEAST) || law->error[SKEP_LAW_ONSET] > ONSET_ERROR ||
			     law->value[SKEP_LAW_ONSET] < ONSET_LEAST * law->reference))
		fix(law, SKEP_LAW_ONSET, 0, "the runs do not tell how they begin");
	else if (floor && !(law->value[SKEP_LAW_FLOOR] > 2 * law->error[SKEP_LAW_FLOOR]))
		fix(law, SKEP_LAW_FLOOR, 0, "less than two of its errors: the runs do not flatten");
	else
		return false;
	return true;
}

static bool fit_what_can_be_told(struct problem *p, struct skep_diag *reterr)
{
	double rcond = 0;
	do
		if (!fit_once(p, &rcond, reterr))
			return false;
	while (fix_what_cannot_be_told(p, rcond));
	double within = exp(p->law.error[SKEP_LAW_EXPONENT]);
	bool apart = rcond > RCOND_LEAST;
	for (int i = SKEP_LAW_PERIOD; i < SKEP_LAW_PARAMETERS; i++)
		apart = apart && (p->law.fixed[i][0] != '\0' || p->law.error[i] < WASTE_ERROR);
	if (!apart)
		skep_fail(reterr,
			"the runs cannot tell two parameters apart: vary H, replicas and staleness one at a time");
	else if (!(p->law.error[SKEP_LAW_EXPONENT] < EXPONENT_ERROR))
		skep_fail(reterr,
			"the runs do not tell how fast the loss falls (alpha = %.2g, within a factor of %.2g): fit longer "
			"runs",
			p->law.value[SKEP_LAW_EXPONENT], within);
	else
		return true;
	return false;
}

bool skep_law_fit(const struct skep_loss_points *points, struct skep_law *ret, struct skep_diag *reterr)
{
	struct problem p = {.points = points};
	struct skep_fit_run whole[SKEP_FIT_RUNS_MAX];
	double squares = 0;
	p.law.first = INFINITY; /* no end to what is searched */
	snprintf(p.law.model, sizeof p.law.model, "%s", points->model);
	set_range(points, &p.law);
	p.law.reference = p.law.most[SKEP_LAW_TOKENS];
	if (points->count < 2 || !(p.law.reference > 0))
		return skep_fail(reterr, "one point is no curve: fit runs of at least ten rounds");
	fix_what_does_not_vary(points, &p.law);
	gsl_error_handler_t *handler = gsl_set_error_handler_off(); /* what GSL cannot do is answered, not the end */
	bool good = fit_what_can_be_told(&p, reterr);
	gsl_set_error_handler(handler);
	if (!good)
		return false;
	scale_errors(&p.law);
	p.law.first = points->first;
	skep_law_judge(&p.law, points, whole);
	for (uint32_t i = 0; i < points->runs; i++)
		squares += whole[i].misfit * whole[i].misfit * whole[i].points;
	p.law.misfit = sqrt(squares / points->count);
	if (p.law.misfit < MISFIT_MOST) {
		*ret = p.law;
		return true;
	}
	char misfit[32];
	skep_fit_percent(p.law.misfit, misfit, sizeof misfit);
	return skep_fail(reterr,
		"the law misses these losses by %s: they do not fall as a power of the tokens; see `skep plot accuracy`, "
		"and leave out what comes before with --from",
		misfit);
}

void skep_law_judge(const struct skep_law *law, const struct skep_loss_points *points, struct skep_fit_run *ret)
{
	memset(ret, 0, points->runs * sizeof *ret);
	for (uint32_t i = 0; i < points->count; i++) {
		const struct skep_loss_point *point = &points->point[i];
		struct skep_fit_run *run = &ret[point->run];
		double residual = point->loss / skep_law_loss(law, point->at) - 1;
		run->points++;
		run->misfit += residual * residual;
		if (fabs(residual) < fabs(run->worst))
			continue;
		run->worst = residual;
		run->worst_tokens = point->at[SKEP_LAW_TOKENS];
	}
	for (uint32_t i = 0; i < points->runs; i++)
		ret[i].misfit = sqrt(ret[i].misfit / (ret[i].points > 0 ? ret[i].points : 1));
}
