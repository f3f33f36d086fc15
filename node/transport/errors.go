package transport

import (
	"errors"
)

var (
	// ErrNotSent is returned when the request did not reach a handler. The caller
	// may send it again, here or elsewhere, without a second effect.
	ErrNotSent = errors.New("transport: request not sent")
	// ErrOutcomeUnknown is returned when the request was sent and no answer came.
	// The request may or may not have had its effect.
	ErrOutcomeUnknown = errors.New("transport: outcome of request unknown")
	// ErrRemoved is returned, wrapped, by Config.Refuse for a node that was
	// removed.
	ErrRemoved = errors.New("transport: the node was removed from the cluster")
	// ErrTooLarge is returned when a request or answer exceeds BodyBytesMax.
	ErrTooLarge = errors.New("transport: message too large")
)

// RemoteError is an error of the handler on the other node.
type RemoteError struct {
	// Message is the error's text, cut to 1 KiB.
	Message string
	// Payload is the result of the error's PeerError, or nil when the error has no
	// such method.
	Payload []byte
}

// Error returns the text of the error on the other node.
func (e *RemoteError) Error() string { return e.Message }

// payloadError is an error that travels between nodes as bytes of its own.
type payloadError interface{ PeerError() []byte }
