# soft device tests
EXTRA_DIST += tests/unit/device/README.md
DEVICE_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) $(LZ4_LIBS) \
	$(ZSTD_LIBS) $(LIBMD_LIBS) $(TEST_LDADD) -lpthread -lm

check_PROGRAMS += tests/unit/device/test_sched
tests_unit_device_test_sched_SOURCES = tests/unit/device/test_sched.c \
	tests/unit/device/exec_double.h tests/unit/device/exec_double.c
tests_unit_device_test_sched_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_sched

check_PROGRAMS += tests/unit/device/test_heap tests/unit/device/test_space \
	tests/unit/device/test_timing tests/unit/device/test_catalog
check_PROGRAMS += tests/unit/device/test_started
tests_unit_device_test_started_SOURCES = tests/unit/device/test_started.c
tests_unit_device_test_started_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_started
tests_unit_device_test_heap_SOURCES = tests/unit/device/test_heap.c
tests_unit_device_test_heap_LDADD = $(DEVICE_LDADD)
tests_unit_device_test_space_SOURCES = tests/unit/device/test_space.c
tests_unit_device_test_space_LDADD = $(DEVICE_LDADD)
tests_unit_device_test_timing_SOURCES = tests/unit/device/test_timing.c
tests_unit_device_test_timing_LDADD = $(DEVICE_LDADD)
tests_unit_device_test_catalog_SOURCES = tests/unit/device/test_catalog.c
tests_unit_device_test_catalog_LDADD = $(DEVICE_LDADD)
check_PROGRAMS += tests/unit/device/test_mem
tests_unit_device_test_mem_SOURCES = tests/unit/device/test_mem.c
tests_unit_device_test_mem_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_mem tests/unit/device/test_heap tests/unit/device/test_space \
	tests/unit/device/test_timing tests/unit/device/test_catalog

check_PROGRAMS += tests/unit/device/test_soft
tests_unit_device_test_soft_SOURCES = tests/unit/device/test_soft.c
tests_unit_device_test_soft_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_soft

check_PROGRAMS += tests/unit/device/test_preempt
tests_unit_device_test_preempt_SOURCES = tests/unit/device/test_preempt.c \
	tests/unit/device/softdev_rig.h tests/unit/device/exec_double.h \
	tests/unit/device/exec_double.c
tests_unit_device_test_preempt_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_preempt

check_PROGRAMS += tests/unit/device/test_fair
tests_unit_device_test_fair_SOURCES = tests/unit/device/test_fair.c \
	tests/unit/device/softdev_rig.h tests/unit/device/exec_double.h \
	tests/unit/device/exec_double.c
tests_unit_device_test_fair_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_fair

check_PROGRAMS += tests/unit/device/test_clusters
tests_unit_device_test_clusters_SOURCES = tests/unit/device/test_clusters.c \
	tests/unit/device/softdev_rig.h tests/unit/device/exec_double.h \
	tests/unit/device/exec_double.c
tests_unit_device_test_clusters_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_clusters
check_PROGRAMS += tests/unit/device/test_scaled
tests_unit_device_test_scaled_SOURCES = tests/unit/device/test_scaled.c \
	tests/unit/device/softdev_rig.h tests/unit/device/exec_double.h \
	tests/unit/device/exec_double.c
tests_unit_device_test_scaled_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_scaled
check_PROGRAMS += tests/unit/device/test_draw
TESTS += tests/unit/device/test_draw
tests_unit_device_test_draw_SOURCES = tests/unit/device/test_draw.c
tests_unit_device_test_draw_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_device_test_draw_LDADD = $(DEVICE_LDADD)

check_PROGRAMS += tests/unit/device/test_shares
tests_unit_device_test_shares_SOURCES = tests/unit/device/test_shares.c
tests_unit_device_test_shares_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_shares

check_PROGRAMS += tests/unit/device/test_readings
tests_unit_device_test_readings_SOURCES = tests/unit/device/test_readings.c \
	tests/unit/device/softdev_rig.h tests/unit/device/exec_double.h \
	tests/unit/device/exec_double.c
tests_unit_device_test_readings_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_readings

check_PROGRAMS += tests/unit/device/test_follow
tests_unit_device_test_follow_SOURCES = tests/unit/device/test_follow.c
tests_unit_device_test_follow_LDADD = $(DEVICE_LDADD)
TESTS += tests/unit/device/test_follow
