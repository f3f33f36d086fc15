package cli

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Plain returns the text of an error, with what Go's libraries report of files, JSON and connections
// in the words of a user.
func Plain(err error) string {
	text := err.Error()
	var visit func(error)
	visit = func(err error) {
		plain := ""
		switch e := err.(type) { //nolint:errorlint // visit unwraps
		case *url.Error:
			plain = unreachable(e)
		case *fs.PathError:
			if errors.Is(e, fs.ErrNotExist) {
				plain = "there is no " + e.Path
			}
		case *json.SyntaxError:
			plain = fmt.Sprintf("it is not JSON (byte %d)", e.Offset)
		}
		if plain != "" {
			text = strings.ReplaceAll(text, err.Error(), plain)
			return
		}
		switch e := err.(type) { //nolint:errorlint // it unwraps
		case interface{ Unwrap() error }:
			if inner := e.Unwrap(); inner != nil {
				visit(inner)
			}
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				visit(inner)
			}
		}
	}
	visit(err)
	return text
}

// unreachable returns why a request got no answer.
func unreachable(e *url.Error) string {
	host := e.URL
	if u, err := url.Parse(e.URL); err == nil && u.Host != "" {
		host = u.Host
	}
	if unknown, ok := errors.AsType[*net.DNSError](e); ok && unknown.IsNotFound {
		return "there is no host " + unknown.Name
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](e); ok {
		return "the certificate of " + host + " is not signed by a known authority: give the cluster's ca.pem (ca_file in a tenant's profile, certificates in an operator's)"
	}
	if wrong, ok := errors.AsType[x509.HostnameError](e); ok {
		return fmt.Sprintf("the certificate of %s is for %s: call the node by one of these names", host, strings.Join(append(wrong.Certificate.DNSNames, addresses(wrong.Certificate)...), ", "))
	}
	switch {
	case errors.Is(e, syscall.ECONNREFUSED):
		return host + " refuses connections: is the node running?"
	case e.Timeout():
		return host + " did not answer in time"
	}
	inner := e.Err
	for next := errors.Unwrap(inner); next != nil; next = errors.Unwrap(inner) {
		inner = next
	}
	return host + ": " + inner.Error()
}

func addresses(c *x509.Certificate) (list []string) {
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	return list
}

// FlagError returns the error of a flag in the words of a user, as a usage error.
func FlagError(_ *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return Misuse(err)
	}
	flag, value := invalid.GetFlag(), invalid.GetValue()
	number, isNumber := errors.AsType[*strconv.NumError](err)
	switch {
	case isNumber && errors.Is(number, strconv.ErrRange):
		return Misuse(fmt.Errorf("--%s: %s is too large or too small", flag.Name, value))
	case isNumber && flag.Value.Type() == "bool":
		return Misuse(fmt.Errorf("--%s: %q is neither true nor false", flag.Name, value))
	case isNumber:
		return Misuse(fmt.Errorf("--%s: %q is not a number", flag.Name, value))
	case flag.Value.Type() == "duration":
		return Misuse(fmt.Errorf("--%s: %q is not a time such as 90s, 15m or 2h", flag.Name, value))
	}
	return Misuse(fmt.Errorf("--%s %q: %w", flag.Name, value, errors.Unwrap(invalid)))
}

// miscounted returns the error of a command with too few or too many arguments: which is missing,
// by its name in Use, or is too many.
func miscounted(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	if end := slices.IndexFunc(names, func(name string) bool { return strings.ContainsAny(name[:1], "-{") }); end >= 0 {
		names = names[:end] // flags follow, or a choice that the command checks itself
	}
	switch {
	case len(args) >= len(names) && len(args) > 0:
		return fmt.Errorf("%q is one argument too many", args[len(args)-1])
	case len(names) == 0:
		return errors.New("an argument is missing")
	case len(names) > 1 && names[1] == "|":
		return fmt.Errorf("%s is missing", strings.Join(names, " "))
	}
	return fmt.Errorf("%s is missing", names[len(args)])
}
