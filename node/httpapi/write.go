package httpapi

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/router"
)

// write returns the identity of the request as a write (D8): its Idempotency-Key,
// or else its signature. The same photo, signed again, is another write.
func (c *call) write() (router.Write, error) {
	w := router.Write{}
	copy(w.Request[:], c.body.hash[:])
	name, keyed := c.header("idempotency-key")
	if keyed && (name == "" || len(name) > idempotencyKeyMax) {
		return w, invalid("", fmt.Sprintf("Idempotency-Key must be 1 to %d characters.", idempotencyKeyMax))
	}
	w.Keyed = keyed
	kind := "key"
	if !keyed {
		kind, name = "signature", c.claim.Signature
	}
	hash := sha256.New()
	for _, part := range []string{
		"facet operation 1", c.key.Tenant.String(), c.access.Application.String(), c.method, c.path, kind, name,
	} {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	w.Operation = id.Operation(hash.Sum(nil)[:16])
	return w, nil
}

// ifMatch reads the header If-Match. It returns the ETag that the settings must have, or
// nothing if any will do.
func (h *head) ifMatch() (string, error) {
	text, ok := h.header("if-match")
	if !ok || text == "*" {
		return "", nil
	}
	tag, quoted := strings.CutPrefix(text, `"`)
	tag, ended := strings.CutSuffix(tag, `"`)
	if !quoted || !ended || tag == "" || len(tag) > etagMax || strings.Contains(tag, `"`) {
		return "", invalid("", `If-Match must be one strong ETag in quotation marks, as an answer has it, or *.`)
	}
	return tag, nil
}

// unconditional reports whether the request has an If-Match that its operation ignores.
func (h *head) unconditional() bool {
	_, given := h.header("if-match")
	return given && h.method != fasthttp.MethodPatch
}
