# SPDX-License-Identifier: Apache-2.0
# Share of the best possible throughput against time. Given: title, xlabel, xrange, groups, Title[group], Colour[group], $share
# (a block per group: time, mean, low, high).
set ylabel '% of the best possible throughput'
set yrange [0:105]
set ytics 20
set mytics 2
set format y '%g %%'
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set grid xtics ytics mytics lt 1 lw 0.6 lc rgb '#d9d9d9', lt 1 lw 0.4 lc rgb '#ececec'
set key bmargin left vertical maxcols 1 Left reverse spacing 1.2
set bmargin 5 + 1.3 * groups
set style fill transparent solid 0.16 noborder
plot for [i = 1:groups] $share index i - 1 using 1:3:4 with filledcurves lc rgb Colour[i] notitle, \
     for [i = 1:groups] $share index i - 1 using 1:2 with lines lw 2.5 lc rgb Colour[i] title Title[i]
