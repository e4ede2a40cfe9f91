/* SPDX-License-Identifier: Apache-2.0
 *
 * import_simgrid.c - a subset of SimGrid's platform files: one zone (or AS) with Full routing, its hosts, links and
 * routes, or flat clusters and the routes between them (import_simgrid_clusters.c). Whatever else stands in the file is
 * refused by its name.
 *
 * A pair of hosts gets the least bandwidth of its route's links and the sum of their latencies, as they are written (SimGrid's
 * own models then scale both). Where several routes use a link: SPLITDUPLEX is two, one for each direction; a FATPIPE limits
 * each pair by itself; a SHARED one that all routes from a host use is that host's `up`, one that all routes to it use its
 * `down`. Any other link that routes share cannot be said in a topology of ours: each pair gets all of it, and a note says so.
 */
#include <math.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topologies/import/import_simgrid.h"

#define FILE_BYTES_MAX (64u << 20)

void skep_simgrid_fail(struct simgrid *g, const char *format, ...)
{
	char message[400];
	uint32_t line = (uint32_t)XML_GetCurrentLineNumber(g->parser);
	const char *start = g->text;
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	for (uint32_t i = 1; i < line && start; i++) {
		start = strchr(start, '\n');
		start = start ? start + 1 : NULL;
	}
	skep_diag_set(g->importer->diag, g->path, line, (uint32_t)XML_GetCurrentColumnNumber(g->parser) + 1,
		start ? start : "", "%s", message);
	XML_StopParser(g->parser, XML_FALSE);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

const char *skep_simgrid_attribute(const char **attributes, const char *name)
{
	for (; attributes[0]; attributes += 2)
		if (strcmp(attributes[0], name) == 0)
			return attributes[1];
	return NULL;
}

/* An attribute with nothing to say here would change what the platform is: refused by its name. */
bool skep_simgrid_known(struct simgrid *g, const char *element, const char **attributes, const char *const *names)
{
	for (; attributes[0]; attributes += 2) {
		const char *const *name = names;
		while (*name && strcmp(*name, attributes[0]) != 0)
			name++;
		if (!*name) {
			skep_simgrid_fail(g, "the attribute '%.60s' of <%s> is not taken", attributes[0], element);
			return false;
		}
	}
	return true;
}

const char *skep_simgrid_need(struct simgrid *g, const char *element, const char **attributes, const char *name)
{
	const char *value = skep_simgrid_attribute(attributes, name);
	if (!value)
		skep_simgrid_fail(g, "<%s> without its %s", element, name);
	return value;
}

/* k, M, G ..., or Ki, Mi ... */
static double prefix(const char **unit)
{
	static const char letters[] = "kMGTPE";
	const char *letter = **unit ? strchr(letters, **unit) : NULL;
	double value = 1;
	if (!letter || (*unit)[1] == 0)
		return 1;
	++*unit;
	bool binary = **unit == 'i';
	*unit += binary;
	for (const char *c = letters; c <= letter; c++)
		value *= binary ? 1024 : 1000;
	return value;
}

static double read_number(const char *text, const char **ret_unit)
{
	char *end;
	double value = strspn(text, "0123456789.") > 0 ? strtod(text, &end) : NAN;
	*ret_unit = isnan(value) ? text : end;
	*ret_unit += strspn(*ret_unit, " ");
	return value;
}

/* 125MBps, 1Gbps, 10MiBps; without a unit B/s. */
double skep_simgrid_bandwidth(struct simgrid *g, const char *text)
{
	const char *unit;
	double value = read_number(text, &unit);
	bool bare = *unit == 0;
	value *= prefix(&unit);
	if (strcmp(unit, "bps") == 0)
		value *= 0.125;
	else if (!bare && strcmp(unit, "Bps") != 0)
		value = NAN;
	if (value >= SKEP_IMPORT_BPS_MIN && value <= SKEP_IMPORT_BPS_MAX)
		return value;
	skep_simgrid_fail(g, "bandwidth '%.60s': expected one above 0, such as 125MBps or 1Gbps", text);
	return 1;
}

/* 35ms; without a unit s. */
double skep_simgrid_latency(struct simgrid *g, const char *text)
{
	static const struct {
		const char *unit;
		double s;
	} units[] = {
		{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}, {"m", 60}, {"h", 3600}};
	const char *unit;
	double value = read_number(text, &unit);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcmp(unit, units[i].unit) == 0 && value * units[i].s <= SKEP_IMPORT_S_MAX)
			return value * units[i].s;
	skep_simgrid_fail(g, "latency '%.60s': expected a time of at most an hour, such as 35ms", text);
	return 0;
}

/* ---- hosts and links --------------------------------------------------------------------------------------------- */

static void take_host(struct simgrid *g, const char **attributes)
{
	static const char *const names[] = {"id", "speed", "core", "pstate", "coordinates", NULL};
	const char *id = skep_simgrid_need(g, "host", attributes, "id"), *wrong = NULL;
	if (!id || !skep_simgrid_known(g, "host", attributes, names))
		return;
	uint32_t before = g->importer->survey.places;
	uint32_t place = skep_survey_place(&g->importer->survey, id, strlen(id), &wrong);
	if (wrong)
		skep_simgrid_fail(g, "host '%.60s': %s", id, wrong);
	else if (place < before && !g->importer->survey.closed)
		skep_simgrid_fail(g, "a second host '%s'", id);
}

static int by_id(const void *left, const void *right)
{
	return strcmp(((const struct link *)left)->id, ((const struct link *)right)->id);
}

bool skep_simgrid_policy(const char *text, enum policy *ret)
{
	static const struct {
		const char *name;
		enum policy policy;
	} policies[] = {
		{"SHARED", SHARED}, {"FATPIPE", FATPIPE}, {"SPLITDUPLEX", SPLITDUPLEX}, {"FULLDUPLEX", SPLITDUPLEX}};
	*ret = SHARED;
	for (size_t i = 0; text && i < sizeof policies / sizeof *policies; i++)
		if (strcmp(text, policies[i].name) == 0) {
			*ret = policies[i].policy;
			return true;
		}
	return text == NULL;
}

static void take_link(struct simgrid *g, const char **attributes)
{
	static const char *const names[] = {"id", "bandwidth", "latency", "sharing_policy", NULL};
	const char *id = skep_simgrid_need(g, "link", attributes, "id"),
		   *latency = skep_simgrid_attribute(attributes, "latency");
	const char *bandwidth = id ? skep_simgrid_need(g, "link", attributes, "bandwidth") : NULL;
	const char *policy = skep_simgrid_attribute(attributes, "sharing_policy");
	if (!bandwidth || !skep_simgrid_known(g, "link", attributes, names))
		return;
	struct link *link = calloc(1, sizeof *link);
	if (!link || !(link->id = strdup(id))) {
		free(link);
		skep_simgrid_fail(g, "not enough memory");
		return;
	}
	*g->last = link;
	g->last = &link->next;
	struct link **node = tsearch(link, &g->tree, by_id);
	link->Bps = skep_simgrid_bandwidth(g, bandwidth);
	link->latency_s = skep_simgrid_latency(g, latency ? latency : "0");
	if (!node || *node != link)
		skep_simgrid_fail(g, "a second link '%.60s'", id);
	else if (!skep_simgrid_policy(policy, &link->policy))
		skep_simgrid_fail(
			g, "sharing_policy '%.40s' is not taken; SHARED, FATPIPE and SPLITDUPLEX are", policy);
}

void skep_simgrid_count(uint32_t *count, const char **first, const char *id)
{
	if ((*count)++ == 0)
		*first = id;
}

/* ---- routes ------------------------------------------------------------------------------------------------------ */

static uint32_t route_end(struct simgrid *g, const char **attributes, const char *name)
{
	const char *id = skep_simgrid_need(g, "route", attributes, name), *wrong = NULL;
	uint32_t places = g->importer->survey.places;
	uint32_t place = id ? skep_survey_place(&g->importer->survey, id, strlen(id), &wrong) : SKEP_NO_PLACE;
	if (id && (wrong || (!g->importer->survey.closed && place >= places)))
		skep_simgrid_fail(g, "a route of '%.60s', which is no host of this zone", id);
	else if (place < places && g->importer->survey.place[place].cluster)
		skep_simgrid_fail(g, "a <route> of the cluster '%.60s': between clusters <zoneRoute> is taken", id);
	return place;
}

static void begin_route(struct simgrid *g, const char **attributes)
{
	static const char *const names[] = {"src", "dst", "symmetrical", NULL};
	if (!skep_simgrid_known(g, "route", attributes, names))
		return;
	const char *symmetrical = skep_simgrid_attribute(attributes, "symmetrical");
	g->symmetrical = !symmetrical || strcasecmp(symmetrical, "yes") == 0 || strcasecmp(symmetrical, "true") == 0;
	g->in_route = true;
	g->steps = 0;
	g->route[0] = route_end(g, attributes, "src");
	g->route[1] = g->importer->diag->set ? SKEP_NO_PLACE : route_end(g, attributes, "dst");
}

static void take_step(struct simgrid *g, const char **attributes)
{
	static const char *const names[] = {"id", "direction", NULL};
	const char *id = skep_simgrid_need(g, "link_ctn", attributes, "id"),
		   *direction = skep_simgrid_attribute(attributes, "direction");
	if (!id || !skep_simgrid_known(g, "link_ctn", attributes, names))
		return;
	const struct link wanted = {.id = (char *)id};
	struct link **node = tfind(&wanted, &g->tree, by_id);
	bool up = direction && strcmp(direction, "UP") == 0, down = direction && strcmp(direction, "DOWN") == 0;
	if (!g->in_route)
		skep_simgrid_fail(g, "<link_ctn> outside of a <route>");
	else if (!node)
		skep_simgrid_fail(g, "a route over '%.60s', which is no link above", id);
	else if (g->steps == ROUTE_LINKS_MAX)
		skep_simgrid_fail(g, "a route of more than %u links", ROUTE_LINKS_MAX);
	else if ((*node)->policy == SPLITDUPLEX && !up && !down)
		skep_simgrid_fail(g, "link '%.60s' is SPLITDUPLEX: direction=\"UP\" or \"DOWN\" is needed", id);
	else
		g->step[g->steps++] = (struct step){*node, down ? DOWN : UP};
}

static void use(struct channel *c, uint32_t from, uint32_t to)
{
	if (c->routes++ == 0) {
		*c = (struct channel){1, from, to, {from, to}};
		return;
	}
	c->from = c->from == from ? from : SKEP_NO_PLACE;
	c->to = c->to == to ? to : SKEP_NO_PLACE;
	for (int i = 0; i < 2; i++)
		if (c->end[i] != from && c->end[i] != to)
			c->end[i] = SKEP_NO_PLACE;
}

bool skep_simgrid_first_route(struct simgrid *g, uint32_t from, uint32_t to)
{
	size_t bit = (size_t)from * HOSTS_MAX + to;
	const struct skep_survey_place *place = g->importer->survey.place;
	if (g->routed[bit / 8] >> bit % 8 & 1) {
		skep_simgrid_fail(g, "a second route from '%s' to '%s'", place[from].name, place[to].name);
		return false;
	}
	g->routed[bit / 8] |= (uint8_t)(1u << bit % 8);
	return true;
}

static void add_route(struct simgrid *g, uint32_t from, uint32_t to, bool back)
{
	double Bps = INFINITY, latency_s = 0;
	if (!skep_simgrid_first_route(g, from, to))
		return;
	for (uint32_t i = 0; i < g->steps; i++) {
		struct link *link = g->step[i].link;
		enum direction direction = link->policy != SPLITDUPLEX ? UP
		                           : back                      ? 1 - g->step[i].direction
		                                                       : g->step[i].direction;
		use(&link->channel[direction], from, to);
		Bps = fmin(Bps, link->Bps);
		latency_s += link->latency_s;
	}
	g->out[from]++;
	g->in[to]++;
	skep_import_add(g->importer, SKEP_BANDWIDTH_SAMPLE, from, to, Bps);
	skep_import_add(g->importer, SKEP_LATENCY_SAMPLE, from, to, fmin(latency_s, SKEP_IMPORT_S_MAX));
}

static void end_route(struct simgrid *g)
{
	uint32_t from = g->route[0], to = g->route[1];
	g->in_route = false;
	if (g->steps == 0) {
		skep_simgrid_fail(g, "a route without links");
	} else if (from == SKEP_NO_PLACE || to == SKEP_NO_PLACE) {
		return; /* of hosts that are not wanted */
	} else if (from == to) {
		g->itself++;
	} else {
		add_route(g, from, to, false);
		if (g->symmetrical && !g->importer->diag->set)
			add_route(g, to, from, true);
	}
}

/* ---- the document ------------------------------------------------------------------------------------------------ */

static void take_zone(struct simgrid *g, const char *element, const char **attributes)
{
	const char *routing = skep_simgrid_need(g, element, attributes, "routing");
	if (!routing)
		return;
	if (strcmp(routing, "Full") != 0)
		skep_simgrid_fail(g, "routing '%.40s' is not taken; Full is", routing);
	else if (g->zones++ > 0 || g->depth != 1)
		skep_simgrid_fail(g, "a second <%s>, or one within another: one zone is taken", element);
}

static void XMLCALL start(void *user, const char *element, const char **attributes)
{
	struct simgrid *g = user;
	if (g->importer->diag->set)
		return;
	if (g->depth == 0 && strcmp(element, "platform") != 0)
		skep_simgrid_fail(g, "expected <platform>, not <%.40s>: is it a platform file of SimGrid?", element);
	else if (strcmp(element, "zone") == 0 || strcmp(element, "AS") == 0)
		take_zone(g, element, attributes);
	else if (strcmp(element, "config") == 0 || strcmp(element, "prop") == 0)
		g->configured++;
	else if (g->depth == 0)
		;
	else if (strcmp(element, "cluster") == 0)
		skep_simgrid_cluster(g, attributes);
	else if (g->zones == 0)
		skep_simgrid_fail(g, "<%.40s> before a <zone>", element);
	else if (strcmp(element, "host") == 0)
		take_host(g, attributes);
	else if (strcmp(element, "link") == 0)
		take_link(g, attributes);
	else if (strcmp(element, "route") == 0)
		begin_route(g, attributes);
	else if (strcmp(element, "zoneRoute") == 0 || strcmp(element, "ASroute") == 0)
		skep_simgrid_begin_zone_route(g, element, attributes);
	else if (strcmp(element, "link_ctn") == 0)
		take_step(g, attributes);
	else
		skep_simgrid_fail(g,
			"<%.40s> is not taken; host, cluster, link, route, zoneRoute, link_ctn and one zone are",
			element);
	g->depth++;
}

static void XMLCALL end(void *user, const char *element)
{
	struct simgrid *g = user;
	g->depth--;
	bool ends =
		strcmp(element, "route") == 0 || strcmp(element, "zoneRoute") == 0 || strcmp(element, "ASroute") == 0;
	if (!ends || !g->in_route || g->importer->diag->set)
		return;
	if (g->of_zones)
		skep_simgrid_end_zone_route(g);
	else
		end_route(g);
}

/* Text within text within text may be without end. */
static void XMLCALL refuse_entity(void *user, const XML_Char *name, int parameter, const XML_Char *value, int length,
	const XML_Char *base, const XML_Char *system, const XML_Char *public, const XML_Char *notation)
{
	struct simgrid *g = user;
	(void)parameter, (void)value, (void)length, (void)base, (void)system, (void)public, (void)notation;
	if (!g->importer->diag->set)
		skep_simgrid_fail(g, "the entity '%.40s' is not taken: write its text", name);
}

/* ---- links that several routes use ------------------------------------------------------------------------------- */

static void settle_channel(struct simgrid *g, const struct link *link, const struct channel *c)
{
	struct skep_survey_place *place = g->importer->survey.place;
	bool both_ends = c->end[0] != SKEP_NO_PLACE && c->end[1] != SKEP_NO_PLACE;
	uint32_t host = c->end[0] != SKEP_NO_PLACE ? c->end[0] : c->end[1];
	if (c->routes < 2)
		return;
	if (c->from != SKEP_NO_PLACE && c->routes == g->out[c->from]) {
		place[c->from].up_Bps = fmin(place[c->from].up_Bps, link->Bps);
	} else if (c->to != SKEP_NO_PLACE && c->routes == g->in[c->to]) {
		place[c->to].down_Bps = fmin(place[c->to].down_Bps, link->Bps);
	} else if (both_ends) {
		skep_simgrid_count(&g->lopsided, &g->first_lopsided, link->id);
	} else if (host != SKEP_NO_PLACE && c->routes == g->out[host] + g->in[host]) {
		place[host].up_Bps = fmin(place[host].up_Bps, link->Bps);
		place[host].down_Bps = fmin(place[host].down_Bps, link->Bps);
		skep_simgrid_count(&g->lopsided, &g->first_lopsided, link->id);
	} else {
		skep_simgrid_count(&g->crowded, &g->first_crowded, link->id);
	}
}

static void settle(struct simgrid *g)
{
	for (const struct link *link = g->first; link; link = link->next)
		for (int i = 0; i < 2 && link->policy != FATPIPE; i++)
			settle_channel(g, link, &link->channel[i]);
	if (g->lopsided > 0)
		skep_import_note(g->importer,
			"%u link%s whose two directions share in SimGrid ('%.60s' first): here each direction has all",
			g->lopsided, g->lopsided == 1 ? "" : "s", g->first_lopsided);
	if (g->crowded > 0)
		skep_import_note(g->importer,
			"%u link%s that several pairs share in SimGrid ('%.60s' first): here each pair has all of it",
			g->crowded, g->crowded == 1 ? "" : "s", g->first_crowded);
	if (g->itself > 0)
		skep_import_note(
			g->importer, "%u route%s from a host to itself left out", g->itself, g->itself == 1 ? "" : "s");
	if (g->configured > 0)
		skep_import_note(g->importer, "%u properties and configurations left out", g->configured);
	skep_import_note(g->importer, "speeds of hosts left out: the GPU profile says how fast a machine is");
	snprintf(g->importer->measured, sizeof g->importer->measured,
		"Assumed: a platform file of SimGrid, bandwidths and latencies as written");
}

static void parse(struct simgrid *g, const char *text, size_t size)
{
	XML_SetUserData(g->parser, g);
	XML_SetElementHandler(g->parser, start, end);
	XML_SetEntityDeclHandler(g->parser, refuse_entity);
	if (XML_Parse(g->parser, text, (int)size, XML_TRUE) != XML_STATUS_OK && !g->importer->diag->set)
		skep_simgrid_fail(g, "is not well-formed XML: %s", XML_ErrorString(XML_GetErrorCode(g->parser)));
	if (!g->importer->diag->set && g->importer->survey.places == 0)
		skep_diag_set(g->importer->diag, g->path, 0, 0, NULL, "there is no host in it");
	if (!g->importer->diag->set)
		settle(g);
}

static void forget(void *link)
{
	(void)link; /* the list owns them */
}

bool skep_import_simgrid(struct skep_importer *importer)
{
	char *text = NULL;
	size_t size;
	struct simgrid *g = calloc(1, sizeof *g);
	if (!skep_file_read(importer->options->file[0], FILE_BYTES_MAX, &text, &size, importer->diag)) {
		free(g);
		return false;
	}
	if (g) {
		*g = (struct simgrid){.importer = importer, .path = importer->options->file[0], .text = text};
		g->last = &g->first;
		g->routed = calloc((size_t)HOSTS_MAX * HOSTS_MAX / 8, 1);
		g->cluster_s = calloc(2 * HOSTS_MAX, sizeof *g->cluster_s);
		g->cluster_Bps = g->cluster_s ? g->cluster_s + HOSTS_MAX : NULL;
		g->parser = XML_ParserCreate(NULL);
	}
	if (g && g->routed && g->cluster_s && g->parser)
		parse(g, text, size);
	else
		skep_diag_set(importer->diag, importer->options->file[0], 0, 0, NULL, "not enough memory");
	if (g) {
		tdestroy(g->tree, forget);
		for (struct link *link = g->first, *next; link; link = next) {
			next = link->next;
			free(link->id);
			free(link);
		}
		if (g->parser)
			XML_ParserFree(g->parser);
		free(g->routed);
		free(g->cluster_s);
		free(g);
	}
	free(text);
	return !importer->diag->set;
}
