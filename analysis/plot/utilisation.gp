# SPDX-License-Identifier: Apache-2.0
# Utilisation over time: what all panels have in common. Panels follow: one map of the workers for each run, and below them lines.
# Given: title, timelabel, xrange, $lines (a block for each line: time, percent).
set border 3 lw 1.2 lc rgb 'gray30'
set xtics nomirror out
set lmargin at screen 0.11
set rmargin at screen 0.91
set palette defined (0 '#440154', 1 '#414487', 2 '#2a788e', 3 '#22a884', 4 '#7ad151', 5 '#fde725')
set cbrange [0:100]
set cbtics 25 format '%g %%' font ',11'
set title offset 0, 1.7
unset key
set multiplot
