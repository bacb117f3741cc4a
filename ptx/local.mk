# ptx
