package sigv4

import (
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"
)

// Canonical selects the accepted canonical forms of a request.
type Canonical uint8

const (
	// Tolerant accepts the forms that common signers use: path encoded once or
	// twice, query sorted or as sent, its plus signs as spaces, host with or without
	// port.
	Tolerant Canonical = iota
	// Strict accepts the specification's form only: path encoded twice, query
	// sorted, host as sent.
	Strict
)

// Config says which signatures a Verifier accepts.
type Config struct {
	// Region and Service are the only ones accepted in a credential's scope.
	Region, Service string
	Canonical       Canonical
	// Ports lists the ports besides 443 at which clients reach the service. A Host
	// header without a port is tried with each that is not empty.
	Ports []string
	// MustSign names further headers, in lower case, that have to be signed
	// when they are present. The host and the date header always have to be.
	MustSign []string
}

// Verifier checks signatures. It is safe for concurrent use.
type Verifier struct {
	cfg  Config
	keys keyCache
	mac  macFunc
}

// New returns a Verifier.
func New(cfg Config) *Verifier { return &Verifier{cfg: cfg, mac: mac} }

// Claim is a request that names its signer. Its signature is not proven until Verify
// has checked it. Parse has checked everything that needs neither the secret nor the
// body.
type Claim struct {
	// AccessKey is the access key that the request names.
	AccessKey string
	// Signature is the signature, 64 lower-case hexadecimal digits. Once Verify has
	// accepted it, it identifies a byte-identical replay.
	Signature string

	verifier *Verifier
	scope    scope
	date     string
	method   string
	query    string
	forms    []form
	signed   string   // the query of the form that Verify found
	names    []string // signed headers, sorted
	values   []string // their canonical values
	// stated contains the body hashes that headers of the request state.
	stated []string
}

// Signed reports whether the signature covers a header, whose name is in lower case.
func (c *Claim) Signed(header string) bool {
	_, ok := slices.BinarySearch(c.names, header)
	return ok
}

// Query returns the query of a claim that Verify has accepted. Each "+" left in it
// stands for a space, because "%2B" replaces those that the client signed as plus signs.
func (c *Claim) Query() string {
	if c.signed == c.forms[0].query {
		return strings.ReplaceAll(c.query, "+", "%2B")
	}
	return c.query
}

// BodyHash returns the SHA-256 of the body that the request's headers state, and whether they state one. The
// signature covers these headers, so Verify with this hash checks it before the body has come.
func (c *Claim) BodyHash() (hash [32]byte, ok bool) {
	for _, stated := range c.stated {
		if stated != c.stated[0] || !isHex64(stated) {
			return [32]byte{}, false
		}
		_, _ = hex.Decode(hash[:], []byte(stated)) // isHex64 has checked it
	}
	return hash, len(c.stated) > 0
}

// Parse reads the signature of r and checks everything that needs neither the
// secret nor the body: grammar, scope, date against now, signed headers. Every
// error is an *Error.
func (v *Verifier) Parse(r Request, now time.Time) (*Claim, error) {
	auth, err := v.authorization(r)
	if err != nil {
		return nil, err
	}
	dateName, date, err := v.date(r, now)
	if err != nil {
		return nil, err
	}
	if auth.scope.day != date[:8] {
		return nil, refuse(messageScope, "the credential's day is not the day of the date header")
	}
	c := &Claim{
		AccessKey: auth.accessKey, Signature: auth.signature,
		verifier: v, scope: auth.scope, date: date, method: r.Method, names: auth.names,
	}
	if err := v.headers(c, r, dateName); err != nil {
		return nil, err
	}
	return c, nil
}

// date finds the date header and checks it against now.
func (v *Verifier) date(r Request, now time.Time) (name, date string, err error) {
	cloud, amz := r.values(CloudDate), r.values(AmzDate)
	name, all := CloudDate, cloud
	switch {
	case len(cloud) > 0 && len(amz) > 0:
		return "", "", refuse(messageMismatch, "both date headers are present")
	case len(amz) > 0:
		name, all = AmzDate, amz
	case len(cloud) == 0:
		return "", "", refuse(messageMissing, "no date header")
	}
	date = all[0]
	for _, other := range all {
		if other != date {
			return "", "", refuse(messageMismatch, "copies of the date header differ")
		}
	}
	at, err := time.Parse(dateFormat, date)
	if err != nil || len(date) != len(dateFormat) {
		return "", "", refuse(messageMissing, "date header is not YYYYMMDDTHHMMSSZ")
	}
	server := now.UTC().Format(dateFormat)
	switch skew := now.Sub(at); {
	case skew > Window:
		edge := now.UTC().Add(-Window).Format(dateFormat)
		return "", "", refuse("Signature expired: "+date+" is now earlier than "+edge+" ("+server+" - 5 min.)", "expired")
	case skew < -Window:
		edge := now.UTC().Add(Window).Format(dateFormat)
		return "", "", refuse("Signature not yet current: "+date+" is still later than "+edge+" ("+server+" + 5 min.)", "not yet current")
	}
	return name, date, nil
}

// headers checks the list of signed headers against r. It sets what Verify needs of
// them and of the target.
func (v *Verifier) headers(c *Claim, r Request, dateName string) error {
	for _, name := range v.cfg.MustSign {
		if len(r.values(name)) > 0 && !c.signs(name) {
			err := refuse("The header "+name+" must be signed when it is sent: name it in SignedHeaders.", name+" is not signed")
			err.Unsigned = name
			return err
		}
	}
	must := []string{"host", dateName}
	for _, name := range []string{"x-cloud-content-sha256", "x-amz-content-sha256"} {
		if stated := r.values(name); len(stated) > 0 {
			must = append(must, name)
			c.stated = append(c.stated, stated...)
		}
	}
	for _, name := range must {
		if !c.signs(name) {
			return refuse(messageMismatch, name+" has to be signed")
		}
	}
	if len(r.values("x-amz-security-token"))+len(r.values("x-cloud-security-token")) > 0 {
		return refuse(messageMismatch, "session tokens are not accepted")
	}
	hosts := r.values("host")
	if len(hosts) != 1 {
		return refuse(messageMismatch, "not exactly one host header")
	}
	for _, name := range c.names {
		values := r.values(name)
		if len(values) == 0 {
			return refuse(messageMismatch, "a signed header is absent")
		}
		if name == dateName {
			values = values[:1] // equal copies count as one
		}
		c.values = append(c.values, canonicalValue(values))
	}
	c.query = r.query()
	var err error
	if c.forms, err = r.forms(v.cfg, canonicalValue(hosts)); err != nil {
		refused := &Error{Message: messageMismatch, cause: err}
		if twice, ok := errors.AsType[repeated](err); ok && len(twice.key) <= queryKeyMax {
			refused.Message = "The query has the parameter " + twice.key + " twice: send it once."
		}
		return refused
	}
	return nil
}

// signs reports whether the signature covers the header of that name.
func (c *Claim) signs(name string) bool {
	_, ok := slices.BinarySearch(c.names, name)
	return ok
}

// dummySecret replaces the secret of an unknown access key, so that the answer
// takes as long as for a known one.
const dummySecret = "no-such-access-key-no-such-secret-key-00"

// Verify returns nil if the claim is signed with secret over a body of this
// SHA-256. Otherwise it returns an *Error with one message for every cause. An
// empty secret means that the access key does not exist: Verify does the same work
// and always refuses the claim.
func (c *Claim) Verify(secret string, bodyHash [32]byte) error {
	known := secret != ""
	if !known {
		secret = dummySecret
	}
	v := c.verifier
	name := nameOf(secret, c.scope)
	key, cached := v.keys.find(name)
	if !cached {
		key = c.scope.derive(v.mac, secret)
	}
	ok := c.matches(key, bodyHash)
	switch {
	case !ok && cached:
		// A cached key belongs to an access key in use. Its refusal takes no less.
		c.scope.derive(v.mac, secret)
	case ok && known && !cached:
		v.keys.add(name, key)
	}
	if !ok || !known {
		return refuse(messageMismatch, "signature differs, or the stated hash is not the body's")
	}
	return nil
}

// matches reports whether key signed the claim over a body of this SHA-256. It does
// all its work, whatever differs, so that the time reveals nothing.
func (c *Claim) matches(key signingKey, bodyHash [32]byte) bool {
	body := hex.EncodeToString(bodyHash[:])
	matched := false
	for _, f := range c.forms {
		want := key.sign(c.verifier.mac, c.scope, c.date, f.hash(c.method, c.names, c.values, body))
		if hmac.Equal([]byte(want), []byte(c.Signature)) {
			matched, c.signed = true, f.query
		}
	}
	for _, stated := range c.stated {
		if !hmac.Equal([]byte(stated), []byte(body)) {
			matched = false
		}
	}
	return matched
}

// authorization is a parsed Authorization header.
type authorization struct {
	accessKey string
	scope     scope
	names     []string
	signature string
}

// authorization reads the one Authorization header of r:
//
//	TOKEN Credential=KEY/DAY/REGION/SERVICE/TERMINATOR, SignedHeaders=a;b, Signature=HEX
func (v *Verifier) authorization(r Request) (authorization, error) {
	all := r.values("authorization")
	switch {
	case len(all) == 0:
		return authorization{}, refuse(messageMissing, "no Authorization header (presigned queries are not accepted)")
	case len(all) > 1:
		return authorization{}, refuse(messageMismatch, "several Authorization headers")
	case len(all[0]) > authorizationMax:
		return authorization{}, refuse(messageMissing, "Authorization header is too long")
	}
	if presigned(r.query()) {
		return authorization{}, refuse(messageMismatch, "presigned queries are not accepted")
	}
	token, rest, _ := strings.Cut(all[0], " ")
	dialect := AWS4
	switch token {
	case AWS4.token():
	case Cloud4.token():
		dialect = Cloud4
	default:
		return authorization{}, refuse(messageMissing, "unknown scheme")
	}
	credential, signedHeaders, signature, err := fields(rest)
	if err != nil {
		return authorization{}, &Error{Message: messageMissing, cause: err}
	}
	a := authorization{signature: signature}
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[0] == "" || len(parts[0]) > accessKeyMax {
		return authorization{}, refuse(messageScope, "credential has not five parts")
	}
	a.accessKey = parts[0]
	a.scope = scope{dialect: dialect, day: parts[1], region: parts[2], service: parts[3]}
	if parts[2] != v.cfg.Region || parts[3] != v.cfg.Service || parts[4] != dialect.terminator() {
		return authorization{}, refuse(messageScope, "other region, service or terminator")
	}
	a.names = strings.Split(signedHeaders, ";")
	if err := checkNames(a.names); err != nil {
		return authorization{}, &Error{Message: messageMismatch, cause: err}
	}
	if !isHex64(signature) {
		return authorization{}, refuse(messageMismatch, "signature is not 64 lower-case hexadecimal digits")
	}
	return a, nil
}

// fields reads the three named fields of an Authorization header, each exactly
// once, in any order, separated by commas.
func fields(rest string) (credential, signedHeaders, signature string, err error) {
	parts := strings.Split(rest, ",")
	if len(parts) != 3 {
		return "", "", "", errors.New("authorization has not three fields")
	}
	for _, part := range parts {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		into := &credential
		switch name {
		case "Credential":
		case "SignedHeaders":
			into = &signedHeaders
		case "Signature":
			into = &signature
		default:
			return "", "", "", errors.New("authorization has an unknown field")
		}
		if *into != "" || value == "" {
			return "", "", "", errors.New("authorization has a repeated or empty field")
		}
		*into = value
	}
	return credential, signedHeaders, signature, nil
}

// checkNames returns an error unless the signed headers are few, lower-case, sorted
// and without repeats.
func checkNames(names []string) error {
	if len(names) > signedHeadersMax {
		return errors.New("too many signed headers")
	}
	for i, name := range names {
		if name == "" || strings.ToLower(name) != name {
			return errors.New("a signed header's name is not lower-case")
		}
		if i > 0 && names[i-1] >= name {
			return errors.New("signed headers are not sorted or repeat")
		}
	}
	return nil
}

// presigned reports whether a query contains a signature or a credential.
func presigned(query string) bool {
	for part := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(part, "=")
		plain, _ := unescape(key)
		plain = strings.ToLower(plain)
		if strings.HasPrefix(plain, "x-amz-") || strings.HasPrefix(plain, "x-cloud-") {
			return true
		}
	}
	return false
}

// isHex64 reports whether s is 64 lower-case hexadecimal digits.
func isHex64(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
