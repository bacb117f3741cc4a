# models: what work costs in time and energy. One line per file.
noinst_LIBRARIES += models/libmodels.a
models_libmodels_a_SOURCES = models/consolidate.h models/consolidate.c models/dispatch.h \
	models/dispatch.c models/dvfs.h models/dvfs.c models/events.h models/event_terms.def \
	models/event_limit.h models/event_limit.c models/event_power.h models/event_power.c \
	models/event_time.h models/event_time.c \
	models/inputs.h models/inputs.c models/kernel_hash.h models/kernel_hash.c models/lsq.h \
	models/lsq.c models/mwp_cwp.h models/mwp_cwp.c models/power.h models/power.c \
	models/profile.c models/stat.h models/store.h models/store_private.h models/store.c \
	models/store_csv.c
models_libmodels_a_SOURCES += models/energy.h models/energy.c models/measured.h models/measured.c \
	models/measured.def
models_libmodels_a_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS) $(LIBMD_CFLAGS)
MODELS_LIBS = models/libmodels.a ptx/libptx.a base/libbase.a $(SQLITE_LIBS) $(LIBMD_LIBS) \
	$(LZ4_LIBS) $(ZSTD_LIBS) -lm
EXTRA_DIST += models/README.md
