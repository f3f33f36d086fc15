package transport

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// addressed is a StreamLayer on which one node answers at every address.
type addressed struct {
	net.Listener
	node id.Node
}

// named is a stream to that node.
type named struct {
	net.Conn
	node id.Node
}

func (n named) Node() id.Node { return n.node }

func (a addressed) Dial(context.Context, string) (net.Conn, error) {
	near, far := net.Pipe()
	far.Close()
	return named{near, a.node}, nil
}

func (addressed) Close() error { return nil }

func TestDialRefusesOtherNodeAtAddress(t *testing.T) {
	t.Parallel()
	there, gone := id.Node{UUID: id.Random([16]byte{1})}, id.Node{UUID: id.Random([16]byte{2})}
	s := newStreams(&Config{
		Stream: addressed{node: there}, Resolve: func(id.Member) (string, error) { return "a:1", nil },
	})
	defer s.Close()
	conn, err := s.Dial(raft.ServerAddress(id.NewMember(there, 1)), time.Second)
	if err != nil {
		t.Fatalf("the node itself: %v", err)
	}
	conn.Close()
	if _, err := s.Dial(raft.ServerAddress(id.NewMember(gone, 1)), time.Second); !errors.Is(err, errOtherNode) {
		t.Errorf("another node would vote in the name of one that is gone: %v", err)
	}
}
