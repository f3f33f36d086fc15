package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
)

// Bounds of the server of internal requests.
const (
	// requestsMax is the most requests in handlers. One more is refused at once.
	requestsMax = 1024
	// serverConnsMax is the most connections. One more is closed.
	serverConnsMax = 2048
	// requestTimeoutMax is the longest deadline of a handler, whatever the caller
	// requests.
	requestTimeoutMax = 10 * time.Minute
	// firstTimeout is the longest wait for the first request of a connection.
	firstTimeout = 10 * time.Second
	// idleTimeout is the longest wait for the next request. It is longer than the
	// client's, so the client closes the connection first.
	idleTimeout = 2 * time.Minute
	// frameTimeout is the longest time to read or write one frame.
	frameTimeout = 30 * time.Second
)

// Handler answers internal requests. ctx ends at the caller's deadline, when the
// caller disconnects, and when the server closes. The handler may keep body. An
// error may implement PeerError() []byte to travel as bytes of its own.
type Handler func(ctx context.Context, method string, body []byte) ([]byte, error)

// ServerConfig configures a Server.
type ServerConfig struct {
	// Listener is the result of Mux.Peers. The server closes it.
	Listener net.Listener
	Handler  Handler
	Log      *slog.Logger
}

// Server answers internal requests, one at a time on each connection.
type Server struct {
	handler  Handler
	log      *slog.Logger
	listener net.Listener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	slots    chan struct{} // one element for each request in a handler
	budget   *budget       // of requests

	accepting sync.WaitGroup
	working   sync.WaitGroup // readers and workers

	mu      sync.Mutex // guards closing and conns; never held across I/O
	closing bool       // set: working gets no more members
	conns   map[*serverConn]struct{}
}

// serverConn is one connection of a Server. It has a reader that notices when the
// caller disconnects, and a worker that answers.
type serverConn struct {
	net.Conn
	requests chan arrived // unbuffered: one request is read ahead of the worker at most
	reading  atomic.Bool  // a request is arriving: the reader's deadline counts
	once     bool         // the connection is closed after one answer
	gone     context.Context
	leave    context.CancelFunc
}

// arrived is a request that waits for its answer, with its share of the budget.
type arrived struct {
	request
	room share
}

// callerKey is the context key of the calling node.
type callerKey struct{}

// Caller returns the node that sent the request whose handler got ctx.
func Caller(ctx context.Context) (id.Node, bool) {
	n, ok := ctx.Value(callerKey{}).(id.Node)
	return n, ok
}

// OpenServer returns a server that has started to answer.
func OpenServer(cfg ServerConfig) *Server {
	s := &Server{
		handler: cfg.Handler, log: cfg.Log, listener: cfg.Listener,
		slots: make(chan struct{}, requestsMax), conns: make(map[*serverConn]struct{}), budget: newBudget(budgetBytes),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.accepting.Go(s.accept)
	return s
}

// Close ends the handlers' contexts, waits for the handlers and closes all
// connections. Requests in a handler still get their answer.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.cancel()
	s.working.Wait()
	err := s.listener.Close() // also ends its streams, so only after the answers are sent
	s.accepting.Wait()
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			if s.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				s.log.Error("accept internal requests", "err", err)
			}
			return
		}
		sc := &serverConn{Conn: c, requests: make(chan arrived)}
		sc.gone, sc.leave = context.WithCancel(s.ctx)
		if n, ok := c.(*Conn); ok {
			sc.once = n.once
			sc.gone = context.WithValue(sc.gone, callerKey{}, n.Node())
		}
		if !s.start(sc) {
			sc.leave()
			_ = c.Close()
			continue
		}
	}
}

// start serves c. It returns false when there are too many connections or the
// server is closing.
func (s *Server) start(c *serverConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.conns) >= serverConnsMax {
		return false
	}
	s.conns[c] = struct{}{}
	s.working.Go(func() { s.read(c) })
	s.working.Go(func() { s.work(c) })
	return true
}

// read reads requests until the connection ends, and then ends the worker.
func (s *Server) read(c *serverConn) {
	defer c.leave()
	for {
		q, err := s.next(c)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				s.log.Debug("read internal request", "from", c.RemoteAddr().String(), "err", err)
			}
			return
		}
		select {
		case c.requests <- q:
			c.reading.Store(false) // the worker checks again after it has answered
		case <-c.gone.Done():
			q.room.giveBack()
			return
		}
	}
}

// next reads one request after it has taken memory for it.
func (s *Server) next(c *serverConn) (q arrived, err error) {
	b, err := readFrame(c, BodyBytesMax+frameExtraMax, func(n int) (err error) {
		c.reading.Store(true)
		ctx, cancel := context.WithTimeout(c.gone, frameTimeout)
		defer cancel()
		if q.room, err = s.budget.take(ctx, n); err != nil {
			return err
		}
		return c.SetReadDeadline(time.Now().Add(frameTimeout))
	})
	if err == nil {
		err = c.SetReadDeadline(time.Time{}) // the worker decides about idle time
	}
	if err == nil {
		q.request, err = parseRequest(b)
	}
	if err != nil {
		q.room.giveBack()
	}
	return q, err
}

// work answers requests until the connection ends or is idle for too long.
func (s *Server) work(c *serverConn) {
	defer func() {
		c.leave()
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	idle := time.NewTimer(firstTimeout)
	defer idle.Stop()
	for {
		select {
		case <-c.gone.Done():
			return
		case <-idle.C:
			if !c.reading.Load() {
				return
			}
			idle.Reset(2 * frameTimeout) // for memory and for the frame
		case q := <-c.requests:
			if err := s.answer(c, q); err != nil || c.once {
				return
			}
			idle.Reset(idleTimeout)
		}
	}
}

// answer runs the handler for q and writes its result.
func (s *Server) answer(c *serverConn, q arrived) error {
	defer q.room.giveBack()
	var status byte
	var body []byte
	select {
	case s.slots <- struct{}{}:
		status, body = s.handle(c.gone, q.request)
		<-s.slots
	default:
		status, body = statusRefused, []byte("too many requests in progress")
	}
	if err := c.SetWriteDeadline(time.Now().Add(frameTimeout)); err != nil {
		return err
	}
	return writeAnswer(c, q.number, status, body)
}

// handle calls the handler and turns its result into an answer.
func (s *Server) handle(ctx context.Context, q request) (status byte, body []byte) {
	if ctx.Err() != nil {
		return statusRefused, []byte("closing")
	}
	ctx, cancel := context.WithTimeout(ctx, min(q.timeout, requestTimeoutMax))
	defer cancel()
	body, err := s.call(ctx, q)
	if err == nil && len(body) > BodyBytesMax {
		err = fmt.Errorf("answer %s: %w: %d bytes", q.method, ErrTooLarge, len(body))
	}
	if err == nil {
		return statusDone, body
	}
	var payload []byte
	if p := payloadError(nil); errors.As(err, &p) {
		payload = p.PeerError()
	}
	return statusFailed, failure(err.Error(), payload)
}

// call turns a panic of the handler into an error: one request must not end the
// others. Handlers call no state machine directly, so no state is half-changed.
func (s *Server) call(ctx context.Context, q request) (body []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.ErrorContext(ctx, "handler of internal request panicked", "method", q.method, "err", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("handle %s: panic", q.method)
		}
	}()
	return s.handler(ctx, q.method, q.body)
}
