package main

import (
	"os"
	"testing"
)

// asFacet has the test binary be facet: tests of several processes need no other one.
const asFacet = "RUN_TEST_BINARY_AS_FACET"

func TestMain(m *testing.M) {
	if os.Getenv(asFacet) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}
