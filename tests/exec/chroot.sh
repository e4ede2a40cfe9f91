#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# chroot.sh COMMAND... - runs a command in a Debian 13 of its own, in which this tree's root is /src (read-only) and skep is built in
# /build: for tests that need Open MPI 5 on a machine that has an older one. Needs root, debootstrap and unshare. What it
# installs is kept in ${XDG_CACHE_HOME:-~/.cache}/skep/trixie-*, and made anew where that is missing: a minute or two.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/skep
packages=(gcc libc6-dev meson ninja-build pkg-config libyaml-dev libcjson-dev libxxhash-dev libsqlite3-dev libgsl-dev
	libopenblas-dev libssl-dev libopenmpi-dev openmpi-bin python3)
debian=$cache/trixie-$(cksum <<<"${packages[*]}" | cut -d ' ' -f 1) # made anew for other packages

cannot() {
	echo "$*" >&2
	exit 77
}

[ "$(id -u)" = 0 ] || cannot 'a chroot needs root'
command -v debootstrap >/dev/null || cannot 'debootstrap is not installed'
unshare -m true 2>/dev/null || cannot 'this kernel or container lets nobody mount'

# inside ROOT COMMAND...: with mounts of its own, which end with it
inside() {
	SRC=$root unshare -m bash -c 'set -e
		R=$1; shift
		mount --make-rprivate /
		mount -t proc proc "$R/proc"
		mount --rbind /dev "$R/dev"
		mount --rbind /sys "$R/sys"
		mount -t tmpfs -o mode=1777 tmpfs "$R/tmp"
		mkdir -p "$R/src"
		mount --bind "$SRC" "$R/src"
		mount -o remount,bind,ro "$R/src"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C chroot "$R" "$@"' inside "$@"
}

# As a whole or not at all: a call that was cut off must not leave half of it behind.
make_debian() {
	local new=$debian.$$
	trap 'rm -rf --one-file-system "$new"' EXIT
	mkdir -p "$cache"
	debootstrap --variant=minbase --include=ca-certificates trixie "$new" >"$cache/log" 2>&1 &&
		inside "$new" apt-get update >>"$cache/log" 2>&1 &&
		inside "$new" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}" \
			>>"$cache/log" 2>&1 || cannot "Debian 13 cannot be installed: $(tail -n 3 "$cache/log")"
	rm -rf "$new"/var/cache/apt/archives/*.deb
	mv "$new" "$debian" 2>/dev/null || [ -d "$debian" ] # somebody else may have been faster
	trap - EXIT
}

[ -d "$debian" ] || make_debian
inside "$debian" sh -c 'set -e
	build() {
		{ [ -f /build/build.ninja ] || meson setup /build /src -Dmpi=enabled -Ddebug=false -Doptimization=1; } && nice ninja -C /build skep
	}
	build >/tmp/log 2>&1 || { rm -rf /build; build >/tmp/log 2>&1; } || { cat /tmp/log >&2; exit 1; } # it may be of another tree
	cd /src && exec "$@"' sh "$@"
