# The façades: what CUDA's headers declare. FACADE_SOURCES lists every file.
FACADE_SOURCES =
