# SPDX-License-Identifier: Apache-2.0
# How searches came down, a panel for each network. Given: heading, columns, rows, head (part of the height above the panels), keys,
# Key[i], Colour[i], Width[i] and Dot[i] of the methods. What follows sets title, ylabel and ranges of each panel, and plots it.
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set grid xtics ytics lt 1 lw 0.6 lc rgb '#d9d9d9'
set logscale x
set format x '%g'
set key off
set label 1 heading at screen 0.5, screen 1 - 0.25 * head center font ',15'
left = 0.5 - 0.5 * (columns == 1 ? 0.96 : 0.8)
step = (1 - 2 * left) / keys
do for [i = 1:keys] {
    x = left + (i - 1) * step
    set label 1 + i Key[i] at screen x + 0.03, screen 1 - 0.68 * head left textcolor rgb 'gray20'
    if (Dot[i]) {
        set label 30 + i '' at screen x + 0.018, screen 1 - 0.68 * head point pt 7 ps 1.3 lc rgb Colour[i]
    } else {
        set arrow i from screen x, screen 1 - 0.68 * head rto screen 0.024, screen 0 nohead lw Width[i] lc rgb Colour[i] front
    }
}
set multiplot layout rows, columns margins (columns == 1 ? 0.115 : 0.06), 0.985, (rows == 1 ? 0.12 : 0.09), 1 - head - (rows == 1 ? 0.02 : 0.045) \
    spacing (columns == 3 ? 0.055 : 0.08), (rows > 1 ? 0.16 : 0.1)
set title offset 0, -0.3
