/* SPDX-License-Identifier: Apache-2.0
 *
 * choices.c - see choices.h.
 */
#include "planning/problem/choices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"

/* One of the two is the other, or leads to it. */
static bool overlap(const char *key, const char *set, size_t length)
{
	size_t size = strlen(key), least = size < length ? size : length;
	if (strncmp(key, set, least) != 0)
		return false;
	return size == length || (size < length ? set[size] : key[length]) == '.';
}

static bool is_fixed(const char *key, const char *const *set, uint32_t sets)
{
	for (uint32_t i = 0; i < sets; i++)
		if (overlap(key, set[i], strcspn(set[i], "=")))
			return true;
	return false;
}

static uint32_t depth(const char *key)
{
	uint32_t dots = 0;
	for (; *key; key++)
		dots += *key == '.';
	return dots;
}

void skep_choices_make(
	const struct skep_planned *planned, const char *const *set, uint32_t sets, struct skep_choices *ret)
{
	*ret = (struct skep_choices){0};
	if (!planned)
		return;
	ret->free = &planned->free;
	for (uint32_t dots = 0, found = 0; found < planned->free.keys; dots++)
		for (uint32_t i = 0; i < planned->free.keys; i++) {
			if (depth(planned->free.key[i].key) != dots)
				continue;
			found++;
			if (!is_fixed(planned->free.key[i].key, set, sets))
				ret->key[ret->keys++] = i;
		}
	ret->points = ret->keys > 0;
	for (uint32_t i = 0; i < ret->keys; i++)
		ret->points *= ret->free->key[ret->key[i]].values;
}

static uint32_t values(const struct skep_choices *c, uint32_t nth)
{
	return c->free->key[c->key[nth]].values;
}

static uint32_t weight(const struct skep_choices *c, uint32_t nth)
{
	uint32_t product = 1;
	for (uint32_t i = nth + 1; i < c->keys; i++)
		product *= values(c, i);
	return product;
}

uint32_t skep_choices_digit(const struct skep_choices *c, uint32_t point, uint32_t nth)
{
	return point / weight(c, nth) % values(c, nth);
}

uint32_t skep_choices_with(const struct skep_choices *c, uint32_t point, uint32_t nth, uint32_t digit)
{
	return point + weight(c, nth) * digit - weight(c, nth) * skep_choices_digit(c, point, nth);
}

static const char *value_of(const struct skep_choices *c, uint32_t point, uint32_t nth)
{
	return c->free->key[c->key[nth]].value[skep_choices_digit(c, point, nth)];
}

char *skep_choices_assignment(const struct skep_choices *c, uint32_t point, uint32_t nth)
{
	char *text = NULL;
	if (asprintf(&text, "%s=%s", c->free->key[c->key[nth]].key, value_of(c, point, nth)) < 0)
		return NULL;
	return text;
}

void skep_choices_name(const struct skep_choices *c, uint32_t point, char *ret, size_t size)
{
	size_t used = 0;
	snprintf(ret, size, "%s", point == SKEP_AS_GIVEN ? "as written" : "");
	for (uint32_t i = 0; point != SKEP_AS_GIVEN && i < c->keys && used < size; i++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s=%s", i > 0 ? ", " : "",
			c->free->key[c->key[i]].key, value_of(c, point, i));
}

/* One pass: each point that is left is taken with the probability that makes the count come out (Knuth, algorithm S). */
uint32_t skep_choices_draw(const struct skep_choices *c, uint64_t seed, uint32_t count, uint32_t *ret)
{
	uint64_t state = skep_mix(seed ^ 0x63686f69636573u); /* a stream of its own */
	uint32_t drawn = 0;
	for (uint32_t point = 0; point < c->points && drawn < count; point++)
		if (c->points <= count || skep_random_below(&state, c->points - point) < count - drawn)
			ret[drawn++] = point;
	return drawn;
}

void skep_choices_front(const double *time_s, const double *usd, uint32_t count, bool *ret)
{
	for (uint32_t i = 0; i < count; i++) {
		ret[i] = isfinite(time_s[i]) && isfinite(usd[i]);
		for (uint32_t j = 0; ret[i] && j < count; j++) {
			bool as_good = time_s[j] <= time_s[i] && usd[j] <= usd[i];
			bool better = time_s[j] < time_s[i] || usd[j] < usd[i];
			ret[i] = !(as_good && (better || j < i));
		}
	}
}
