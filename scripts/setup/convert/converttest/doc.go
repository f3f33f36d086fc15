// Package converttest makes input for tests of conversions, so that they need no
// fetched files. Only tests may use it. It imports nothing of facet.
package converttest
