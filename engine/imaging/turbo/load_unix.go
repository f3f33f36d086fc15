//go:build darwin || linux || freebsd || netbsd

package turbo

import (
	"fmt"
	"path/filepath"

	"github.com/ebitengine/purego"
)

func (l *Library) load(path string) error {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return fmt.Errorf("%s: not there, or not for this machine", filepath.Base(l.name))
	}
	for name, f := range map[string]any{
		"tjInitDecompress": &l.initDecompress,
		"tjDecompress2":    &l.decompress,
		"tjDestroy":        &l.destroy,
		"tjGetErrorStr2":   &l.errorText,
		"tjGetErrorCode":   &l.errorCode,
	} {
		symbol, err := purego.Dlsym(lib, name)
		if err != nil {
			return fmt.Errorf("%s has no %s: it is older than version 2", filepath.Base(l.name), name)
		}
		purego.RegisterFunc(f, symbol)
	}
	return nil
}
