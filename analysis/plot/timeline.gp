# SPDX-License-Identifier: Apache-2.0
# Timeline of some rounds. Given: title, timelabel, xrange, workers, ytics, stage names and lines, round lines, groups, Group[i],
# Title[i], Colour[i], $ops (begin, end, upper, lower, group).
set yrange [workers - 0.5:-0.5]
set lmargin at screen 0.11
set rmargin 3
set tmargin 5
set title offset 0, 1.2
set xlabel timelabel
set border 3 lw 1.2 lc rgb 'gray30'
set xtics nomirror out
set bmargin 7
set key bmargin center horizontal samplen 1.5
do for [i = 0:workers - 1] {
    set object i + 1 rectangle from graph 0, first i - 0.42 to graph 1, first i + 0.42 behind fs solid noborder fc rgb '#eeeeee'
}
set style fill solid 1.0 noborder
# From behind: who is away or downloads lies under what was done.
plot for [i = groups:1:-1] $ops using (($1 + $2) / 2):($5 == Group[i] ? ($3 + $4) / 2 : NaN):1:2:3:4 with boxxyerror \
    lc rgb Colour[i] notitle, for [i = 1:groups] NaN with boxes fc rgb Colour[i] title Title[i]
