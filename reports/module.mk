SRC += reports/figures.c reports/plot.c reports/plot_text.c reports/markup.c reports/html.c \
	reports/html_figure.c reports/sections.c reports/topology.c reports/report.c reports/rank.c
TESTS += reports/rank_test.c
EMBED += reports/report.css
