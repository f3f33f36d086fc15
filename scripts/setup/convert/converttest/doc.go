// Package converttest makes the input of conversions for tests that must not
// depend on what is fetched. It may be used by tests only and imports nothing of
// facet.
package converttest
