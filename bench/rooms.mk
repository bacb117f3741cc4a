# one include per room that has benchmarks
BENCHES += bench/bench_device
bench_bench_device_SOURCES = bench/bench_device.c
bench_bench_device_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) -lpthread -lm
