# Programs about textures, surfaces and video instructions (tests/process/textures.sh), built as
# those of tests/cuda.mk.
TEXTURE_NAMES = rotate layers surfaces stereo
EXTRA_DIST += $(TEXTURE_NAMES:%=tests/cuda/%.cu)
if HAVE_NVCC
TEXTURE_BUILT = $(TEXTURE_NAMES:%=tests/cuda/nv/%_static) $(TEXTURE_NAMES:%=tests/cuda/nv/%_shared)
endif
check_DATA += $(TEXTURE_BUILT)
CLEANFILES += $(TEXTURE_BUILT) $(TEXTURE_NAMES:%=tests/cuda/nv/%.o)
.SECONDARY: $(TEXTURE_NAMES:%=tests/cuda/nv/%.o)
dist_check_SCRIPTS += tests/process/textures.sh
TESTS += tests/process/textures.sh
check_PROGRAMS += tests/unit/ptx/test_texture
tests_unit_ptx_test_texture_SOURCES = tests/unit/ptx/test_texture.c
tests_unit_ptx_test_texture_LDADD = ptx/libptx.a base/libbase.a $(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD)
TESTS += tests/unit/ptx/test_texture
dist_check_SCRIPTS += tests/unit/exec/textured.sh
TESTS += tests/unit/exec/textured.sh
tests/unit/exec/textured.log: tests/unit/ptx/test_texture tests/unit/exec/test_tex tests/unit/exec/test_surf
