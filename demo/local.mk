# The demo: make demo
EXTRA_PROGRAMS += demo/table
demo_table_SOURCES = demo/table.c
demo_table_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
demo_table_LDADD = $(JSON_C_LIBS)
CLEANFILES += demo/table
EXTRA_DIST += demo/run.sh demo/README.md demo/output.txt demo/picture.py
.PHONY: demo
demo: all demo/table $(CUDA_CLIENTS) $(CUDA_NVCC_BUILT)
	@srcdir=$(top_srcdir) $(top_srcdir)/demo/run.sh
