# cuda tests
