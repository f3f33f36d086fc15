//go:build !(darwin || linux || freebsd || netbsd)

package turbo

import "errors"

func (l *Library) load(string) error { return errors.New("not supported on this system") }
