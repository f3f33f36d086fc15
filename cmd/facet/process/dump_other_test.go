//go:build !linux

package process

func dumpRefused() bool { return true }
