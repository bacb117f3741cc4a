# process tests
