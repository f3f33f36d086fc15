//go:build mutant_request_ignored

package mutant

const planted = "request_ignored"
