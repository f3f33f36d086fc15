package bucket

import (
	"errors"
	"io/fs"
	"net"

	"gocloud.dev/gcerrors"
)

// fileError is an error of a tenant's file. Its text has no filename: that may be a person's name, and the
// text is logged.
type fileError struct {
	what string // was attempted
	err  error
}

// Error returns what was attempted and the cause, without what the drivers say of the file.
func (e *fileError) Error() string {
	if path, ok := errors.AsType[*fs.PathError](e.err); ok {
		return e.what + ": " + path.Err.Error()
	}
	if network, ok := errors.AsType[*net.OpError](e.err); ok {
		return e.what + ": " + network.Error()
	}
	return e.what + ": " + gcerrors.Code(e.err).String()
}

// Unwrap returns the cause (errors.Is).
func (e *fileError) Unwrap() error { return e.err }
