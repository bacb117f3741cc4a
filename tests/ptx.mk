# ptx tests
