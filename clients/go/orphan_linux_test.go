package client_test

import (
	"os/exec"
	"syscall"
)

// dieWithUs makes the kernel end the process when this one dies in any way.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
