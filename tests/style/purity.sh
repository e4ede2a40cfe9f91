#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# purity.sh LIBRARY FUNCTION - core/ and planning/search/ are pure: the library, which has this function, asks the
# outside for nothing but a few memory functions, assert's message and the compiler's own runtime; and core/purity.h refuses
# what it is meant to refuse.
set -u
. tests/tap.sh
needs nm gcc

allowed='memcpy|memset|memmove|memcmp|__mem(cpy|set|move)_chk|__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_'
runtime='__(asan|ubsan|sanitizer|tsan|gcov|llvm|sanitizer_cov)_.*|__(u?divti3|u?modti3|multi3|float[a-z]+|fix[a-z]+)'

outside() { # what the library does not define itself
	nm "$1" | awk '
		NF == 2 && $1 == "U" { wanted[$2] = 1 }
		NF == 3 { defined[$3] = 1 }
		END { for (name in wanted) if (!(name in defined)) print name }' | grep -vxE "$allowed|$runtime"
}

refused() { # refused SOURCE: does core's compilation stop at it, though it is C?
	printf '%s\n' "$1" | ${CC:-gcc} -std=c17 -w -I. -fsyntax-only -x c - || return 1
	! printf '%s\n' "$1" | ${CC:-gcc} -std=c17 -w -I. -include core/purity.h -fsyntax-only -x c - 2>/dev/null
}

library=${1:?usage: purity.sh LIBRARY FUNCTION} function=${2:?usage: purity.sh LIBRARY FUNCTION}
found=$(outside "$library")
if nm "$library" | grep -q " T $function\$" && [ -z "$found" ]; then
	pass 'no undefined symbol but the allowed'
else
	fail 'no undefined symbol but the allowed' "${found:-$function is not in $library}"
fi

check 'memory is refused' refused 'void *malloc(unsigned long); void *f(void) { return malloc(1); }'
check 'free is refused' refused 'void free(void *); void f(void *p) { free(p); }'
check 'a clock is refused' refused 'long time(long *); long f(void) { return time(0); }'
check 'chance is refused' refused 'int rand(void); int f(void) { return rand(); }'
check 'the environment is refused' refused 'char *getenv(const char *); char *f(void) { return getenv("HOME"); }'
check 'exit is refused' refused 'void exit(int); void f(void) { exit(0); }'
for header in stdio stdlib time unistd pthread sys/mman sys/socket sys/time; do
	check "<$header.h> is refused" refused "#include <$header.h>"
done
plan
