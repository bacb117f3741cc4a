# one include per room that has benchmarks
include bench/interp.mk
