# SPDX-License-Identifier: Apache-2.0
# Which job had how many machines when. Given: panels, xrange, xlabel, jobs, machines (the most that a job had), step (of the marks of these), names (are jobs named?),
# and for each policy Title[i]. What follows begins a multiplot; a panel for each policy comes behind it.
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set grid xtics lt 1 lw 0.6 lc rgb '#d9d9d9'
set format x '%g'
set yrange [jobs - 0.5:-0.5]
set palette defined (0 '#a6cbe8', 1 '#083a7a')
set cbrange [0:machines]
set cblabel 'machines'
set cbtics step
set colorbox user origin screen 0.915, graph 0 size screen 0.015, graph 1
unset key
set tmargin 3
set bmargin 3.5
set lmargin at screen names ? 0.16 : 0.08
set rmargin at screen 0.9
