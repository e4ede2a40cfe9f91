/* SPDX-License-Identifier: Apache-2.0
 *
 * status.h - the exit status of the program.
 */
#pragma once

/* STATUS_SIGNAL plus a signal's number: the command wrote what was finished, and then ends by that signal. */
enum status { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_BAD_INPUT = 2, STATUS_SIGNAL = 128 };
