package idle

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"time"

	"facet/scripts/bench/machine"
)

const (
	trips        = 500
	tripPause    = 10 * time.Millisecond // so that both ends sleep before each message, as at rest
	messageBytes = 256
	tripsTimeout = time.Minute
)

// roundTrip returns the processor time of a message over TLS on loopback and its answer.
func roundTrip(ctx context.Context) (each time.Duration, err error) {
	certificate, err := selfSigned()
	if err != nil {
		return 0, err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	ended := make(chan error, 1)
	go func() { ended <- echo(l) }()                                                                  // ends with its connection, or with l
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}} //nolint:gosec // both ends are this process
	c, err := dialer.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	each, err = exchange(ctx, c)
	return each, errors.Join(err, c.Close(), <-ended)
}

// exchange sends trips messages and reads their answers.
func exchange(ctx context.Context, c net.Conn) (each time.Duration, err error) {
	if err := c.SetDeadline(time.Now().Add(tripsTimeout)); err != nil {
		return 0, err
	}
	message := make([]byte, messageBytes)
	trip := func() error {
		if err := pause(ctx, tripPause); err != nil {
			return err
		}
		if _, err := c.Write(message); err != nil {
			return err
		}
		_, err := io.ReadFull(c, message)
		return err
	}
	if err := trip(); err != nil { // the handshake
		return 0, err
	}
	before, err := machine.OwnCPU()
	for range trips {
		err = errors.Join(err, trip())
	}
	after, failed := machine.OwnCPU()
	return (after - before) / trips, errors.Join(err, failed)
}

// echo answers each message of the first connection with itself.
func echo(l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	message := make([]byte, messageBytes)
	for {
		if _, err := io.ReadFull(c, message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := c.Write(message); err != nil {
			return err
		}
	}
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &t, &t, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
