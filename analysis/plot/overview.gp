# SPDX-License-Identifier: Apache-2.0
# Timeline of a whole run. Given: title, timelabel, xrange, x2tics (rounds), workers, ytics, stage names and lines, main_top,
# main_bottom, panel_top, panel_bottom (parts of the height), panel (0: without), stages, groups, Title[i], Colour[i], $cells
# (time, row, red, green, blue); with the panel $crowd (time, then the sums of the workers of the stages and of those that
# download), Crowd[i] (colours), NameAt[i] (height of the name of a stage, -1: none).
set lmargin at screen 0.11
set rmargin at screen 0.975
set tmargin at screen main_top
set bmargin at screen main_bottom
set title offset 0, 0.1
set border 3 lw 1.2 lc rgb 'gray30'
set xtics nomirror out
set key at screen 0.98, screen 0.004 bottom right horizontal maxrows 2 samplen 1.5
set style fill solid 1.0 noborder
# Behind the stage that a worker takes up: it stands on bars of every colour.
set style textbox opaque noborder fillcolor rgb 'white' margins 0.5, 0.5
set yrange [workers - 0.5:-0.5]
set link x2
if (panel) {
    set multiplot
    set format x ''
    plot $cells using 1:2:3:4:5 with rgbimage notitle
    unset label
    unset arrow
    unset title
    unset x2tics
    set format x '%g'
    set xlabel timelabel
    set ytics nomirror auto
    if (workers < 8) {
        set ytics 1
    }
    set tmargin at screen panel_top
    set bmargin at screen panel_bottom
    set yrange [0:workers]
    set ylabel 'workers by stage' offset 1, 0
    do for [i = 1:stages] {
        if (NameAt[i] >= 0) {
            set label i sprintf('stage %d', i - 1) at graph 0.005, first NameAt[i] left front font ',11'
        }
    }
    plot for [i = 1:stages + 1] $crowd using 1:(column(i + 1)):(column(i + 2)) with filledcurves fc rgb Crowd[i] notitle, \
        for [i = 1:groups] NaN with boxes fc rgb Colour[i] title Title[i]
    unset multiplot
} else {
    set xlabel timelabel
    plot $cells using 1:2:3:4:5 with rgbimage notitle, for [i = 1:groups] NaN with boxes fc rgb Colour[i] title Title[i]
}
