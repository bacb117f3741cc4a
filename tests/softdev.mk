# soft device tests
