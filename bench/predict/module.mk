# Claims judged by arithmetic.
SRC += bench/predict/claims.c bench/predict/claims_csv.c bench/predict/claims_subject.c bench/predict/claims_row.c \
	bench/predict/claims_rules.c bench/predict/claims_compute.c bench/predict/claims_memory.c \
	bench/predict/claims_traffic.c bench/predict/claims_network.c
TESTS += bench/predict/claims_test.c bench/predict/claims_row_test.c
FUZZ += bench/predict/claims_fuzz.c
