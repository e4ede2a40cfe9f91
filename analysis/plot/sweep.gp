# SPDX-License-Identifier: Apache-2.0
# One figure of a sweep against one key. Given: title, xlabel, ylabel, xtics, ranges and scales, Style (of lines: words on the x
# axis are not joined), lines, Title[line], Colour[line], $sweep (a block per line: x, mean, standard deviation over the seeds).
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set grid xtics ytics lt 1 lw 0.6 lc rgb '#d9d9d9'
set key bmargin left vertical maxcols 1 Left reverse spacing 1.2
set bmargin 5 + 1.2 * lines
set errorbars 1.0
plot for [i = 1:lines] $sweep index i - 1 using 1:2:3 with yerrorbars pt 7 ps 0.4 lw 1.4 lc rgb Colour[i] notitle, \
     for [i = 1:lines] $sweep index i - 1 using 1:2 with @Style pt 7 ps 1.1 lw 2.5 lc rgb Colour[i] title Title[i]
