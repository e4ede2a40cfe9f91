# SPDX-License-Identifier: Apache-2.0
# Cost against time. Given: title, xlabel, xrange, runs, Title[run], Colour[run], Dash[run], $cost (a block per run: time, USD).
set ylabel 'cost of all workers since the start (USD)'
set yrange [0:*]
set format y '%g'
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set mytics
set grid xtics ytics mytics lt 1 lw 0.6 lc rgb '#d9d9d9', lt 1 lw 0.4 lc rgb '#ececec'
set key bmargin left vertical maxcols 1 Left reverse spacing 1.2
set bmargin 5 + 1.2 * runs
plot for [i = 1:runs] $cost index i - 1 using 1:2 with lines lw 2.5 dt Dash[i] lc rgb Colour[i] title Title[i]
