# SPDX-License-Identifier: Apache-2.0
# A law over the losses that it was fitted to. Given: title, remark, ranges, tics, groups, columns, key_lines, Title[group],
# Colour[group], $point and $law (a block per group: tokens, loss).
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set grid xtics ytics mytics lt 1 lw 0.6 lc rgb '#d9d9d9', lt 1 lw 0.4 lc rgb '#ececec'
set logscale xy
set ylabel 'training loss'
set key at screen 0.5, screen 0.012 bottom center vertical maxcols columns maxrows key_lines Left reverse spacing 1.15 samplen 3 width 1
set bmargin 4.7 + 1.15 * key_lines
set lmargin 11
set rmargin 4
set tmargin 4.4 # the remark below the title
set title offset 0, 0.9
set label remark at graph 1, graph 1 offset -0.5, 0.6 right font ',10' textcolor rgb 'gray40'
plot for [i = 1:groups] $point index i - 1 using 1:2 with points pt 6 ps 0.6 lw 0.8 lc rgb Colour[i] notitle, \
     for [i = 1:groups] $law index i - 1 using 1:2 with lines lw 2.4 lc rgb Colour[i] title Title[i]
