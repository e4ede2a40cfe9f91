#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bare.sh - do both commands of README.md work on a Debian in which nothing is installed yet? Makes one with debootstrap, of the release
# of this machine and with its sources of packages, clones this tree into a copy of it, and runs `./quickstart` there, then
# `./quickstart test some`. Skipped, with the reason, where no Debian can be made.
#
# The bare Debian and the packages that were fetched are kept in ${XDG_CACHE_HOME:-~/.cache}/skep; the copy is new each time.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
. tests/tap.sh

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/skep
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
debian=$cache/bare-$codename
fresh=$debian.$$

cannot() { # cannot REASON
	skip 'both commands of README.md on a bare Debian' "$1"
	plan
	exit 0
}

# Where this machine has its packages from, how it gets there, and whom it trusts; but not what a container leaves out.
take_sources() { # take_sources ROOT
	local path
	rm -rf "$1"/etc/apt/sources.list*
	for path in /etc/apt/{sources.list,sources.list.d,apt.conf,apt.conf.d,preferences.d,trusted.gpg.d,keyrings} /usr/share/keyrings \
		/etc/resolv.conf /etc/hosts; do
		[ -e "$path" ] || continue
		mkdir -p "$1$(dirname "$path")"
		rm -rf "$1$path"
		cp -RL "$path" "$1$path" || return
	done
	rm -f "$1"/etc/apt/apt.conf.d/docker-*
}

# As a whole or not at all: one that was cut off must not be taken for a whole one.
make_debian() {
	local mirror
	mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' | sed -n "s/^$codename //p" | head -n 1)
	[ -n "$mirror" ] || cannot "apt names no source of $codename"
	debootstrap --variant=minbase "$codename" "$fresh" "$mirror" >"$cache/bare.log" 2>&1 ||
		cannot "no Debian can be made: $(tail -n 1 "$cache/bare.log")"
	rm -f "$fresh"/var/cache/apt/archives/*.deb
	mv "$fresh" "$debian"
}

# Mounts end with the command.
inside() { # inside COMMAND...: in the copy, in the clone
	unshare -m bash -c 'set -e
		root=$1 archives=$2
		shift 2
		mount --make-rprivate /
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount --rbind /sys "$root/sys"
		mount --bind "$archives" "$root/var/cache/apt/archives"
		mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
		exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C \
			${http_proxy+"http_proxy=$http_proxy"} ${https_proxy+"https_proxy=$https_proxy"} \
			chroot "$root" sh -c "cd /skep && exec \"\$@\"" sh "$@"' inside "$fresh" "$cache/archives" "$@" </dev/null
}

[ "$(id -u)" = 0 ] || cannot 'a chroot needs root'
grep -q '^ID=debian$' /etc/os-release || cannot 'this system is not a Debian'
for program in debootstrap unshare chroot git; do
	command -v "$program" >/dev/null || cannot "$program is not installed"
done
unshare -m true 2>/dev/null || cannot 'this kernel or container lets nobody mount'
trap 'rm -rf --one-file-system "$fresh"' EXIT
mkdir -p "$cache/archives/partial"
[ -d "$debian" ] || make_debian
cp -a "$debian" "$fresh" && take_sources "$fresh" || cannot 'the bare Debian cannot be copied'
git -c safe.directory='*' clone -q --no-hardlinks . "$fresh/skep" || cannot 'this tree is no clone'
inside apt-get update >"$cache/bare.log" 2>&1 || cannot "no packages can be had: $(tail -n 1 "$cache/bare.log")"

# What failed stands at the end of what quickstart prints.
works() { # works NAME COMMAND...
	local name=$1
	shift
	if inside "$@" >"$cache/bare.log" 2>&1; then pass "$name"; else fail "$name" "$(tail -n 30 "$cache/bare.log")"; fi
}

works './quickstart' ./quickstart
for file in skep.db accuracy.png matrix.png; do
	check "./quickstart leaves $file" test -s "$fresh/skep/$file"
done
works './quickstart test some' ./quickstart test some
plan
