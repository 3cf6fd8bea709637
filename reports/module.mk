SRC += reports/incast.c reports/rates.c
TESTS += reports/incast_test.c
SRC += reports/figures.c reports/figure_values.c reports/pairs.c reports/plot.c reports/plot_text.c reports/markup.c reports/html.c \
	reports/html_figure.c reports/sections.c reports/topology.c reports/report.c reports/rank.c \
	reports/compare_load.c reports/compare_judge.c reports/compare.c
SRC += reports/training.c reports/training_rows.c reports/training_html.c
TESTS += reports/training_test.c
SRC += reports/claims.c
TESTS += reports/claims_test.c
TESTS += reports/rank_test.c reports/report_test.c reports/compare_test.c
EMBED += reports/report.css
SRC += reports/loss.c reports/loss_html.c
TESTS += reports/loss_test.c
TESTS += reports/topology_test.c
