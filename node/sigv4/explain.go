package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one step of the verification of a request.
type Step struct {
	Name string `json:"name"`
	// Got is what the request has, Want what the verifier needs. Both may be empty.
	Got  string `json:"got,omitempty"`
	Want string `json:"want,omitempty"`
	// Problem is why the step refuses the request, and Fix what the client has to change.
	// Both are empty for a step that passes.
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

// Explanation says why a request is accepted or refused. It contains no secret.
type Explanation struct {
	Accepted bool `json:"accepted"`
	// Message is the answer to a refused request.
	Message string `json:"message,omitempty"`
	Steps   []Step `json:"steps"`
	// Canonical is the canonical request that the verifier builds, in the accepted form that is
	// nearest to the client's, and StringToSign what it signs then. Signed is the canonical request
	// that the client signed, if it is known and differs.
	Canonical    string `json:"canonical,omitempty"`
	StringToSign string `json:"stringToSign,omitempty"`
	Signed       string `json:"signed,omitempty"`
}

// Sent is a request to explain.
type Sent struct {
	Request
	Body []byte
	// Secret is the secret key of the access key that the request names.
	Secret string
	// Hosts lists hosts under which the client may know the service.
	Hosts []string
}

// Explain verifies a request step by step. After a step that refuses it goes on, if it can, as if
// the step had passed. Its verdict is that of Parse and Verify. It takes far longer than they do,
// and tells more than a client without the secret may know.
func (v *Verifier) Explain(s Sent, now time.Time) Explanation {
	var e Explanation
	bodyHash := sha256.Sum256(s.Body)
	claim, err := v.Parse(s.Request, now)
	if err == nil {
		err = claim.Verify(s.Secret, bodyHash)
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		e.Message = refused.Message
	}
	e.Accepted = err == nil
	if c := e.claim(v, s.Request, now); c != nil {
		e.signature(c, s, hex.EncodeToString(bodyHash[:]))
	}
	return e
}

// add adds a step that refuses because of err, or passes.
func (e *Explanation) add(s Step, err error) {
	if refused, ok := errors.AsType[*Error](err); ok && s.Problem == "" {
		s.Problem = refused.cause.Error()
		s.Fix = fixes[s.Problem]
	}
	e.Steps = append(e.Steps, s)
}

// claim does the work of Parse in steps. It returns nil if the steps after it make no sense.
func (e *Explanation) claim(v *Verifier, r Request, now time.Time) *Claim {
	auth, ok := e.authorization(v, r)
	if !ok {
		return nil
	}
	dateName, date, ok := e.date(v, r, now)
	if !ok {
		return nil
	}
	day := Step{Name: "day of the scope", Got: auth.scope.day, Want: date[:8]}
	if day.Got != day.Want {
		day.Problem = "the credential's day is not the day of the date header"
		day.Fix = fixes[day.Problem]
	}
	e.add(day, nil)
	c := &Claim{
		AccessKey: auth.accessKey, Signature: auth.signature,
		verifier: v, scope: auth.scope, date: date, method: r.Method, names: auth.names,
	}
	signed := Step{Name: "signed headers", Got: strings.Join(auth.names, ";")}
	err := v.headers(c, r, dateName)
	if err == nil {
		e.add(signed, nil)
		return c
	}
	lax := New(v.cfg)
	lax.cfg.MustSign = nil
	c.values, c.stated = nil, nil
	if err2 := lax.headers(c, r, dateName); err2 != nil {
		e.add(detailed(signed, r, auth.names, dateName), err2)
		return nil
	}
	signed.Want = strings.Join(v.cfg.MustSign, ";") + " when sent"
	signed.Problem, signed.Fix = cause(err), "add the header to SignedHeaders and to the canonical request: this server's must-sign names it"
	e.add(signed, nil)
	return c
}

// authorization explains the Authorization header and the scope in it.
func (e *Explanation) authorization(v *Verifier, r Request) (authorization, bool) {
	header := Step{Name: "authorization"}
	if all := r.values("authorization"); len(all) == 1 {
		header.Got, _, _ = strings.Cut(all[0], " ")
	}
	header.Want = AWS4.token() + " or " + Cloud4.token()
	auth, err := v.authorization(r)
	refused, ok := errors.AsType[*Error](err)
	if !ok {
		e.add(header, nil)
		e.add(Step{Name: "scope", Got: auth.scope.String()}, nil)
		return auth, true
	}
	if refused.Message != messageScope {
		e.add(header, err)
		return auth, false
	}
	e.add(header, nil)
	_, rest, _ := strings.Cut(r.values("authorization")[0], " ")
	credential, _, _, _ := fields(rest) // authorization has read them
	scope := Step{Name: "scope", Want: "DAY/" + v.cfg.Region + "/" + v.cfg.Service + "/aws4_request (or cloud4_request)"}
	_, scope.Got, _ = strings.Cut(credential, "/")
	e.add(scope, err)
	parts := strings.Split(credential, "/")
	if len(parts) != 5 {
		return auth, false
	}
	lax := New(v.cfg)
	lax.cfg.Region, lax.cfg.Service = parts[2], parts[3]
	auth, err = lax.authorization(r)
	return auth, err == nil
}

// date explains the date header.
func (e *Explanation) date(v *Verifier, r Request, now time.Time) (name, date string, ok bool) {
	step := Step{Name: "date", Want: now.UTC().Format(dateFormat) + " ± " + Window.String()}
	step.Got = strings.Join(slices.Compact(append(r.values(CloudDate), r.values(AmzDate)...)), ", ")
	name, date, err := v.date(r, now)
	if err == nil {
		e.add(step, nil)
		return name, date, true
	}
	at, parseErr := time.Parse(dateFormat, step.Got)
	if parseErr != nil {
		e.add(step, err)
		return "", "", false
	}
	name, date, ofItself := v.date(r, at)
	if ofItself != nil {
		e.add(step, err)
		return "", "", false
	}
	way, off := "behind", now.Sub(at).Round(time.Second)
	if off < 0 {
		way, off = "ahead of", -off
	}
	step.Problem = fmt.Sprintf("the request's date is %s %s the server's clock", off, way)
	step.Fix = "repair the client's clock (timedatectl), or sign right before sending; if the request is an old one, give the time at which it was sent"
	e.add(step, nil)
	return name, date, true
}

// detailed names the headers because of which the step refuses.
func detailed(s Step, r Request, names []string, dateName string) Step {
	var absent []string
	signed := map[string]bool{}
	for _, name := range names {
		signed[name] = true
		if len(r.values(name)) == 0 {
			absent = append(absent, name)
		}
	}
	for _, name := range []string{"host", dateName, "x-cloud-content-sha256", "x-amz-content-sha256"} {
		if len(r.values(name)) > 0 && !signed[name] {
			s.Problem, s.Fix = name+" is sent and not signed", "add "+name+" to SignedHeaders and to the canonical request"
			return s
		}
	}
	if len(absent) > 0 && signed["host"] && signed[dateName] {
		s.Problem = strings.Join(absent, ", ") + " is signed and not sent"
		s.Fix = "send the header, or leave it out of SignedHeaders; a proxy may have removed it"
	}
	return s
}

// cause returns the cause of a refusal.
func cause(err error) string {
	refused, _ := errors.AsType[*Error](err)
	return refused.cause.Error()
}

// fixes has what a client changes for each cause of a refusal.
var fixes = map[string]string{
	"no Authorization header (presigned queries are not accepted)": "send the signature in an Authorization header",
	"several Authorization headers":                                "send one Authorization header",
	"Authorization header is too long":                             "sign fewer headers",
	"presigned queries are not accepted":                           "take X-Amz-… and X-Cloud-… out of the query; sign in the Authorization header",
	"unknown scheme":                                               "begin the Authorization header with AWS4-HMAC-SHA256 or CLOUD4-HMAC-SHA256",
	"authorization has not three fields":                           "write Credential=…, SignedHeaders=…, Signature=…, separated by commas",
	"authorization has an unknown field":                           "write Credential=…, SignedHeaders=…, Signature=… and nothing else",
	"authorization has a repeated or empty field":                  "write Credential, SignedHeaders and Signature once each, with a value",
	"credential has not five parts":                                "write Credential=ACCESSKEY/DAY/REGION/SERVICE/aws4_request",
	"other region, service or terminator":                          "sign for the server's region and service; the scope of AWS4 ends with aws4_request, of CLOUD4 with cloud4_request",
	"too many signed headers":                                      "sign fewer headers",
	"a signed header's name is not lower-case":                     "write the names in SignedHeaders in lower case",
	"signed headers are not sorted or repeat":                      "sort the names in SignedHeaders, each once",
	"signature is not 64 lower-case hexadecimal digits":            "write the signature as 64 lower-case hexadecimal digits",
	"no date header":                                               "send the header x-cloud-date or x-amz-date, YYYYMMDDTHHMMSSZ in UTC; the header Date does not count",
	"both date headers are present":                                "send x-cloud-date or x-amz-date, not both",
	"copies of the date header differ":                             "send the date header once",
	"date header is not YYYYMMDDTHHMMSSZ":                          "write the date as YYYYMMDDTHHMMSSZ in UTC",
	"the credential's day is not the day of the date header":       "take the day of the scope from the date header, in UTC",
	"session tokens are not accepted":                              "use a permanent access key without a session token",
	"not exactly one host header":                                  "send one Host header",
	"a signed header is absent":                                    "send each header that SignedHeaders names",
	"query is not percent-encoded or too long":                     "percent-encode the query, at most 64 parameters",
	"query key is repeated":                                        "send each parameter of the query once",
	"x-cloud-content-sha256 has to be signed":                      "add the header to SignedHeaders",
	"x-amz-content-sha256 has to be signed":                        "add the header to SignedHeaders",
	"host has to be signed":                                        "add host to SignedHeaders",
	CloudDate + " has to be signed":                                "add the date header to SignedHeaders",
	AmzDate + " has to be signed":                                  "add the date header to SignedHeaders",
}
