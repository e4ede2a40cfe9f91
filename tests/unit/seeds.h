/* SPDX-License-Identifier: Apache-2.0
 *
 * seeds.h - how many seeds find the best allocation by each search. Under the sanitizers further seeds go through the same
 * code at a quarter of the speed, so there are two of them; that each of ten finds it, the build without says.
 */
#pragma once

#if !defined(__SANITIZE_ADDRESS__) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__
enum { SEARCH_SEEDS = 2 };
#else
enum { SEARCH_SEEDS = 10 };
#endif
