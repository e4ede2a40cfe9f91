# SPDX-License-Identifier: Apache-2.0
# Bytes against stages, parameters and steps; above of passes, below of reductions. Given: heading, classes, Class[i], Colour[i], own
# (stages of the scenario), most_stages, parameters, steps, period, $stages_k (stages, a column for each class, the closed form),
# $parameters_k (parameters, two columns for each: of a wider model, of a deeper one), $steps_k (steps, and as the first), and the
# unit of each, ..._unit[k + 1]; k is 0 for passes and 1 for reductions, and Moves[k + 1] says whether the scenario has any.
array Row[2]
Row[1] = 'passes'
Row[2] = 'reductions'
array Name[3]
Name[1] = 'against stages'
Name[2] = sprintf('against parameters (%d stage%s)', own, own == 1 ? '' : 's')
Name[3] = sprintf('over the run (%d stage%s)', own, own == 1 ? '' : 's')
formula = 'closed form: 2 B (S − 1) b L H of passes, 2 (n − 1) V of each reduction'
if (period > 1) {
    formula = formula.sprintf(', one in %d steps', period)
}
grey = '#404040'
# Where curves are equal, the gaps of the later ones, which are thinner, show the earlier.
do for [i = 1:classes] {
    set style line i lw 7 - 5.0 * i / classes lc rgb Colour[i] dt 1
    if (i > 1) {
        set style line i dt (i == 2 ? 28 : i == 3 ? 14 : 7, 18)
    }
}
set border 3 lw 1.2 lc rgb 'gray30'
set tics nomirror out
set grid xtics ytics lt 1 lw 0.6 lc rgb '#d9d9d9'
set label 1 heading at screen 0.5, 0.965 center font ',16'
do for [i = 1:classes] {
    set arrow 10 + i from screen 0.065 + (i - 1) * 0.92 / 5, 0.062 rto screen 0.04, 0 nohead ls i front
    set label 10 + i Class[i] at screen 0.111 + (i - 1) * 0.92 / 5, 0.062 left
}
set arrow 20 from screen 0.065, 0.025 rto screen 0.04, 0 nohead lw 1.8 dt 2 lc rgb grey front
set label 20 formula at screen 0.111, 0.025 left
set multiplot
set key off
do for [k = 0:1] {
    low = k == 0 ? 0.575 : 0.165
    set tmargin at screen low + 0.32
    set bmargin at screen low
    # Stages
    set lmargin at screen 0.065
    set rmargin at screen 0.325
    set title k == 0 ? Name[1] : '' offset 0, -0.3
    set ylabel sprintf('%s (%s a step)', Row[k + 1], Stages_unit[k + 1]) offset -0.5, 0
    set xlabel k == 0 ? '' : 'stages S' offset 0, 0.4
    set format x '%g'
    set xrange [0.5:most_stages + 0.5]
    set yrange [0:*]
    set arrow 1 from own, graph 0 to own, graph 1 nohead lw 1 dt 3 lc rgb 'gray50'
    if (own > 0.7 * most_stages) {
        set label 2 "the scenario's" at own, graph 0.96 right offset -0.4, 0 textcolor rgb 'gray40' font ',10'
    } else {
        set label 2 "the scenario's" at own, graph 0.96 left offset 0.4, 0 textcolor rgb 'gray40' font ',10'
    }
    plot for [i = 1:classes] sprintf('$stages_%d', k) using 1:(column(i + 1)) with linespoints ls i pt 7 ps 0.7, \
        sprintf('$stages_%d', k) using 1:(column(classes + 2)) with lines lw 1.8 dt 2 lc rgb grey
    if (k == 0) { # written once is enough
        unset label 1
        unset label 20
        unset arrow 20
        do for [i = 1:classes] {
            unset label 10 + i
            unset arrow 10 + i
        }
    }
    # Parameters
    set lmargin at screen 0.4
    set rmargin at screen 0.655
    set title k == 0 ? Name[2] : ''
    set ylabel sprintf('%s (%s a step)', Row[k + 1], Parameters_unit[k + 1]) offset -0.5, 0
    set xlabel k == 0 ? '' : 'parameters V'
    set logscale x
    set format y '%g'
    set format x '%.0s%c'
    if (Moves[k + 1]) {
        set logscale y
        set autoscale y
    } else { # zero is on no logarithmic axis
        set yrange [0:1]
    }
    set xrange [parameters / 10:parameters * 10]
    set arrow 1 from parameters, graph 0 to parameters, graph 1 nohead lw 1 dt 3 lc rgb 'gray50'
    set label 2 k == 0 ? 'solid: wider, as √V' : 'as V' at graph 0.03, 0.96 left offset 0, 0 textcolor rgb 'gray40' font ',10'
    set label 3 k == 0 ? 'dotted: deeper instead of wider' : '' at graph 0.03, 0.90 left textcolor rgb 'gray40' font ',10'
    plot for [i = 1:classes] sprintf('$parameters_%d', k) using 1:(column(2 * i)) with lines ls i, \
        for [i = 1:classes] sprintf('$parameters_%d', k) using 1:(k == 0 ? column(2 * i + 1) : NaN) with lines lw 2 dt 3 lc rgb Colour[i], \
        sprintf('$parameters_%d', k) using 1:(column(2 * classes + 2)) with lines lw 1.8 dt 2 lc rgb grey
    unset logscale
    # Steps
    set lmargin at screen 0.725
    set rmargin at screen 0.978
    set title k == 0 ? Name[3] : ''
    set ylabel sprintf('%s (%s since the start)', Row[k + 1], Steps_unit[k + 1]) offset -0.5, 0
    set xlabel k == 0 ? '' : 'steps'
    set format x '%g'
    set xrange [0:steps]
    set yrange [0:*]
    unset arrow 1
    unset label 2
    unset label 3
    plot for [i = 1:classes] sprintf('$steps_%d', k) using 1:(column(i + 1)) with lines ls i, \
        sprintf('$steps_%d', k) using 1:(column(classes + 2)) with lines lw 1.8 dt 2 lc rgb grey
}
unset multiplot
