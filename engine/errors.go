package engine

import "errors"

// ErrBusy is returned when the queue of the engine is full.
var ErrBusy = errors.New("engine is busy")

// ErrClosed is returned after Close.
var ErrClosed = errors.New("engine is closed")
