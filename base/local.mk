# base: errors, log, clock, memory, diagnostics. Includes libc and uthash only.
noinst_LIBRARIES += base/libbase.a
base_libbase_a_SOURCES = base/macros.h base/conf.h base/conf.c base/file.h base/file.c \
	base/error.h base/error.c base/log.h base/log.c base/clock.h base/alloc.h base/alloc.c \
	base/packet.h base/packet.c base/texture.h base/watch.h base/arena.h base/hurry.h \
	base/arena.c base/diag.h base/diag.c base/hash.h base/hash.c base/table.h base/table.c \
	base/budget.h base/budget.c base/heap.h base/minmax.h base/list.h base/sm_set.h base/elf.h \
	base/elf.c base/runtimes/static_runtime.h base/runtimes/static_runtime.c \
	base/runtimes/static_runtimes.def base/link_image.h base/trace_file.h base/trace_file.c \
	base/launch_check.h base/launch_check.c
EXTRA_DIST += base/README.md base/runtimes/README.md
