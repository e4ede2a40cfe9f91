/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest.c - see manifest.h: what a manifest is made of, and what makes one wrong. Paths are normal by their letters: `a/..`
 * is nothing, even where `a` is a symbolic link and the file system would say otherwise. What is opened is what the scenario's
 * reader has opened.
 */
#include "exec/files/manifest.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/replace.h"
#include "base/grow.h"

#define PIECE_BYTES (UINT64_C(64) << 20)
#define NAME_MAX_BYTES 255u /* of a file in its folder */

#define set(path, ...) skep_diag_set(reterr, path, 0, 0, NULL, __VA_ARGS__)
#define fail(path, ...) (set(path, __VA_ARGS__), false)

static bool no_memory(struct skep_diag *reterr)
{
	return skep_fail(reterr, "not enough memory for the list of a scenario's files");
}

static int rank(char c)
{
	return c == 0 ? 0 : c == '/' ? 1 : (unsigned char)c + 1;
}

int skep_manifest_order(const char *a, const char *b)
{
	while (*a != 0 && *a == *b) {
		a++;
		b++;
	}
	return rank(*a) - rank(*b);
}

/* ---- what is wrong ------------------------------------------------------------------------------------------------ */

static bool normal(const char *path)
{
	char same[SKEP_MANIFEST_PATH_MAX + 1];
	if (path[0] != '/' || !skep_path_normal("/", path, same, sizeof same) || strcmp(path, same) != 0)
		return false;
	for (const char *name = path; *name != 0; name += 1 + strcspn(name + 1, "/"))
		if (strcspn(name + 1, "/") > NAME_MAX_BYTES)
			return false;
	return true;
}

static bool check_entry(const struct skep_manifest_entry *e, struct skep_diag *reterr)
{
	static const uint8_t none[SKEP_DIGEST_BYTES] = {0};
	if (!normal(e->path) || strcmp(e->path, "/") == 0)
		return fail(e->path,
			"cannot be the path of a file that travels: expected an absolute one without `.`, `..` or "
			"two slashes in a row, of at most %u bytes, with names of at most %u",
			SKEP_MANIFEST_PATH_MAX, NAME_MAX_BYTES);
	if (e->bytes > SKEP_MANIFEST_FILE_MAX)
		return fail(e->path, "has %" PRIu64 " bytes: files of at most 1 TiB travel", e->bytes);
	if (e->kind >= SKEP_MANIFEST_KINDS ||
		(e->kind != SKEP_MANIFEST_FILE && (e->bytes > 0 || memcmp(e->digest, none, sizeof none) != 0)))
		return fail(e->path, "is of no kind of file that travels");
	return true;
}

static bool is_inside(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static bool check_pair(
	const struct skep_manifest_entry *before, const struct skep_manifest_entry *e, struct skep_diag *reterr)
{
	assert(before + 1 == e);
	if (skep_manifest_order(before->path, e->path) >= 0)
		return fail(e->path, "stands twice, or out of order, in the list of a scenario's files");
	if (before->kind != SKEP_MANIFEST_FOLDER && is_inside(e->path, before->path))
		return fail(e->path, "is in a folder, %.300s, that is also a file", before->path);
	return true;
}

static bool check_overrides(const struct skep_manifest *m, struct skep_diag *reterr)
{
	size_t bytes = 0;
	for (uint32_t i = 0; i < m->overrides; i++) {
		if (m->override[i][0] == 0)
			return skep_fail(reterr, "an override of a scenario's keys is empty");
		bytes += strlen(m->override[i]);
	}
	if (m->overrides > SKEP_MANIFEST_OVERRIDES_MAX || bytes > SKEP_MANIFEST_OVERRIDE_MAX)
		return skep_fail(reterr,
			"%u overrides of %zu bytes: at most %u of %u bytes travel; write them into the scenario",
			m->overrides, bytes, SKEP_MANIFEST_OVERRIDES_MAX, SKEP_MANIFEST_OVERRIDE_MAX);
	return true;
}

bool skep_manifest_check(const struct skep_manifest *m, struct skep_diag *reterr)
{
	size_t bytes = 0;
	assert(m->entries == 0 || m->entry != NULL);
	if (m->entries > SKEP_MANIFEST_ENTRIES_MAX)
		return skep_fail(reterr, "the scenario has %u files: at most %u travel; join small ones", m->entries,
			SKEP_MANIFEST_ENTRIES_MAX);
	for (uint32_t i = 0; i < m->entries; i++) {
		if (!check_entry(&m->entry[i], reterr) ||
			(i > 0 && !check_pair(&m->entry[i - 1], &m->entry[i], reterr)))
			return false;
		bytes += strlen(m->entry[i].path);
	}
	if (bytes > SKEP_MANIFEST_PATHS_MAX)
		return skep_fail(reterr, "the paths of the scenario's files have %zu bytes together: at most %u travel",
			bytes, SKEP_MANIFEST_PATHS_MAX);
	if (m->scenario >= m->entries || m->entry[m->scenario].kind != SKEP_MANIFEST_FILE)
		return skep_fail(reterr, "the list of a scenario's files has no scenario");
	if (!normal(m->folder))
		return fail(m->folder, "cannot be the working folder of a scenario that travels");
	return check_overrides(m, reterr);
}

/* ---- making one --------------------------------------------------------------------------------------------------- */

/* An entry for a path as it was asked for, without its content. "/" is there everywhere. */
static bool add(struct skep_manifest *m, const struct skep_file_asked *asked, struct skep_diag *reterr)
{
	char path[SKEP_MANIFEST_PATH_MAX + 1], opened[2 * sizeof path];
	struct stat st;
	assert(m->folder != NULL && asked->path != NULL);
	if (!skep_path_normal(m->folder, asked->path, path, sizeof path))
		return fail(asked->path, "its path is too long to travel: at most %u bytes", SKEP_MANIFEST_PATH_MAX);
	snprintf(opened, sizeof opened, "%s%s%s", asked->path[0] == '/' ? "" : m->folder,
		asked->path[0] == '/' ? "" : "/", asked->path);
	if (stat(opened, &st) != 0)
		return fail(asked->path, "cannot be read again: %s", strerror(errno));
	if (asked->read && !S_ISREG(st.st_mode))
		return fail(asked->path, "is not a regular file any more");
	if (strcmp(path, "/") == 0)
		return true;
	struct skep_manifest_entry e = {.path = strdup(path), .opened = strdup(opened)};
	e.kind = asked->read ? SKEP_MANIFEST_FILE : S_ISDIR(st.st_mode) ? SKEP_MANIFEST_FOLDER : SKEP_MANIFEST_NAMED;
	e.bytes = asked->read ? (uint64_t)st.st_size : 0;
	if (e.path == NULL || e.opened == NULL || !skep_grow(&m->entry, m->entries, sizeof *m->entry)) {
		free(e.path);
		free(e.opened);
		return no_memory(reterr);
	}
	m->entry[m->entries++] = e;
	return true;
}

static int by_path(const void *a, const void *b)
{
	const struct skep_manifest_entry *x = a, *y = b;
	int order = skep_manifest_order(x->path, y->path);
	return order != 0 ? order : (int)x->kind - (int)y->kind; /* what is read first */
}

static void clear_entry(struct skep_manifest_entry *e)
{
	free(e->path);
	free(e->opened);
}

/* One file that was asked for by several names that are normally one stands there once. */
static bool merge(struct skep_manifest *m, struct skep_diag *reterr)
{
	uint32_t kept = 0;
	assert(m->entries == 0 || m->entry != NULL);
	if (m->entries > 0)
		qsort(m->entry, m->entries, sizeof *m->entry, by_path);
	for (uint32_t i = 0; i < m->entries; i++) {
		struct skep_manifest_entry *e = &m->entry[i], *last = kept > 0 ? &m->entry[kept - 1] : NULL;
		if (last == NULL || strcmp(last->path, e->path) != 0) {
			m->entry[kept++] = *e;
			continue;
		}
		if (!skep_replace_same(last->opened, e->opened))
			set(e->opened,
				"is not %.300s, although their names without `..` are the same: a symbolic link leads "
				"elsewhere; name the file by its own path",
				last->opened);
		clear_entry(e);
	}
	m->entries = kept;
	return !reterr->set;
}

struct showing {
	skep_manifest_show *show;
	void *context;
	uint64_t done, all;
};

static bool digest_file(struct skep_manifest_entry *e, int fd, struct showing *s, struct skep_diag *reterr)
{
	struct skep_digester *digester = skep_digester_create();
	bool ok = digester != NULL;
	assert(e->kind == SKEP_MANIFEST_FILE && fd >= 0);
	for (uint64_t at = 0; ok && at < e->bytes;) {
		uint64_t piece = e->bytes - at < PIECE_BYTES ? e->bytes - at : PIECE_BYTES;
		if (!skep_digester_add_file(digester, fd, at, piece)) {
			set(e->opened, "cannot be read: %s", errno != 0 ? strerror(errno) : "it has become shorter");
			break;
		}
		at += piece;
		s->done += piece;
		if (s->show != NULL)
			s->show(s->context, s->done, s->all);
	}
	if (!ok || (!reterr->set && !skep_digester_end(digester, e->digest)))
		skep_fail(reterr, "OpenSSL has no SHA-256 here, by which files that travel are checked");
	skep_digester_destroy(digester);
	return !reterr->set;
}

static bool digest_all(struct skep_manifest *m, struct showing *s, struct skep_diag *reterr)
{
	assert(s->done == 0 && s->all == 0);
	for (uint32_t i = 0; i < m->entries; i++)
		s->all += m->entry[i].bytes;
	for (uint32_t i = 0; i < m->entries && !reterr->set; i++) {
		if (m->entry[i].kind != SKEP_MANIFEST_FILE)
			continue;
		int fd = open(m->entry[i].opened, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return fail(m->entry[i].opened, "cannot be opened: %s", strerror(errno));
		digest_file(&m->entry[i], fd, s, reterr);
		close(fd);
	}
	return !reterr->set;
}

static bool add_overrides(
	struct skep_manifest *m, const struct skep_scenario_options *options, struct skep_diag *reterr)
{
	char seed[32];
	uint32_t sets = options != NULL ? options->sets : 0;
	assert(m->override == NULL && m->overrides == 0);
	snprintf(seed, sizeof seed, "seed=%" PRIu64, options != NULL ? options->seed : 0);
	m->override = calloc((size_t)sets + 1, sizeof *m->override);
	if (m->override == NULL)
		return no_memory(reterr);
	for (uint32_t i = 0; i < sets + (options != NULL && options->has_seed); i++) {
		m->override[i] = strdup(i < sets ? options->set[i] : seed);
		if (m->override[i] == NULL)
			return no_memory(reterr);
		m->overrides++;
	}
	return true;
}

static bool add_all(struct skep_manifest *m, const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	char path[SKEP_MANIFEST_PATH_MAX + 1];
	m->folder = getcwd(NULL, 0);
	if (m->folder == NULL)
		return skep_fail(reterr, "the working folder has no path: %s", strerror(errno));
	if (scenario->files.incomplete)
		return no_memory(reterr);
	for (uint32_t i = 0; i < scenario->files.count; i++)
		if (!add(m, &scenario->files.asked[i], reterr))
			return false;
	if (!merge(m, reterr) || !skep_path_normal(m->folder, scenario->path, path, sizeof path))
		return false;
	while (m->scenario < m->entries && strcmp(m->entry[m->scenario].path, path) != 0)
		m->scenario++;
	return true;
}

bool skep_manifest_make(const struct skep_scenario *scenario, const struct skep_scenario_options *options,
	skep_manifest_show *show, void *context, struct skep_manifest *ret, struct skep_diag *reterr)
{
	struct showing s = {.show = show, .context = context};
	*ret = (struct skep_manifest){0};
	bool ok = add_all(ret, scenario, reterr) && add_overrides(ret, options, reterr) &&
	          skep_manifest_check(ret, reterr) && digest_all(ret, &s, reterr);
	if (!ok)
		skep_manifest_finish(ret);
	return ok;
}

void skep_manifest_finish(struct skep_manifest *manifest)
{
	for (uint32_t i = 0; i < manifest->entries; i++)
		clear_entry(&manifest->entry[i]);
	for (uint32_t i = 0; i < manifest->overrides; i++)
		free(manifest->override[i]);
	free(manifest->entry);
	free(manifest->override);
	free(manifest->folder);
	*manifest = (struct skep_manifest){0};
}

int skep_manifest_open(const struct skep_manifest *m, const uint8_t digest[SKEP_DIGEST_BYTES], uint64_t *ret_bytes,
	struct skep_diag *reterr)
{
	struct stat st;
	const struct skep_manifest_entry *e = NULL;
	for (uint32_t i = 0; i < m->entries && e == NULL; i++)
		if (m->entry[i].kind == SKEP_MANIFEST_FILE && m->entry[i].opened != NULL &&
			memcmp(m->entry[i].digest, digest, SKEP_DIGEST_BYTES) == 0)
			e = &m->entry[i];
	if (e == NULL) {
		skep_fail(reterr, "no file of the scenario has the content that was asked for");
		return -1;
	}
	int fd = open(e->opened, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == e->bytes) {
		*ret_bytes = e->bytes;
		return fd;
	}
	set(e->opened, "%s",
		fd < 0 ? strerror(errno)
		       : "has changed since `serve` began: put it back as it was, or end `serve` and begin a run of the "
			 "scenario as it is");
	if (fd >= 0)
		close(fd);
	return -1;
}
