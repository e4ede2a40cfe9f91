# SPDX-License-Identifier: Apache-2.0
# Throughput against time, and below it how well the workers are spread. Given: title, timelabel, xrange, groups, key_part (of the
# height, for the key), key_font (of the key), remark, bands, Title[group], Colour[group], Dash[group], $rate and $share (a
# block per group: time, mean, low, high).
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set mxtics 2
set grid xtics ytics mytics lt 1 lw 0.6 lc rgb '#d9d9d9', lt 1 lw 0.4 lc rgb '#ececec'
set style fill transparent solid 0.16 noborder
set lmargin at screen 0.095
set rmargin at screen 0.97
set multiplot
low = key_part + 0.09
set tmargin at screen 0.94
set bmargin at screen low + 0.26 * (1 - key_part)
set ylabel 'samples per second'
set yrange [0:*]
set format y '%g'
set format x ''
unset xlabel
unset key
set label 1 bands at graph 0.99, graph 0.04 right font ',10' textcolor rgb 'gray40' front
plot for [i = 1:groups] $rate index i - 1 using 1:3:4 with filledcurves lc rgb Colour[i] notitle, \
     for [i = 1:groups] $rate index i - 1 using 1:2 with lines lw 2.5 dt Dash[i] lc rgb Colour[i] notitle
unset title
unset label 1
set tmargin at screen low + 0.21 * (1 - key_part)
set bmargin at screen low
set ylabel 'spread, % of best'
set yrange [0:105]
set ytics 50
set mytics 2
set format y '%g %%'
set format x '%g'
set xlabel timelabel
set label remark at graph 0.99, graph 0.1 right font ',10' textcolor rgb 'gray40' front
plot for [i = 1:groups] $share index i - 1 using 1:3:4 with filledcurves lc rgb Colour[i] notitle, \
     for [i = 1:groups] $share index i - 1 using 1:2 with lines lw 2.5 dt Dash[i] lc rgb Colour[i] notitle
# The key by itself, over the whole picture: gnuplot gives it no more rows than a plot has room for.
unset border
unset tics
unset grid
unset label
unset xlabel
unset ylabel
set tmargin at screen 1
set bmargin at screen 0
set key at screen 0.02, screen 0.005 bottom left vertical maxcols 1 Left reverse spacing 1.2 font key_font
plot for [i = 1:groups] NaN with lines lw 2.5 dt Dash[i] lc rgb Colour[i] title Title[i]
unset multiplot
