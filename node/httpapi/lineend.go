package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// lineEnd looks for a request line that ends in a bare line feed. Another reader before this
// one may end the line elsewhere. fasthttp accepts such a line and does not say how it ended,
// so the connection looks in all that fasthttp's reader gets. No request in order has these
// bytes: neither a header nor a string in a body of JSON has a line feed.
type lineEnd struct {
	bare    bool
	matched int // bytes of bareLineEnd at the end of what was read
}

// bareLineEnd has no part at its end that is also at its start.
const bareLineEnd = "HTTP/1.1\n"

// scan looks in the next bytes of the connection.
func (e *lineEnd) scan(p []byte) {
	rest := bareLineEnd[e.matched:]
	switch {
	case e.bare:
		return
	case len(p) < len(rest) && bytes.HasPrefix([]byte(rest), p):
		e.matched += len(p)
		return
	}
	e.bare = bytes.HasPrefix(p, []byte(rest)) || bytes.Contains(p, []byte(bareLineEnd))
	for e.matched = min(len(p), len(bareLineEnd)-1); !bytes.HasSuffix(p, []byte(bareLineEnd[:e.matched])); {
		e.matched--
	}
}

// checkLineEnd returns an error if a request line on the connection ended in a bare line feed.
func checkLineEnd(rc *fasthttp.RequestCtx) error {
	if c, ok := rc.Conn().(*clearingConn); ok && c.line.bare {
		return badFrame("The request line does not end in CRLF.")
	}
	return nil
}
