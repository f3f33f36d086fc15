package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
)

func TestErrorsAreInUsersWords(t *testing.T) {
	t.Parallel()
	f := func(want string, err error) {
		t.Helper()
		if got := Plain(err); got != want {
			t.Errorf("%v becomes %q, want %q", err, got, want)
		}
	}
	request := func(cause error) error {
		return fmt.Errorf("GET /x: %w", &url.Error{Op: "Get", URL: "https://n1:7420/x", Err: cause})
	}
	dial := func(cause error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: cause} }
	f("GET /x: n1:7420 refuses connections: is the node running?", request(dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))))
	f("GET /x: n1:7420 did not answer in time", request(dial(os.ErrDeadlineExceeded)))
	f("GET /x: there is no host n1", request(dial(&net.DNSError{Err: "no such host", Name: "n1", IsNotFound: true})))
	f("GET /x: the certificate of n1:7420 is not signed by a known authority: give the cluster's ca.pem (ca_file in a tenant's profile, certificates in an operator's)",
		request(x509.UnknownAuthorityError{}))
	f("GET /x: the certificate of n1:7420 is for n2, 10.0.0.2: call the node by one of these names",
		request(x509.HostnameError{Host: "n1", Certificate: &x509.Certificate{DNSNames: []string{"n2"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 2)}}}))
	f("GET /x: n1:7420: EOF", request(fmt.Errorf("read: %w", io.EOF)))
	f("first: there is no a, and second: n1:7420: EOF", fmt.Errorf("first: %w, and second: %w", &os.PathError{Op: "open", Path: "a", Err: syscall.ENOENT},
		&url.Error{Op: "Get", URL: "https://n1:7420/x", Err: io.EOF}))
	f("open a: permission denied", &os.PathError{Op: "open", Path: "a", Err: syscall.EACCES})
	f("as it is", errors.New("as it is"))
}
