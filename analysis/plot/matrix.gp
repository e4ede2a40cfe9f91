# SPDX-License-Identifier: Apache-2.0
# Bandwidth matrix. Given: title, colour scale and its label, tics, stage names and lines, workers, edge (where the place
# bands begin; -0.5 without), White (what cells without a value are), Single (the value of a matrix that has but one, which has
# the colour in the middle of the scale; else empty), places, Place[place] with line styles, $cells (row = sender).
set xlabel 'receiver (worker)' offset 0, 0.3
set label 'sender (worker)' at graph 0, graph 0.5 center offset -8, 0 rotate by 90 # left of the names, whatever the tics take
set xrange [edge:workers - 0.5]
set yrange [workers - 1 - edge:-0.5]
set size ratio 1
set lmargin 12
set tmargin 5
set bmargin 5
set title offset 0, 1.5
set border 0
set palette defined (0 '#440154', 1 '#472c7a', 2 '#3b518b', 3 '#2c718e', 4 '#21908d', 5 '#27ad81', 6 '#5cc863', 7 '#aadc32', 8 '#fde725')
set cblabel offset 1.5, 0
set key outside below center horizontal samplen 1.5
if (Single ne '') {
    unset colorbox
}
plot $cells matrix with image notitle, \
    for [i = 1:(Single eq '' ? 0 : 1)] NaN with boxes fs solid noborder lc rgb '#21908d' title Single, \
    for [i = 1:places] NaN with boxes fs solid noborder linestyle i title Place[i], \
    NaN with boxes fs solid border lc rgb 'gray50' fc rgb 'white' title White
