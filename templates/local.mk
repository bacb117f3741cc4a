# templates: several clients' kernels in one launch. Includes base, ptx, models.
noinst_LIBRARIES += templates/libtemplates.a
templates_libtemplates_a_SOURCES = templates/template.h templates/template_private.h templates/uses.c templates/refuse.c templates/make.c templates/leader.c
EXTRA_DIST += templates/README.md
