# models: one block per module.
check_PROGRAMS += tests/unit/test_models_mwp tests/unit/test_models_power tests/unit/test_models_store
TESTS += tests/unit/test_models_mwp tests/unit/test_models_power tests/unit/test_models_store
tests_unit_test_models_mwp_SOURCES = tests/unit/test_models_mwp.c
tests_unit_test_models_mwp_LDADD = $(MODELS_LIBS) $(TEST_LDADD)
tests_unit_test_models_power_SOURCES = tests/unit/test_models_power.c
tests_unit_test_models_power_LDADD = $(MODELS_LIBS) $(TEST_LDADD)
tests_unit_test_models_store_SOURCES = tests/unit/test_models_store.c
tests_unit_test_models_store_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
tests_unit_test_models_store_LDADD = $(MODELS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/test_ptx_count
TESTS += tests/unit/test_ptx_count
tests_unit_test_ptx_count_SOURCES = tests/unit/test_ptx_count.c
tests_unit_test_ptx_count_LDADD = $(MODELS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/test_models_soft
TESTS += tests/unit/test_models_soft
tests_unit_test_models_soft_SOURCES = tests/unit/test_models_soft.c
tests_unit_test_models_soft_LDADD = device/libdevice.a $(MODELS_LIBS) $(CONFUSE_LIBS) -lpthread $(TEST_LDADD)
