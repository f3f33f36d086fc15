package client_test

import (
	"os/exec"
	"syscall"
)

// dieWithUs ends the process when this one dies, however it does.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
