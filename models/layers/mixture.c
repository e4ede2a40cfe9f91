/* SPDX-License-Identifier: Apache-2.0
 *
 * mixture.c - see mixture.h. Of each choice of a token its place among the rows of its expert is kept, so that the way back finds
 * the same rows without asking the router again; -1 where it was dropped.
 */
#include "models/layers/mixture.h"

#include <math.h>

#include "models/layers/feed.h"
#include "models/layers/spread.h"

/* A block of rows of an expert's product that is handed to one thread: fewer rows would pack the expert's matrix too often. */
enum { LEAST_ROWS = 256, TOGETHER = 12 /* rows, as in spread.c */ };

struct pass { /* a mixture with its arrays; R rows are at most T k */
	struct skep_mixture m;
	size_t choices; /* k */
	/* Kept: */
	skep_real *probability;  /* [T][count] */
	skep_real *log_sum;      /* [T] */
	skep_real *weight;       /* [T][k] */
	int32_t *expert, *place; /* [T][k] */
	skep_real *up;           /* [R][2 feed] */
	/* Work: */
	int32_t *first;            /* [count + 1]: the rows of an expert */
	int32_t *choice;           /* [R]: of T k, which it is */
	skep_real *share;          /* [count]: what the load balance adds at each probability; 0 in forward passes */
	skep_real *at_score;       /* [T][count] */
	skep_real *at_weight;      /* [R] */
	skep_real *rows;           /* [R][hidden]: gathered inputs; forwards the experts' outputs after that */
	skep_real *back;           /* [R][hidden]: gathered gradients, then those at the gathered inputs */
	skep_real *bent, *at_bent; /* [R][feed] */
	skep_real *at_up;          /* [R][2 feed] */
	const skep_real *from;     /* of the loop that runs */
	skep_real *to;
};

/* ---- memory ----------------------------------------------------------------------------------------------------- */

size_t skep_mixture_kept(const struct skep_experts *experts, size_t feed)
{
	return experts->count + 1 + experts->per_token * (3 + 2 * feed);
}

size_t skep_mixture_work(const struct skep_experts *experts, size_t tokens, size_t hidden, size_t feed)
{
	size_t rows = tokens * experts->per_token, count = experts->count;
	return 2 * count + 1 + tokens * count + rows * (2 + 2 * hidden + 4 * feed);
}

static skep_real *carve(skep_real **rest, size_t numbers)
{
	skep_real *at = *rest;
	*rest += numbers;
	return at;
}

static struct pass pass_of(const struct skep_mixture *m)
{
	struct pass p = {.m = *m, .choices = m->experts->per_token};
	const size_t rows = m->tokens * p.choices, count = m->experts->count;
	skep_real *kept = m->kept, *work = m->work;
	p.up = carve(&kept, rows * 2 * m->feed);
	p.probability = carve(&kept, m->tokens * count);
	p.log_sum = carve(&kept, m->tokens);
	p.weight = carve(&kept, rows);
	p.expert = (int32_t *)(void *)carve(&kept, rows);
	p.place = (int32_t *)(void *)carve(&kept, rows);
	p.rows = carve(&work, rows * m->hidden);
	p.back = carve(&work, rows * m->hidden);
	p.bent = carve(&work, rows * m->feed);
	p.at_bent = carve(&work, rows * m->feed);
	p.at_up = carve(&work, rows * 2 * m->feed);
	p.at_score = carve(&work, m->tokens * count);
	p.at_weight = carve(&work, rows);
	p.share = carve(&work, count);
	p.choice = (int32_t *)(void *)carve(&work, rows);
	p.first = (int32_t *)(void *)carve(&work, count + 1);
	return p;
}

/* ---- products of all experts ------------------------------------------------------------------------------------ */

enum direction { ONWARDS, BACKWARDS, WEIGHTS };

struct products {
	const struct pass *p;
	enum direction direction;
	size_t in, out; /* of the experts' matrices, [in][out] each */
	const skep_real *a, *b;
	skep_real *
		c; /* ONWARDS: a[R][in] b = c[R][out]; BACKWARDS: a[R][out] b^T = c[R][in]; WEIGHTS: c += a^T[in][R] b[R][out] */
};

static size_t rows_of(const struct pass *p, size_t expert)
{
	return (size_t)(p->first[expert + 1] - p->first[expert]);
}

static size_t height_of(size_t rows)
{
	size_t blocks = rows / LEAST_ROWS;
	if (blocks < 2)
		return rows;
	return ((rows + blocks - 1) / blocks + TOGETHER - 1) / TOGETHER * TOGETHER;
}

/* Rows of the result that this expert has. */
static size_t result_rows(const struct products *s, size_t expert)
{
	size_t rows = rows_of(s->p, expert);
	return s->direction == WEIGHTS && rows > 0 ? s->in : rows;
}

static size_t blocks_of(const struct products *s, size_t expert)
{
	size_t rows = result_rows(s, expert), height = height_of(rows);
	return rows > 0 ? (rows + height - 1) / height : 0;
}

/* Rows first .. end - 1 of the expert's result. */
static void multiply(const struct products *s, size_t expert, size_t first, size_t end)
{
	const size_t begin = (size_t)s->p->first[expert], rows = end - first, matrix = expert * s->in * s->out;
	const size_t in = s->in, out = s->out;
	if (s->direction == ONWARDS)
		skep_real_product(CblasNoTrans, CblasNoTrans, rows, out, in, s->a + (begin + first) * in, s->b + matrix,
			0, s->c + (begin + first) * out);
	else if (s->direction == BACKWARDS)
		skep_real_product(CblasNoTrans, CblasTrans, rows, in, out, s->a + (begin + first) * out, s->b + matrix,
			0, s->c + (begin + first) * in);
	else
		skep_real_product_of(CblasTrans, CblasNoTrans, rows, out, rows_of(s->p, expert), 1,
			s->a + begin * in + first, in, s->b + begin * out, out, 1, s->c + matrix + first * out, out);
}

static void multiply_blocks(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct products *s = context;
	size_t expert = 0, before = 0; /* blocks of the experts before */
	(void)member;
	for (size_t i = first; i < end; i++) {
		for (size_t blocks; before + (blocks = blocks_of(s, expert)) <= i; expert++)
			before += blocks;
		size_t rows = result_rows(s, expert), height = height_of(rows), at = (i - before) * height;
		multiply(s, expert, at, at + height < rows ? at + height : rows);
	}
}

static void multiply_all(const struct products *s)
{
	size_t blocks = 0;
	for (size_t e = 0; e < s->p->m.experts->count; e++)
		blocks += blocks_of(s, e);
	skep_thread_pool_for(s->p->m.thread_pool, blocks, 1, multiply_blocks, s);
}

/* ---- the router ------------------------------------------------------------------------------------------------- */

/* Scores become probabilities; returns the logarithm of the sum of their exponentials. */
SKEP_ANY_WIDTH static skep_real soften_scores(size_t count, skep_real *score)
{
	skep_real most = skep_real_most(count, score);
	for (size_t i = 0; i < count; i++)
		score[i] = skep_real_exp(score[i] - most);
	skep_real sum = skep_real_sum(count, score);
	for (size_t i = 0; i < count; i++)
		score[i] /= sum;
	return most + (skep_real)log((double)sum);
}

/* The one that comes next behind `last` in the order of falling probability; equal ones in that of their numbers. `fallback`
 * where there is none, as among NaNs. */
static int32_t next_choice(size_t count, const skep_real *probability, int32_t last, int32_t fallback)
{
	int32_t best = -1;
	for (size_t i = 0; i < count; i++) {
		bool left = last < 0 || probability[i] < probability[last] ||
		            (probability[i] == probability[last] && (int32_t)i > last);
		if (left && (best < 0 || probability[i] > probability[best]))
			best = (int32_t)i;
	}
	return best < 0 ? fallback : best;
}

static void route_tokens(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct pass *p = context;
	const size_t count = p->m.experts->count, k = p->choices;
	(void)member;
	for (size_t t = first; t < end; t++) {
		skep_real *probability = p->probability + t * count, *weight = p->weight + t * k, sum = 0;
		int32_t *expert = p->expert + t * k;
		p->log_sum[t] = soften_scores(count, probability);
		for (size_t j = 0; j < k; j++) {
			expert[j] = next_choice(count, probability, j > 0 ? expert[j - 1] : -1, (int32_t)j);
			weight[j] = probability[expert[j]];
			sum += weight[j];
		}
		for (size_t j = 0; p->m.experts->renormalized && j < k; j++)
			weight[j] /= sum;
	}
}

size_t skep_mixture_capacity(const struct skep_experts *experts, size_t tokens)
{
	double even = (double)tokens * experts->per_token / experts->count,
	       most = ceil(experts->capacity_factor * even);
	return experts->capacity_factor > 0 && most < (double)tokens ? (size_t)most : tokens;
}

/* First choices before second ones. */
static void admit(const struct pass *p)
{
	const size_t k = p->choices, count = p->m.experts->count;
	const int32_t capacity = (int32_t)skep_mixture_capacity(p->m.experts, p->m.tokens);
	int32_t *taken = p->first;
	memset(taken, 0, count * sizeof *taken);
	for (size_t j = 0; j < k; j++)
		for (size_t c = j; c < p->m.tokens * k; c += k) {
			int32_t *of = &taken[p->expert[c]];
			p->place[c] = *of < capacity ? (*of)++ : -1;
		}
}

/* The balance is E sum_i f_i P_i, which is 1 for each choice where all experts have as many tokens. */
static void count_use(const struct pass *p)
{
	const size_t choices = p->m.tokens * p->choices, count = p->m.experts->count;
	uint64_t fullest = 0, dropped = 0;
	double balance = 0;
	for (size_t c = 0; c < choices; c++)
		dropped += p->place[c] < 0;
	for (size_t e = 0; e < count; e++) {
		uint64_t chosen = 0;
		double sum = 0;
		for (size_t c = 0; c < choices; c++)
			chosen += p->expert[c] == (int32_t)e;
		for (size_t t = 0; t < p->m.tokens; t++)
			sum += (double)p->probability[t * count + e];
		fullest = chosen > fullest ? chosen : fullest;
		balance += (double)chosen * sum;
	}
	balance *= 1e9 * (double)count / ((double)p->m.tokens * (double)p->m.tokens);
	const struct skep_expert_use use = {.passes = 1,
		.choices = choices,
		.dropped = dropped,
		.fullest = fullest * count,
		.balance_nano = balance < 9.2e18 ? (uint64_t)llround(balance) : 0}; /* NaN compares false */
	skep_expert_use_add(p->m.use, &use);
}

/* Where the rows of each expert begin, and whose they are. */
static void index_rows(const struct pass *p)
{
	const size_t choices = p->m.tokens * p->choices, count = p->m.experts->count;
	memset(p->first, 0, (count + 1) * sizeof *p->first);
	for (size_t c = 0; c < choices; c++)
		p->first[p->expert[c] + 1] += p->place[c] >= 0;
	for (size_t e = 0; e < count; e++)
		p->first[e + 1] += p->first[e];
	for (size_t c = 0; c < choices; c++)
		if (p->place[c] >= 0)
			p->choice[p->first[p->expert[c]] + p->place[c]] = (int32_t)c;
}

/* The row of choice c, or NULL. */
static const skep_real *row_of(const struct pass *p, size_t c, const skep_real *rows, size_t width)
{
	return p->place[c] < 0 ? NULL : rows + (size_t)(p->first[p->expert[c]] + p->place[c]) * width;
}

static void gather_rows(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct pass *p = context;
	const size_t hidden = p->m.hidden;
	(void)member;
	for (size_t i = first; i < end; i++)
		memcpy(p->to + i * hidden, p->from + (size_t)p->choice[i] / p->choices * hidden,
			hidden * sizeof *p->to);
}

/* to[R][hidden], of from[T][hidden]. */
static void gather(struct pass *p, const skep_real *from, skep_real *to)
{
	p->from = from;
	p->to = to;
	skep_thread_pool_for(
		p->m.thread_pool, (size_t)p->first[p->m.experts->count], skep_spread_rows(p->m.hidden), gather_rows, p);
}

/* ---- forwards --------------------------------------------------------------------------------------------------- */

static void bend_rows(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct pass *p = context;
	const size_t feed = p->m.feed;
	(void)member;
	skep_swiglu_forward(end - first, feed, p->up + 2 * first * feed, p->bent + first * feed);
}

SKEP_ANY_WIDTH static void add_row(size_t n, skep_real weight, const skep_real *restrict row, skep_real *restrict sum)
{
	for (size_t i = 0; i < n; i++)
		sum[i] += weight * row[i];
}

/* to[T]: forwards from[T] + the weighted outputs of the token's choices, backwards (from: NULL) the sum of their gradients. */
static void sum_tokens(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct pass *p = context;
	const size_t hidden = p->m.hidden, k = p->choices;
	(void)member;
	for (size_t t = first; t < end; t++) {
		skep_real *to = p->to + t * hidden;
		if (p->from)
			memcpy(to, p->from + t * hidden, hidden * sizeof *to);
		else
			memset(to, 0, hidden * sizeof *to);
		for (size_t c = t * k; c < (t + 1) * k; c++) {
			const skep_real *row = row_of(p, c, p->from ? p->rows : p->back, hidden);
			if (row)
				add_row(hidden, p->from ? p->weight[c] : 1, row, to);
		}
	}
}

void skep_mixture_forward(
	const struct skep_mixture *mixture, const skep_real *x, const skep_real *residual, skep_real *ret)
{
	struct pass p = pass_of(mixture);
	const size_t count = mixture->experts->count, hidden = mixture->hidden, feed = mixture->feed;
	skep_spread_product(mixture->thread_pool, CblasNoTrans, CblasNoTrans, mixture->tokens, count, hidden, x,
		mixture->router, 0, p.probability);
	skep_thread_pool_for(
		mixture->thread_pool, mixture->tokens, skep_spread_rows(count * (2 + p.choices)), route_tokens, &p);
	admit(&p);
	if (mixture->use)
		count_use(&p);
	index_rows(&p);
	gather(&p, x, p.rows);
	multiply_all(&(struct products){&p, ONWARDS, hidden, 2 * feed, p.rows, mixture->up, p.up});
	skep_thread_pool_for(mixture->thread_pool, (size_t)p.first[count], skep_spread_rows(2 * feed), bend_rows, &p);
	multiply_all(&(struct products){&p, ONWARDS, feed, hidden, p.bent, mixture->down, p.rows});
	p.from = residual;
	p.to = ret;
	skep_thread_pool_for(
		mixture->thread_pool, mixture->tokens, skep_spread_rows((1 + p.choices) * hidden), sum_tokens, &p);
}

/* ---- backwards -------------------------------------------------------------------------------------------------- */

SKEP_ANY_WIDTH static void scale_row(size_t n, skep_real by, skep_real *row)
{
	for (size_t i = 0; i < n; i++)
		row[i] *= by;
}

/* The output of a choice is w E(x): at w its gradient is that at the output times E(x), which is that at the bent values times
 * these. At everything within the expert it is w times what it would be alone. */
static void bend_rows_back(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct pass *p = context;
	const size_t feed = p->m.feed;
	(void)member;
	for (size_t i = first; i < end; i++) {
		const skep_real *at_bent = p->at_bent + i * feed;
		const skep_real weight = p->weight[p->choice[i]];
		skep_real *bent = p->bent + i * feed, *at_up = p->at_up + 2 * i * feed;
		skep_swiglu_backward(1, feed, p->up + 2 * i * feed, at_bent, bent, at_up);
		p->at_weight[i] = skep_real_dot(feed, at_bent, bent);
		scale_row(feed, weight, bent);
		scale_row(2 * feed, weight, at_up);
	}
}

/* What each probability of every token gets from the load balance. */
static void find_shares(const struct pass *p)
{
	const struct skep_experts *e = p->m.experts;
	const double tokens = (double)p->m.tokens, part = e->aux_loss * e->count / (tokens * tokens);
	for (size_t i = 0; i < e->count; i++)
		p->share[i] = 0;
	for (size_t c = 0; e->aux_loss > 0 && c < p->m.tokens * p->choices; c++)
		p->share[p->expert[c]] += 1;
	for (size_t i = 0; i < e->count; i++)
		p->share[i] *= (skep_real)part;
}

/* ret[count]: the gradient at the scores of one token. With w = p / s, s the sum of the chosen p: at p_j it is (that at w_j less
 * the sum of w times that at w) / s. */
static void score_token(const struct pass *p, size_t token, skep_real *ret)
{
	const struct skep_experts *e = p->m.experts;
	const size_t count = e->count, k = p->choices;
	const skep_real *probability = p->probability + token * count;
	skep_real whole = 0, sum = 0, z = 2 * (skep_real)e->z_loss / (skep_real)p->m.tokens * p->log_sum[token];
	for (size_t i = 0; i < count; i++)
		ret[i] = p->share[i];
	for (size_t c = token * k; c < (token + 1) * k; c++) {
		const skep_real *at = row_of(p, c, p->at_weight, 1);
		whole += at ? *at * p->weight[c] : 0;
		sum += probability[p->expert[c]];
	}
	for (size_t c = token * k; c < (token + 1) * k; c++) {
		const skep_real *at = row_of(p, c, p->at_weight, 1);
		skep_real own = at ? *at : 0;
		ret[p->expert[c]] += e->renormalized ? (own - whole) / sum : own;
	}
	skep_real mean = skep_real_dot(count, ret, probability);
	for (size_t i = 0; i < count; i++)
		ret[i] = probability[i] * (ret[i] - mean + z);
}

static void score_tokens(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct pass *p = context;
	(void)member;
	for (size_t t = first; t < end; t++)
		score_token(p, t, p->at_score + t * p->m.experts->count);
}

static void add_gradients(struct pass *p, const skep_real *x)
{
	const struct skep_mixture *m = &p->m;
	multiply_all(&(struct products){p, WEIGHTS, m->feed, m->hidden, p->bent, p->back, m->down_gradient});
	gather(p, x, p->rows);
	multiply_all(&(struct products){p, WEIGHTS, m->hidden, 2 * m->feed, p->rows, p->at_up, m->up_gradient});
	skep_spread_product(m->thread_pool, CblasTrans, CblasNoTrans, m->hidden, m->experts->count, m->tokens, x,
		p->at_score, 1, m->router_gradient);
}

void skep_mixture_backward(
	const struct skep_mixture *mixture, const skep_real *x, const skep_real *gradient, skep_real *ret)
{
	struct pass p = pass_of(mixture);
	const size_t count = mixture->experts->count, hidden = mixture->hidden, feed = mixture->feed;
	index_rows(&p);
	gather(&p, gradient, p.back);
	multiply_all(&(struct products){&p, BACKWARDS, feed, hidden, p.back, mixture->down, p.at_bent});
	skep_thread_pool_for(
		mixture->thread_pool, (size_t)p.first[count], skep_spread_rows(4 * feed), bend_rows_back, &p);
	find_shares(&p);
	skep_thread_pool_for(mixture->thread_pool, mixture->tokens, skep_spread_rows(2 * count), score_tokens, &p);
	if (mixture->router_gradient)
		add_gradients(&p, x);
	multiply_all(&(struct products){&p, BACKWARDS, hidden, 2 * feed, p.at_up, mixture->up, p.back});
	p.from = NULL;
	p.to = ret;
	skep_thread_pool_for(
		mixture->thread_pool, mixture->tokens, skep_spread_rows(p.choices * hidden), sum_tokens, &p);
	skep_spread_product(mixture->thread_pool, CblasNoTrans, CblasTrans, mixture->tokens, hidden, count, p.at_score,
		mixture->router, 1, ret);
}
