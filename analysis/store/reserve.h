/* SPDX-License-Identifier: Apache-2.0
 *
 * reserve.h - room on a disk that is kept for the last word of a run, should the disk be full by then. Private to analysis/.
 */
#pragma once

/* Beside the file of this name, in a file without one: nothing is left of it, however the process ends. Returns what
 * skep_reserve_give_back() takes; -1: the file system has no such files, or no room. */
int skep_reserve_take(const char *path);
void skep_reserve_give_back(int reserve); /* -1 is fine */
