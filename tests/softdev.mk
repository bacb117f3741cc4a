# soft device tests
DEVICE_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD) -lpthread -lm

check_PROGRAMS += tests/unit/test_device_sched
tests_unit_test_device_sched_SOURCES = tests/unit/test_device_sched.c tests/unit/exec_double.h tests/unit/exec_double.c
tests_unit_test_device_sched_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/test_device_sched

check_PROGRAMS += tests/unit/test_device_heap tests/unit/test_device_space tests/unit/test_device_timing tests/unit/test_catalog
tests_unit_test_device_heap_SOURCES = tests/unit/test_device_heap.c
tests_unit_test_device_heap_LDADD = $(DEVICE_LDADD)
tests_unit_test_device_space_SOURCES = tests/unit/test_device_space.c
tests_unit_test_device_space_LDADD = $(DEVICE_LDADD)
tests_unit_test_device_timing_SOURCES = tests/unit/test_device_timing.c
tests_unit_test_device_timing_LDADD = $(DEVICE_LDADD)
tests_unit_test_catalog_SOURCES = tests/unit/test_catalog.c
tests_unit_test_catalog_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/test_device_heap tests/unit/test_device_space tests/unit/test_device_timing tests/unit/test_catalog

check_PROGRAMS += tests/unit/test_device_soft
tests_unit_test_device_soft_SOURCES = tests/unit/test_device_soft.c
tests_unit_test_device_soft_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/test_device_soft

check_PROGRAMS += tests/unit/test_device_preempt
tests_unit_test_device_preempt_SOURCES = tests/unit/test_device_preempt.c tests/unit/softdev_rig.h tests/unit/exec_double.h tests/unit/exec_double.c
tests_unit_test_device_preempt_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/test_device_preempt

check_PROGRAMS += tests/unit/test_device_scaled
tests_unit_test_device_scaled_SOURCES = tests/unit/test_device_scaled.c tests/unit/softdev_rig.h tests/unit/exec_double.h tests/unit/exec_double.c
tests_unit_test_device_scaled_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/test_device_scaled
