/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_handshake.c - any bytes as what is parsed of a peer before it is known or before the run begins: the list of a scenario's
 * files, which a machine that joins gets, a public key to be signed, a certificate. Refused, or values that are written back the
 * same; a key that is taken gives a certificate that names its rank.
 *
 * The first byte of the input chooses: 'm' a list of files, 'k' a public key, 'i' a certificate of the authority for another key,
 * else one that stands for itself.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_handshake FOLDER
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments, each also in damaged versions
 */
#include "exec/files/manifest.h"
#include "exec/tcp/certificate.h"
#include "exec/tcp/tls.h"
#include "tests/fuzz/damage.h"

enum { DAMAGES = 2000, RUN = 0x77, RANK = 3 };

static struct {
	unsigned lists, keys, certificates, refused;
} tried; /* for the last line */

/* What is longer than any list may be is not written, not even in part. */
static void try_long(struct skep_manifest manifest)
{
	static char folder[SKEP_MANIFEST_BYTES_MAX];
	uint8_t *bytes = (uint8_t *)&manifest;
	size_t size = 1;
	if (folder[0] == 0)
		memset(folder, '/', sizeof folder - 1);
	manifest.folder = folder;
	must(!skep_manifest_encode(&manifest, &bytes, &size) && bytes == NULL && size == 0);
}

static void try_list(const uint8_t *bytes, size_t size)
{
	struct skep_manifest manifest;
	struct skep_diag diag = {0};
	uint8_t *again;
	size_t again_size;
	bool fine = skep_manifest_decode(bytes, size, &manifest, &diag);
	must(fine == !diag.set);
	tried.lists += fine;
	tried.refused += !fine;
	if (!fine) {
		check_diag(&diag);
		return;
	}
	must(manifest.scenario < manifest.entries && manifest.entry[manifest.scenario].kind == SKEP_MANIFEST_FILE);
	for (uint32_t i = 0; i < manifest.entries; i++) {
		const char *path = manifest.entry[i].path;
		must(path[0] == '/' && strstr(path, "/../") == NULL && strstr(path, "//") == NULL);
		must(i == 0 || skep_manifest_order(manifest.entry[i - 1].path, path) < 0);
	}
	must(skep_manifest_encode(&manifest, &again, &again_size));
	must(again_size == size && memcmp(again, bytes, size) == 0);
	free(again);
	try_long(manifest);
	skep_manifest_finish(&manifest);
}

static struct skep_authority *authority(void)
{
	static struct skep_authority *made;
	struct skep_diag diag = {0};
	if (made == NULL)
		made = skep_authority_create(&diag);
	must(made);
	return made;
}

static bool try_certificate(const uint8_t *bytes, size_t size)
{
	uint8_t again[SKEP_CERTIFICATE_MAX];
	uint64_t run = 0;
	X509 *certificate = skep_certificate_parse(bytes, size);
	tried.certificates += certificate != NULL;
	tried.refused += certificate == NULL;
	if (certificate == NULL)
		return false;
	must(skep_certificate_bytes(certificate, again) <= sizeof again);
	uint32_t rank = skep_certificate_rank(certificate, &run);
	char name[SKEP_CERTIFICATE_NAME];
	if (rank != UINT32_MAX)
		skep_certificate_name(run, rank, name);
	X509_free(certificate);
	return rank == RANK && run == RUN;
}

static void try_key(const uint8_t *bytes, size_t size)
{
	uint8_t certificate[SKEP_CERTIFICATE_MAX];
	size_t length = skep_authority_issue(authority(), RUN, RANK, bytes, size, certificate);
	tried.keys += length > 0;
	tried.refused += length == 0;
	must(length == 0 || try_certificate(certificate, length));
}

/* No bytes are a certificate of a key that was made just now. */
static void try_adopt(const uint8_t *bytes, size_t size)
{
	static struct skep_identity *identity;
	uint8_t own[SKEP_CERTIFICATE_MAX];
	struct skep_diag diag = {0};
	if (identity == NULL)
		identity = skep_identity_create(&diag);
	must(identity);
	size_t length = skep_authority_certificate(authority(), own);
	must(length > 0 && !skep_identity_adopt(identity, bytes, size, own, length, &diag) && diag.set);
	check_diag(&diag);
	diag = (struct skep_diag){0};
	must(!skep_identity_adopt(identity, own, length, bytes, size, &diag));
	check_diag(&diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 1 << 18)
		return 0;
	uint8_t *copy =
		malloc(size > 1 ? size - 1 : 1); /* of exactly that size, so that the sanitizer sees a byte too many */
	must(copy);
	memcpy(copy, data + 1, size - 1);
	if (data[0] == 'm')
		try_list(copy, size - 1);
	else if (data[0] == 'k')
		try_key(copy, size - 1);
	else if (data[0] == 'i')
		try_adopt(copy, size - 1);
	else
		try_certificate(copy, size - 1);
	free(copy);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = damage_files(argv + 1, argc - 1, DAMAGES);
	printf("%u lists, %u keys, %u certificates, %u refused\n", tried.lists, tried.keys, tried.certificates,
		tried.refused);
	return ok && tried.lists > 0 && tried.keys > 0 && tried.certificates > 0 && tried.refused > 0 ? 0 : 1;
}
#endif
