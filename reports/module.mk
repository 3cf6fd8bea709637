# Reads results only: report, compare, import.
SRC += reports/incast.c reports/rates.c
TESTS += reports/incast_test.c
SRC += reports/figures.c reports/figure_values.c reports/pairs.c reports/plot.c reports/plot_text.c reports/markup.c reports/html.c \
	reports/html_figure.c reports/sections.c reports/topology.c reports/first_screen.c reports/since.c reports/report.c reports/rank.c \
	reports/gate_file.c reports/alike.c reports/compare_load.c reports/compare_judge.c reports/compare_power.c reports/compare_noise.c \
	reports/compare_run.c reports/compare_expected.c reports/value_table.c reports/compare_fleet.c reports/compare_out.c reports/compare.c
SRC += reports/overlay.c reports/overlay_load.c reports/overlay_html.c reports/overlay_text.c reports/overlay_cmd.c
TESTS += reports/overlay_test.c
SRC += reports/training.c reports/training_rows.c reports/training_html.c
TESTS += reports/training_test.c
SRC += reports/claims.c
TESTS += reports/claims_test.c
SRC += reports/import.c reports/import_perftest.c reports/import_collectives.c reports/import_training.c
SRC += reports/chain.c reports/csv.c
TESTS += reports/csv_test.c
TESTS += reports/chain_test.c
SRC += reports/change_points.c reports/history.c
TESTS += reports/import_test.c reports/import_formats_test.c reports/import_wild_test.c
FUZZ += reports/import_fuzz.c
FUZZ += reports/report_fuzz.c reports/gate_file_fuzz.c reports/expected_fuzz.c
TESTS += reports/change_points_test.c
TESTS += reports/compare_fleet_test.c
TESTS += reports/gate_file_test.c reports/compare_power_test.c
TESTS += reports/rank_test.c reports/report_test.c reports/compare_test.c
EMBED += reports/report.css reports/expected.csv
SRC += reports/loss.c reports/loss_html.c
TESTS += reports/loss_test.c
TESTS += reports/topology_test.c
SRC += reports/metric_groups.c reports/prometheus.c reports/markdown.c reports/junit.c
TESTS += reports/prometheus_test.c reports/markdown_test.c
FUZZ += reports/texts_fuzz.c
SRC += reports/headline.c reports/charts.c reports/overview.c reports/png.c
TESTS += reports/png_test.c
