package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"facet/clients/js"
	"facet/node/httpapi/openapi"
)

// Root is the folder of the console's pages, Docs that of the interface's pages, whose description is at
// DocumentPath. SessionPath is where both learn how they are served.
const (
	Root         = "/console"
	Docs         = "/docs"
	SessionPath  = Root + "/session"
	DocumentPath = "/openapi.json"
)

//go:embed web docs
var embedded embed.FS

// root is an embedded folder and the path under which it is served.
type root struct {
	at     string
	files  fs.FS
	folder string
}

// roots are all of them. The pages call the service by the JavaScript client. Those of the interface
// take their parts from the console.
var roots = []root{{Root, embedded, "web"}, {Root + "/client", js.Sources, "src"}, {Docs, embedded, "docs"}}

// types are the media types of the files that are served, by the end of their names.
var types = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  plainText,
}

const (
	plainText = "text/plain; charset=utf-8"
	indexFile = "index.html"
)

// policy is the Content-Security-Policy: a page takes code, styles and data from its own origin,
// and shows pictures that it made itself. Trusted types keep a page from making markup of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// security are the headers of every answer.
var security = []Header{
	{"Content-Security-Policy", policy},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Permissions-Policy", "camera=(self), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"},
}

// Header is a header of an answer.
type Header struct{ Name, Value string }

// Request is the part of a GET or HEAD request on which its answer depends.
type Request struct {
	Path           string // as it came, without the query
	AcceptEncoding string
	IfNoneMatch    string
}

// Answer is the answer to a Request. Callers change neither Headers nor Body.
type Answer struct {
	Status  int
	Headers []Header
	Body    []byte
}

// file is one file, ready to be sent.
type file struct {
	headers       []Header
	tag           string
	plain, zipped []byte // zipped is nil where it is no shorter
}

// Site is the files in memory. It is safe for concurrent use.
type Site struct{ files map[string]file } // by path

// Load returns the site. The first call compresses the files.
var Load = sync.OnceValue(load)

func load() *Site {
	s := &Site{files: map[string]file{DocumentPath: newFile(openapi.ContentType, openapi.Document())}}
	for _, r := range roots {
		err := fs.WalkDir(r.files, r.folder, func(name string, d fs.DirEntry, err error) error {
			kind, served := types[path.Ext(name)]
			if err != nil || d.IsDir() || !served {
				return err
			}
			b, err := fs.ReadFile(r.files, name)
			if err != nil {
				return err
			}
			where := r.at + strings.TrimPrefix(name, r.folder)
			s.files[where] = newFile(kind, b)
			return nil
		})
		if err != nil {
			panic("bug: the embedded files can't be read: " + err.Error())
		}
	}
	return s
}

func newFile(kind string, plain []byte) file {
	sum := sha256.Sum256(plain)
	f := file{plain: plain, tag: `W/"` + hex.EncodeToString(sum[:16]) + `"`}
	f.headers = append(slices.Clone(security),
		Header{"Content-Type", kind}, Header{"Cache-Control", "no-cache"}, Header{"Vary", "Accept-Encoding"}, Header{"ETag", f.tag})
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level exists
	_, _ = w.Write(plain)                                 // memory takes everything
	_ = w.Close()
	if b.Len() < len(plain) {
		f.zipped = b.Bytes()
	}
	return f
}

// Answer returns the answer to r. A folder is its index.html, and its path without a slash at
// the end leads there. The path / leads to the console.
func (s *Site) Answer(r Request) Answer {
	name := r.Path
	if name == "/" {
		return s.plain(http.StatusSeeOther, "The console is at "+Root+"/.\n", Header{"Location", Root + "/"})
	}
	if strings.HasSuffix(name, "/") {
		name += indexFile
	}
	f, ok := s.files[name]
	if !ok {
		if _, folder := s.files[name+"/"+indexFile]; folder {
			return s.plain(http.StatusPermanentRedirect, "The page is at "+name+"/.\n", Header{"Location", name + "/"})
		}
		return s.plain(http.StatusNotFound, "There is no such page. The console begins at "+Root+"/.\n")
	}
	if matches(r.IfNoneMatch, f.tag) {
		return Answer{Status: http.StatusNotModified, Headers: f.headers}
	}
	if f.zipped != nil && takesGzip(r.AcceptEncoding) {
		return Answer{http.StatusOK, append(slices.Clone(f.headers), Header{"Content-Encoding", "gzip"}), f.zipped}
	}
	return Answer{http.StatusOK, f.headers, f.plain}
}

// plain returns an answer with a text.
func (s *Site) plain(status int, text string, more ...Header) Answer {
	headers := slices.Concat(security, more, []Header{{"Content-Type", plainText}, {"Cache-Control", "no-store"}})
	return Answer{status, headers, []byte(text)}
}

// matches reports whether an If-None-Match header has tag.
func matches(header, tag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// takesGzip reports whether an Accept-Encoding header accepts gzip.
func takesGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			weight = strings.ReplaceAll(weight, " ", "")
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
