package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"facet/scripts/bench/machine"
)

const (
	// bodiesMemoryMB is the most that hostile bodies may add to the memory of all nodes.
	// Decoded images take up to 1 GiB of a node, and the garbage collector needs room.
	bodiesMemoryMB = 2500
	bombsAtOnce    = 4
)

// body is a hostile body for an operation.
type body struct {
	what, method, target, text string
	reason                     string // of the refusal; empty: any
}

func newBody(what, method, target, text string) body {
	return body{what: what, method: method, target: target, text: text}
}

// hostile sends bodies that no honest client sends.
type hostile struct{ *attack }

// hostileBodies sends bodies that no honest client sends. Each must be refused with 400,
// 403 or 413, soon, and with bounded memory.
func (a hostile) hostileBodies(c *tally) error {
	before, err := machine.Resident(a.pids()...)
	if err != nil {
		return err
	}
	v := a.victim
	list := append(a.hostileJSON(), a.hostileBase64()...)
	bombs, err := a.bombs()
	if err != nil {
		return err
	}
	var longest time.Duration
	var alone sync.Mutex // held for what is tried again: on a busy machine many files take long
	send := func(b body, node int) {
		c.try()
		try := func() (answer, error) {
			return a.send(node, address{5, 1}, a.sign(node, v.admin, b.method, b.target, b.text, apiKey(v.second.apiKey)))
		}
		got, err := try()
		if err == nil && strings.Contains(got.body, `"errorType":"Timeout"`) {
			alone.Lock()
			got, err = try()
			alone.Unlock()
		}
		switch {
		case err != nil:
			c.got("%s: %v", b.what, err)
		case got.status/100 != 4 || !strings.Contains(got.body, b.reason):
			c.got("%s: %s", b.what, got)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		longest = max(longest, got.took)
	}
	u, err := machine.Watch(func() error {
		each(len(list), 4, func(i int) { send(list[i], i%nodes) })
		for node := range nodes { // many on one node at once
			each(len(bombs), bombsAtOnce, func(i int) { send(bombs[i], node) })
		}
		return nil
	}, a.pids()...)
	if err != nil {
		return err
	}
	c.note("memory of all nodes: %.0f MB before, at most %.0f MB; longest answer %.1f s", before, u.MostMB, longest.Seconds())
	if u.MostMB-before > bodiesMemoryMB {
		c.got("hostile bodies took %.0f MB", u.MostMB-before)
	}
	return nil
}

// hostileJSON returns bodies that are no JSON, or too much of it.
func (a hostile) hostileJSON() (list []body) {
	v := a.victim
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
	values := []string{
		deep("[", "]", 100), deep("[", "]", 100_000), deep(`{"a":`, "}", 100_000), strings.Repeat("[", 2_000_000), strings.Repeat(`{"a":`, 500_000),
		"1" + strings.Repeat("0", 1_000_000), "1e999999999", "-1e-999999999", "1e400", "9223372036854775808", "-0", "00", "+1", ".5", "1.", "0x10", "1_0", "NaN", "Infinity", "-Infinity",
		"true", `"10"`, `"` + strings.Repeat("a", 3_000_000) + `"`, `"\u0000"`, `"\ud800"`, `"\udfff\ud800"`, "\"\xff\xfe\"", "\"\x00\"", "\"\n\"", `"\x41"`, "'a'", "[1,]", "{,}", `{"a" 1}`, "nul", "undefined",
		"/* */1", "1//", "\ufeff1", "[" + strings.Repeat("1,", 500_000) + "1]", "{" + strings.Repeat(`"a":1,`, 300_000) + `"b":1}`,
	}
	for i, value := range values {
		what := fmt.Sprintf("JSON %.40q", value)
		list = append(list,
			newBody(what, http.MethodPost, "/v1.1/subjects", `{"face":`+value+`}`),
			newBody(what+" as limit", http.MethodPost, "/v1.1/face/search", `{"limit":`+value+`,"probe":"QUJDRA=="}`),
			newBody(what+" as the body", http.MethodPost, "/v1.1/face/extract", value),
			newBody(what+" as a name", http.MethodPost, "/api/galleries", `{"name":[`+value+`],"description":"","size":1,"faceMinimumQualityScore":0.5}`))
		if i%4 == 0 {
			list = append(list, newBody(what+" as registrations", http.MethodPost, "/v1.1/jobs/bulkregister", `{"registrations":[{"filename":["`+fmt.Sprint(i)+`",`+value+`]}]}`))
		}
	}
	for _, description := range []string{`\u001b[2J`, `\u0007`, `\u009b31m`, `a\rb`} { // a terminal would obey
		list = append(list, newBody("the description "+description, http.MethodPost, "/api/galleries",
			`{"name":"`+fmt.Sprint(len(list))+`","description":"`+description+`","size":1,"faceMinimumQualityScore":0.5}`))
	}
	for _, text := range []string{
		`{"face":"QUJDRA==","face":"QUJDRA=="}`, `{"face":"QUJDRA==","f\u0061ce":"QUJDRA=="}`, `{"face":"QUJDRA=="}{"face":"QUJDRA=="}`, `{"face":"QUJDRA=="} x`, `{"face":"QUJDRA=="`, "", " ", "null", "[]",
		`{"face":{"face":"QUJDRA=="}}`, `{"face":["QUJDRA=="]}`, `{"face":null}`, `{"tags":[null],"face":"QUJDRA=="}`, `{"tags":["a","a"],"tags":[],"face":"QUJDRA=="}`,
		`{"tags":[` + strings.Repeat(`"a",`, 100_000) + `"a"],"face":"QUJDRA=="}`, `{"__proto__":{"tenant":"x"},"face":"QUJDRA=="}`,
	} {
		list = append(list, newBody(fmt.Sprintf("JSON %.60q", text), http.MethodPost, "/v1.1/subjects", text),
			newBody(fmt.Sprintf("JSON %.60q", text), http.MethodPut, "/v1/subjects/"+v.subjects[0].ID, text))
	}
	return list
}

// hostileBase64 returns texts that are no base64, or no image.
func (hostile) hostileBase64() (list []body) {
	for _, text := range []string{
		"=", "====", "A", "AA=", "A=AA", "AA==AA==", "QUJD=", "QUJDR===", "QUJ\\u0000DRA==", "QUJD.RA=", "+/-_", "-_+/", "QUJDRB==", "data:", "data:image/png;base64", "data:image/png;base64,",
		"data:image/png;base64,QUJDRA==", "data:text/html,<b>", "data:;base64,data:;base64,QUJDRA==", "data:" + strings.Repeat("x;", 200_000) + "base64,QUJDRA==", "http://127.0.0.1:7422/metrics",
		"file:///etc/passwd", "%51UJDRA==", strings.Repeat("A", 15_000_000), strings.Repeat(" ", 8_000_000), strings.Repeat("\\n", 1_000_000) + "QUJDRA==", strings.Repeat("=", 1_000_000),
		"QUJDRA==\\u00a0", "ＱＵＪＤ", "QUJD\\ud83d\\ude00", encoded([]byte("GIF89a")), encoded([]byte("<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>")),
		encoded([]byte("%PDF-1.7")), encoded([]byte("MZ\x90\x00")), encoded([]byte("\x7fELF")), encoded([]byte("PK\x03\x04")),
	} {
		what := fmt.Sprintf("base64 %.40q", text)
		list = append(list, newBody(what, http.MethodPost, "/v1.1/face/extract", `{"faces":"`+text+`"}`), newBody(what, http.MethodPost, "/v1.1/subjects", `{"face":"`+text+`"}`))
	}
	return list
}
