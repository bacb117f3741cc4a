# one include per room that has benchmarks
