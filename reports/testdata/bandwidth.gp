# Redraw with: gnuplot verbs-bandwidth-bandwidth.gp
set encoding utf8
set colorsequence podo
if (!exists('png')) { png = 0 }
if (!exists('out')) { out = 'verbs-bandwidth-bandwidth.png' }
if (!exists('wide')) { wide = int(640 * png) }
if (!exists('high')) { high = int(430 * png) }
tall = png > 0 ? 430.0 * png / high : 1
if (png > 0) {
	if (strstrt(GPVAL_TERMINALS, 'pngcairo')) {
		set terminal pngcairo size wide,high font 'DejaVu Sans,12' fontscale 0.75*png linewidth png pointscale png noenhanced background '#ffffff'
	} else {
		set terminal png size wide,high font 'DejaVu Sans,12' fontscale 0.75*png linewidth png noenhanced background '#ffffff'
	}
	set output out
} else {
	set terminal svg size 640,430 font 'DejaVu Sans,12' noenhanced background '#ffffff'
	set output 'verbs-bandwidth-bandwidth.svg'
}
set datafile separator "\t"
set border 3 lc rgb '#888888'
set tics nomirror out scale 0.8,0.4 textcolor rgb '#333333'
set grid xtics ytics lc rgb '#e4e4e4' lw 1, lc rgb '#f2f2f2' lw 1
set key at graph 0, screen 1-0.085*tall left top horizontal maxcols 2 Left reverse samplen 2 noautotitle
set tmargin 5.2
set label 2 'RDMA bandwidth against message size' at screen 0.5,1-0.045*tall center font 'DejaVu Sans,14'
set ylabel 'Goodput [Gb/s]'
set xlabel 'Message size'
set bmargin 5.2
set label 1 'Measured on hardware' at screen 0.985,0.03*tall right font 'DejaVu Sans,9' textcolor rgb '#777777'
set logscale x 2
set xrange [853.333:1.25829e+06]
set xtics ('1 KiB' 1024, '' 2048 1, '4 KiB' 4096, '' 8192 1, '16 KiB' 16384, '' 32768 1, '64 KiB' 65536, '' 131072 1, '256 KiB' 262144, '' 524288 1, '1 MiB' 1048576)
set yrange [0:423.521]
plot 'verbs-bandwidth-bandwidth.dat' index 0 using 1:2:3:4 with yerrorlines lc 6 pt 7 ps 0.7 lw 1.8 dt 1 title 'write', \
     'verbs-bandwidth-bandwidth.dat' index 0 using 1:5 with lines lc rgb '#777777' lw 1.3 dt 2 title 'bound', \
     'verbs-bandwidth-bandwidth.dat' index 0 using 1:($9>0 ? $2 : 1/0) with points pt 2 ps 1.8 lw 2 lc rgb '#c0392b' title 'suspect or invalid'
