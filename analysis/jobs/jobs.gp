# SPDX-License-Identifier: Apache-2.0
# Completion times of jobs. Given: title, xlabel, xrange, scale, policies, Title[i] and Colour[i] of each, and $policyI (time, per cent
# of the jobs). What follows plots them.
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set grid xtics ytics lt 1 lw 0.6 lc rgb '#d9d9d9'
set format x '%g'
set ylabel 'jobs that are done (%)'
set yrange [0:100]
set key right bottom Left reverse spacing 1.2
