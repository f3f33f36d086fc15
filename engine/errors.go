package engine

import "errors"

// ErrBusy says that as many requests wait for the engine as may wait.
var ErrBusy = errors.New("engine is busy")

// ErrClosed says that the engine was closed.
var ErrClosed = errors.New("engine is closed")
