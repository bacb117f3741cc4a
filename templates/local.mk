# templates: several clients' kernels in one launch. Includes base, ptx, models.
noinst_LIBRARIES += templates/libtemplates.a
templates_libtemplates_a_SOURCES = templates/template.h templates/template_private.h \
	templates/uses.c templates/refuse.c templates/make.c templates/leader.c \
	templates/manifest.h templates/manifest.c
EXTRA_DIST += templates/README.md templates/enterprise/README.md templates/enterprise/encryption.cu
enterprisedir = $(datadir)/wattshare/templates/enterprise
dist_enterprise_DATA = templates/enterprise/manifest templates/enterprise/encryption.ptx
