# exec tests
