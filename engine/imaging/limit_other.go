//go:build !unix

package imaging

func limitChild() {}
