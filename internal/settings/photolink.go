package settings

import (
	"net"
	"net/url"
	"strings"
)

// externalIDPlace is where a photo link gets the external id of a subject, percent-encoded.
const externalIDPlace = "{externalId}"

// photoLinkFault returns what a photo link must have or be and does not, or nothing. An external id can fill in a part of
// the path, the query or the fragment. It can't name the host.
func photoLinkFault(link string) string {
	const allowed = "%:/?#[]@!$&'()*+,;=-._~"
	if link == "" {
		return ""
	}
	filled := strings.ReplaceAll(link, externalIDPlace, "x")
	if filled == link {
		return "contain " + externalIDPlace + ", which becomes the external id of a subject"
	}
	if strings.ContainsFunc(filled, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(allowed, r)
	}) {
		return "be a URL, with other characters percent-encoded"
	}
	scheme, rest, _ := strings.Cut(link, "://")
	host, _, _ := strings.Cut(rest, "/")
	u, err := url.Parse(filled)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "" || strings.Contains(scheme+host, externalIDPlace):
		return "be a URL that has its host before " + externalIDPlace
	case u.User != nil:
		return "have no name or password before the host"
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return "be an https URL (http is for localhost and loopback addresses only)"
	}
	return ""
}

// loopback reports whether a host is the machine of the person who follows a link.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
