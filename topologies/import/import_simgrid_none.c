/* SPDX-License-Identifier: Apache-2.0
 *
 * import_simgrid_none.c - takes the place of import_simgrid.c in builds without the library for XML: its error says
 * what to install.
 */
#include "topologies/import/importer.h"

bool skep_import_simgrid(struct skep_importer *importer)
{
	skep_diag_set(importer->diag, importer->options->file[0], 0, 0, NULL,
		"platform files of SimGrid are XML, and this skep was built without expat: install libexpat1-dev (or "
		"expat-devel) and build again");
	return false;
}
