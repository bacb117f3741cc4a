# The façades: what CUDA's headers declare. FACADE_SOURCES lists every file.
FACADE_SOURCES = frontend/entrypoints.def frontend/entrypoints.c frontend/errors.def frontend/errors.h frontend/errors.c \
	frontend/facade.h frontend/cuda_types.h frontend/slab.h frontend/slab.c frontend/context.h frontend/context.c \
	frontend/module.h frontend/module.c
