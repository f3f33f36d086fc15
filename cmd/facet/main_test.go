package main

import (
	"os"
	"testing"

	"facet/cmd/facet/authority"
)

// asFacet is the environment variable that makes the test binary run as facet. So
// tests of several processes need no other binary.
const asFacet = "RUN_TEST_BINARY_AS_FACET"

func TestMain(m *testing.M) {
	authority.WorkFactor = 10
	if os.Getenv(asFacet) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}
