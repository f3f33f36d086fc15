package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
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

// A sender that falls silent within a message is given up; a stream may be idle between two messages.
func TestSilenceWithinMessageEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := &received{Conn: near}
		defer c.Close()
		read := func() (time.Duration, error) {
			begin := time.Now()
			_, err := c.Read(make([]byte, 1))
			return time.Since(begin), err
		}
		send := func(after time.Duration) {
			go func() {
				time.Sleep(after)
				_, _ = far.Write([]byte{1})
			}()
		}
		for range 2 {
			for _, pause := range []time.Duration{time.Hour, silenceMax - time.Second} { // idle, and within a message
				send(pause)
				if took, err := read(); err != nil || took != pause {
					t.Errorf("after a pause of %s: %v, %v", pause, took, err)
				}
			}
			go func() { _, _ = far.Read(make([]byte, 1)) }()
			if _, err := c.Write([]byte{2}); err != nil { // the answer
				t.Fatal(err)
			}
		}
		send(0)
		if _, err := read(); err != nil {
			t.Fatal(err)
		}
		if took, err := read(); !errors.Is(err, os.ErrDeadlineExceeded) || took != silenceMax {
			t.Errorf("a silent sender: %v after %v", err, took)
		}
	})
}
