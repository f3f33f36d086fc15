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
	// requestsMax bounds the requests in handlers; one more is refused at once.
	requestsMax = 1024
	// serverConnsMax bounds the connections; one more is closed.
	serverConnsMax = 2048
	// requestTimeoutMax bounds a handler's deadline, whatever the caller says.
	requestTimeoutMax = 10 * time.Minute
	// firstTimeout bounds the wait for a connection's first request.
	firstTimeout = 10 * time.Second
	// idleTimeout bounds the wait for the next; longer than the client's, so
	// that the client is the one who closes.
	idleTimeout = 2 * time.Minute
	// frameTimeout bounds the reading or writing of one frame.
	frameTimeout = 30 * time.Second
)

// Handler answers internal requests. ctx ends at the caller's deadline, when the
// caller goes away, and when the server closes. body is the handler's to keep.
// An error may implement PeerError() []byte to travel as bytes of its own.
type Handler func(ctx context.Context, method string, body []byte) ([]byte, error)

// ServerConfig says what a Server serves.
type ServerConfig struct {
	// Listener is Mux.Peers'. The server closes it.
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

	mu      sync.Mutex // guards what follows; never held across I/O
	closing bool       // no more is added to working
	conns   map[*serverConn]struct{}
}

// serverConn is one connection of a Server: a reader that sees the caller go
// away, and a worker that answers.
type serverConn struct {
	net.Conn
	requests chan arrived // unbuffered: one request is read ahead of the worker at most
	reading  atomic.Bool  // a request has begun to arrive: the reader's deadline counts
	once     bool         // it is closed behind one answer
	gone     context.Context
	leave    context.CancelFunc
}

// arrived is a request that waits for its answer, with the room that it takes.
type arrived struct {
	request
	room share
}

// callerKey is the context key of the calling node.
type callerKey struct{}

// Caller gives the node that sent the request whose handler got ctx.
func Caller(ctx context.Context) (id.Node, bool) {
	n, ok := ctx.Value(callerKey{}).(id.Node)
	return n, ok
}

// OpenServer starts to answer.
func OpenServer(cfg ServerConfig) *Server {
	s := &Server{
		handler: cfg.Handler, log: cfg.Log, listener: cfg.Listener,
		slots: make(chan struct{}, requestsMax), conns: make(map[*serverConn]struct{}), budget: newBudget(budgetBytes),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.accepting.Go(s.accept)
	return s
}

// Close ends the handlers' contexts, waits for the handlers, and closes all
// connections. Requests that are in a handler get its answer.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.cancel()
	s.working.Wait()
	err := s.listener.Close() // ends its streams too, so not before the answers are out
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

// start serves c, or tells that there are too many or the server closes.
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
			c.reading.Store(false) // the worker looks again after it has answered
		case <-c.gone.Done():
			q.room.giveBack()
			return
		}
	}
}

// next reads one request, for which there is room then.
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
		err = c.SetReadDeadline(time.Time{}) // idleness is the worker's to judge
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
			idle.Reset(2 * frameTimeout) // for room and for the frame
		case q := <-c.requests:
			if err := s.answer(c, q); err != nil || c.once {
				return
			}
			idle.Reset(idleTimeout)
		}
	}
}

// answer runs the handler for q and writes what it gives.
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

// handle calls the handler and turns what it gives into an answer.
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

// call turns a panic of the handler into an error: what one request does must not
// end the others. State machines are not called from here, so none is half-done.
func (s *Server) call(ctx context.Context, q request) (body []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("handler of internal request panicked", "method", q.method, "err", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("handle %s: panic", q.method)
		}
	}()
	return s.handler(ctx, q.method, q.body)
}
