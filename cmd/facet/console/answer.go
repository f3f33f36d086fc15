package console

import (
	"encoding/json"
	"net/http"
)

// refusal is the body of an answer that is not a node's. It has the form of a node's refusals.
type refusal struct {
	Message string `json:"message"`
	Reason  string `json:"reason,omitzero"`
}

// say answers with a message.
func say(w http.ResponseWriter, status int, reason, message string) {
	writeJSON(w, status, refusal{message, reason})
}

// writeJSON answers with v.
func writeJSON(w http.ResponseWriter, status int, v any) {
	protect(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the browser may be gone
}

// protect sets the headers of an answer that is no page: no browser keeps it, runs it or shows it
// to another site.
func protect(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
}

// sentence returns an error for people.
func sentence(err error) string { return "No node answered: " + err.Error() + "." }
