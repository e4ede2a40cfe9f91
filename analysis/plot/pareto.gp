# SPDX-License-Identifier: Apache-2.0
# Time against cost. Given: title, xlabel, ylabel, ranges and scales, labels, Runs (how many), RunsDot (their point type; -1: none is seen), Front, Other, Beaten (what
# the large dots are) and Warning (empty: none), $dots (runs: cost, time), $points (means over seeds: cost, time, on a front?),
# $front and $other (those on the front of a world, by cost; other: empty with one world alone).
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set grid xtics ytics lt 1 lw 0.6 lc rgb '#d9d9d9'
set key bmargin left vertical maxcols 1 Left reverse spacing 1.2
set bmargin 7.4 + 1.2 * ((Warning ne '') + (Other ne '') + (Beaten ne ''))
set style textbox opaque noborder fillcolor rgb '#60ffffff' margins 0.4, 0.2
plot $dots using 1:2 with points pt 7 ps 0.5 lc rgb '#b0b0b0' notitle, \
     NaN with points pt RunsDot ps 0.5 lc rgb '#b0b0b0' title Runs, \
     $points using 1:($3 == 0 ? $2 : NaN) with points pt 7 ps 1.1 lc rgb '#888888' title Beaten, \
     $front using 1:2 with steps lw 2.2 lc rgb '#0072B2' notitle, \
     $other using 1:2 with steps lw 2.2 lc rgb '#D55E00' notitle, \
     $front using 1:2 with points pt 7 ps 1.4 lc rgb '#0072B2' title Front, \
     $other using 1:2 with points pt 7 ps 1.4 lc rgb '#D55E00' title Other, \
     NaN with points pt -1 title Warning
