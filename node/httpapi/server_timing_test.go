package httpapi

import (
	"bufio"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkExtract measures what an extraction with an image of 300 KB costs
// outside the Service: TLS both ways, signature, hash, JSON, base64, answer.
func BenchmarkExtract(b *testing.B) {
	r := start(b, nil)
	body := `{"faces":"` + base64.StdEncoding.EncodeToString([]byte("img alice"+strings.Repeat(" ", 300<<10))) + `"}`
	raw := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: body}.raw(b)
	c := r.dial()
	answers := bufio.NewReader(c)
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := io.WriteString(c, raw); err != nil {
			b.Fatal(err)
		}
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		if response.Body.Close() != nil || err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response.Status, err)
		}
	}
}
