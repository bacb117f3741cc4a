# soft device tests
DEVICE_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD) -lpthread -lm

check_PROGRAMS += tests/unit/test_device_sched
tests_unit_test_device_sched_SOURCES = tests/unit/test_device_sched.c tests/unit/exec_double.h tests/unit/exec_double.c
tests_unit_test_device_sched_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/test_device_sched
