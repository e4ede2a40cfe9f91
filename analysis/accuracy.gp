# SPDX-License-Identifier: Apache-2.0
# Loss against time. Given: title, xlabel, ranges, runs, Title[run], line style per run, $loss (a block per run).
set ylabel 'loss (mean over the round)'
set format y '%g'
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set mytics
set grid xtics ytics mytics lt 1 lw 0.6 lc rgb '#d9d9d9', lt 1 lw 0.4 lc rgb '#ececec'
set key bmargin left vertical maxcols 1 Left reverse spacing 1.2
set bmargin 5 + 1.2 * runs
plot for [i = 1:runs] $loss index i - 1 using 1:2 with linespoints linestyle i title Title[i]
