# backend tests
