//go:build !unix

package heif

func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

func release([]byte) error { return nil }
