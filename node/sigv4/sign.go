package sigv4

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The scope of signatures (interface, §5). The service is always this one.
const (
	RegionDefault  = "ap-southeast-2"
	ServiceDefault = "execute-api"
)

// Signer signs requests in the specification's form, as clients do.
type Signer struct {
	Region, Service string
	Dialect         Dialect
	// DateHeader is CloudDate or AmzDate. Empty means CloudDate.
	DateHeader string
	// AccessKey and SecretKey are the pair of the tenant.
	AccessKey, SecretKey string
}

// Sign returns the headers to add to r: the date header and Authorization. It signs
// all of r's headers, so they have to reach the server unchanged. r must have the
// header host, and neither a date header nor Authorization. bodyHash is the SHA-256
// of the body, or of the empty string when there is none.
func (s Signer) Sign(r Request, bodyHash [32]byte, now time.Time) ([]Header, error) {
	dateName := s.DateHeader
	if dateName == "" {
		dateName = CloudDate
	}
	if dateName != CloudDate && dateName != AmzDate {
		return nil, fmt.Errorf("sign request: unknown date header %q", dateName)
	}
	for _, name := range []string{CloudDate, AmzDate, "authorization"} {
		if len(r.values(name)) > 0 {
			return nil, fmt.Errorf("sign request: header %s is there already", name)
		}
	}
	if len(r.values("host")) != 1 {
		return nil, errors.New("sign request: not exactly one host header")
	}
	date := now.UTC().Format(dateFormat)
	dated := r
	dated.Headers = append(slices.Clip(slices.Clone(r.Headers)), Header{dateName, date})
	names := make([]string, 0, len(dated.Headers))
	for _, h := range dated.Headers {
		names = append(names, strings.ToLower(h.Name))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = canonicalValue(dated.values(name))
	}
	forms, err := dated.forms(Config{Canonical: Strict}, canonicalValue(dated.values("host")))
	if err != nil {
		return nil, fmt.Errorf("sign request: %w", err)
	}
	sc := scope{dialect: s.Dialect, day: date[:8], region: s.Region, service: s.Service}
	hash := forms[0].hash(r.Method, names, values, hex.EncodeToString(bodyHash[:]))
	signature := sc.derive(mac, s.SecretKey).sign(mac, sc, date, hash)
	return []Header{
		{dateName, date},
		{"Authorization", s.Dialect.token() + " Credential=" + s.AccessKey + "/" + sc.String() +
			", SignedHeaders=" + strings.Join(names, ";") + ", Signature=" + signature},
	}, nil
}
