package transport

import (
	"errors"
)

var (
	// ErrNotSent says that the request did not reach a handler: it may be sent
	// again, here or elsewhere, without a second effect.
	ErrNotSent = errors.New("transport: request not sent")
	// ErrOutcomeUnknown says that the request was sent and no answer came: it may
	// or may not have had its effect.
	ErrOutcomeUnknown = errors.New("transport: outcome of request unknown")
	// ErrRemoved is what Config.Refuse returns, wrapped, for a node that was removed.
	ErrRemoved = errors.New("transport: the node was removed from the cluster")
	// ErrTooLarge says that a request or answer exceeds BodyBytesMax.
	ErrTooLarge = errors.New("transport: message too large")
)

// RemoteError is an error of the handler on the other node.
type RemoteError struct {
	// Message is the error's text, cut to 1 KiB.
	Message string
	// Payload is what the error's PeerError gave, nil where it has none.
	Payload []byte
}

// Error gives the text of the error on the other node.
func (e *RemoteError) Error() string { return e.Message }

// payloadError is an error that travels between nodes as bytes of its own.
type payloadError interface{ PeerError() []byte }
