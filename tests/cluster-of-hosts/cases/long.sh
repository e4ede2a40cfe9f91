# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# long.sh - as losses.sh, a hundred of them in one run.

wanted losses || asked+=(none)
. "$hosts/cases/losses.sh"
random_losses long "${LOSSES:-100}" 3
