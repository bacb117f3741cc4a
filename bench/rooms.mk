# one include per room that has benchmarks
include bench/interp.mk
BENCHES += bench/bench_device
bench_bench_device_SOURCES = bench/bench_device.c
bench_bench_device_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) \
	$(LZ4_LIBS) $(ZSTD_LIBS) $(LIBMD_LIBS) -lpthread -lm
BENCHES += bench/bench_client
bench_bench_client_SOURCES = bench/bench_client.c tests/unit/frontend/fake_daemon.h \
	tests/unit/frontend/fake_daemon.c
bench_bench_client_LDADD = $(FRONTEND_TEST_LIBS) $(ZMQ_LIBS)
BENCHES += bench/bench_service
bench_bench_service_SOURCES = bench/bench_service.c
bench_bench_service_LDADD = $(WSCLIENT_LDADD) -lpthread
BENCHES += bench/bench_fair
bench_bench_fair_SOURCES = bench/bench_fair.c
bench_bench_fair_LDADD = $(WSCLIENT_LDADD)
BENCHES += bench/bench_server
bench_bench_server_SOURCES = bench/bench_server.c
bench_bench_server_LDADD = $(WSCLIENT_LDADD)
BENCHES += bench/bench_models
bench_bench_models_SOURCES = bench/bench_models.c
bench_bench_models_LDADD = $(POLICY_LIBS) $(MODELS_LIBS)
BENCHES += bench/bench_sim
bench_bench_sim_SOURCES = bench/bench_sim.c
bench_bench_sim_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
bench_bench_sim_LDADD = $(PAPERS_LIBS)
EXTRA_DIST += bench/sbeet_loop.py
BENCHES += bench/bench_policy
bench_bench_policy_SOURCES = bench/bench_policy.c
bench_bench_policy_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
bench_bench_policy_LDADD = $(PAPERS_LIBS)
EXTRA_DIST += bench/decisions.gp bench/results/decisions.csv bench/results/decisions.svg
BENCHES += bench/bench_analysis
bench_bench_analysis_SOURCES = bench/bench_analysis.c
bench_bench_analysis_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
bench_bench_analysis_LDADD = cli/libtools.a $(PAPERS_LIBS) base/libbase.a -lpthread
BENCHES += bench/bench_edl
bench_bench_edl_SOURCES = bench/bench_edl.c
bench_bench_edl_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS) -DSRCDIR='"$(abs_top_srcdir)"'
bench_bench_edl_LDADD = $(PAPERS_LIBS)
EXTRA_DIST += bench/edl_day.py
BENCHES += bench/bench_rtsim
bench_bench_rtsim_SOURCES = bench/bench_rtsim.c
bench_bench_rtsim_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
bench_bench_rtsim_LDADD = $(PAPERS_LIBS)
BENCHES += bench/bench_learn
bench_bench_learn_SOURCES = bench/bench_learn.c
bench_bench_learn_CPPFLAGS = $(AM_CPPFLAGS) -DSRCDIR='"$(abs_top_srcdir)"'
bench_bench_learn_LDADD = $(BACKEND_LDADD)
BENCHES += bench/bench_fused
bench_bench_fused_SOURCES = bench/bench_fused.c
bench_bench_fused_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
bench_bench_fused_LDADD = tests/libsoftserver.a $(BACKEND_LDADD)
EXTRA_DIST += bench/results/fused.txt
# It shares its kernels with the tests of devices, which need cmocka.
if HAVE_CMOCKA
BENCHES += bench/bench_worker
endif
bench_bench_worker_SOURCES = bench/bench_worker.c tests/device/suite.h tests/device/suite.c
bench_bench_worker_LDADD = $(DEVICE_LDADD) -ldl
EXTRA_bench_bench_worker_DEPENDENCIES = tests/mock/libcuda.so.1 tests/mock/libnvidia-ml.so.1
BENCHES += bench/bench_load
bench_bench_load_SOURCES = bench/bench_load.c tests/lib/hard_text.h tests/lib/hard_text.c
bench_bench_load_LDADD = $(BACKEND_LDADD)
BENCHES += bench/bench_planner
bench_bench_planner_SOURCES = bench/bench_planner.c
bench_bench_planner_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
bench_bench_planner_LDADD = slurm/planner/libplan.a $(PAPERS_LIBS)
