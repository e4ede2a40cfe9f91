# SPDX-License-Identifier: Apache-2.0
# Curves of many runs. Given: title, labels, ranges, scales, remark, agreement (of two worlds, or empty), groups, columns, key_lines,
# key_font, Title[group], Colour[group], Points[group] (1: a real run), Dash[group], $mean (a block per group: x, mean, low, high).
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set mxtics
set mytics
set grid xtics ytics mytics lt 1 lw 0.6 lc rgb '#d9d9d9', lt 1 lw 0.4 lc rgb '#ececec'
set style fill transparent solid 0.18 noborder
set key at screen 0.5, screen 0.012 bottom center vertical maxcols columns maxrows key_lines Left reverse spacing 1.15 samplen 3 width 1 font key_font
set bmargin 4.7 + 1.15 * key_lines
set lmargin 11
set rmargin 4
set tmargin 4.4 # the remark below the title
set title offset 0, 0.9
set label agreement at graph 0, graph 1 offset 0.5, 0.7 left font ',12'
set label remark at graph 1, graph 1 offset -0.5, 0.6 right font ',10' textcolor rgb 'gray40'
plot for [i = 1:groups] $mean index i - 1 using 1:3:4 with filledcurves lc rgb Colour[i] notitle, \
     for [i = 1:groups] $mean index i - 1 using 1:2 with lines lw (Points[i] ? 1.2 : 2.4) dt Dash[i] lc rgb Colour[i] \
         title (Points[i] ? '' : Title[i]), \
     for [i = 1:groups] $mean index i - 1 using 1:(Points[i] ? $2 : NaN) every Every[i] with points pt 6 ps 1.1 lw 1.4 \
         lc rgb Colour[i] title (Points[i] ? Title[i] : '')
