# device tests
