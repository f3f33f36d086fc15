package cluster

import (
	"cmp"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/authority"
	"facet/cmd/facet/config"
	"facet/cmd/facet/serve"
	"facet/internal/id"
	"facet/node/cert"
	"facet/node/wire"
)

// Invitation says which machines may join.
type Invitation struct {
	// Dir is the folder of a node that Init created.
	Dir string
	// Authority is the cluster's. Without a folder it lies beside the node's.
	Authority authority.Access
	// Nodes is how many machines may join, For how long the token is valid.
	Nodes int
	For   time.Duration
	// Listen is the address to listen on. Empty means the port after the node's
	// own, on all addresses.
	Listen string
	// Joined is called for each machine that joined.
	Joined func(name string, left int)
}

// Inviter is a machine that lets others join. It is safe for concurrent use.
type Inviter struct {
	inv       Invitation
	token     Token
	authority *authority.Folder
	settings  config.Settings
	pack      string
	seeds     []string
	members   []wire.Member // empty while the node here is not running
	listener  net.Listener
	http      http.Server

	mu     sync.Mutex
	joined map[id.Node]string // by name
	done   chan struct{}      // closed when all have joined
}

// Invite opens an invitation; Wait ends it. Its token is valid as long as this
// process waits, for a fixed number of machines.
func Invite(ctx context.Context, inv Invitation) (*Inviter, error) {
	dir, err := filepath.Abs(inv.Dir)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", inv.Dir, err)
	}
	f := folder(dir)
	i := &Inviter{inv: inv, joined: map[id.Node]string{}, done: make(chan struct{})}
	credentials := config.CredentialsVariable + "=" + os.Getenv(config.CredentialsVariable)
	if i.settings, err = config.LoadFile(f.settings(), []string{credentials}); err != nil {
		return nil, err
	}
	inv.Authority.Dir = cmp.Or(inv.Authority.Dir, authority.Beside(dir))
	inv.Authority.Admin = f.admin()
	if i.authority, err = inv.Authority.Open(ctx); err != nil {
		return nil, fmt.Errorf("invite: %w", err)
	}
	if _, i.pack, err = serve.Pack(i.settings.Models, i.settings.Dir); err != nil {
		return nil, err
	}
	i.meet(ctx)
	host, port, err := net.SplitHostPort(i.settings.PeerAdvertise)
	if err != nil {
		return nil, fmt.Errorf("the settings of the node: peer-advertise: %w", err)
	}
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		return nil, fmt.Errorf("the settings of the node: peer-advertise: %w", err)
	}
	if err := i.listen(ctx, host, number-peerOffset+inviteOffset); err != nil {
		return nil, err
	}
	return i, nil
}

// Token returns the token with which machines join.
func (i *Inviter) Token() Token { return i.token }

// Wait lets machines join until all invited ones have joined (true), the time is
// over or ctx ends.
func (i *Inviter) Wait(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithDeadline(ctx, i.token.Expires)
	defer cancel()
	all := false
	select {
	case <-i.done:
		all = true
	case <-ctx.Done():
	}
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), wireTimeout)
	defer stop()
	return all, i.http.Shutdown(closing)
}

// meet asks the local node for the other nodes, so that a joining machine learns
// all of them. While the local node is not running, its own address has to do.
func (i *Inviter) meet(ctx context.Context) {
	i.seeds = []string{i.settings.PeerAdvertise}
	c, err := admin.NewClient(admin.Target{Addresses: []string{i.settings.AdminAddress}, Certificates: i.authority.Admin()})
	if err != nil {
		return
	}
	s, err := c.Status(ctx)
	if err != nil {
		return
	}
	i.members = s.Nodes
	for _, m := range s.Nodes {
		if m.Peer != "" && !slices.Contains(i.seeds, m.Peer) && len(i.seeds) < addressesMax {
			i.seeds = append(i.seeds, m.Peer)
		}
	}
}

// listen opens the port, with a certificate of its own that is valid as long as the
// invitation.
func (i *Inviter) listen(ctx context.Context, host string, port int) (err error) {
	where := i.inv.Listen
	if where == "" {
		where = net.JoinHostPort("", fmt.Sprint(port))
		if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
			where = net.JoinHostPort(host, fmt.Sprint(port))
		}
	}
	ca := i.authority.Authority()
	pair, err := ca.IssueServer([]string{host})
	if err != nil {
		return err
	}
	own, err := tls.X509KeyPair(append(pair.Cert, ca.CertPEM()...), pair.Key)
	if err != nil {
		return fmt.Errorf("make a certificate for the invitation: %w", err)
	}
	var l net.ListenConfig
	if i.listener, err = l.Listen(ctx, "tcp", where); err != nil {
		return fmt.Errorf("%s can't be listened on, perhaps another invitation is open (--listen chooses another address): %w", where, err)
	}
	_, chosen, err := net.SplitHostPort(i.listener.Addr().String())
	if err == nil {
		i.token, err = NewToken([]string{net.JoinHostPort(host, chosen)}, cert.Hash(ca.Certificate()), time.Now().Add(i.inv.For))
	}
	if err != nil {
		return errors.Join(err, i.listener.Close())
	}
	routes := http.NewServeMux()
	routes.HandleFunc("POST "+pathJoin, i.serve)
	i.http = http.Server{
		Handler: routes, ReadTimeout: wireTimeout, WriteTimeout: wireTimeout, IdleTimeout: wireTimeout,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	secured := tls.NewListener(i.listener, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, NextProtos: []string{"http/1.1"},
	})
	go func() { _ = i.http.Serve(secured) }() // ends with Wait
	return nil
}

func (i *Inviter) serve(w http.ResponseWriter, r *http.Request) {
	var q joinRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, wireBytesMax)).Decode(&q); err != nil {
		reply(w, http.StatusBadRequest, refusal{"this is not a request of facet cluster join"})
		return
	}
	a, status, err := i.admit(r.Context(), q)
	if err != nil {
		reply(w, status, refusal{err.Error()})
		return
	}
	reply(w, http.StatusOK, a)
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client disconnected, and may ask again
}

// admit checks a request and answers it. The same machine may ask again, because
// its answer may have been lost.
func (i *Inviter) admit(ctx context.Context, q joinRequest) (a joinAnswer, status int, err error) {
	now := time.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	_, again := i.joined[q.Node]
	switch {
	case subtle.ConstantTimeCompare(q.Secret, i.token.Secret[:]) != 1:
		return a, http.StatusForbidden, errors.New("the token is not the one of the invitation that is open here: ask for the present one")
	case now.After(i.token.Expires):
		return a, http.StatusForbidden, errors.New("the token has expired: ask for another invitation")
	case !again && len(i.joined) >= i.inv.Nodes:
		return a, http.StatusForbidden, fmt.Errorf("all %d machines that were invited have joined: ask for another invitation", i.inv.Nodes)
	}
	if skew := now.Sub(q.Time).Round(time.Second); skew.Abs() > skewMax {
		return a, http.StatusConflict, fmt.Errorf("the clocks of the two machines differ by %v (here it is %s, there %s): repair the time service first",
			skew.Abs(), now.UTC().Format(time.RFC3339), q.Time.UTC().Format(time.RFC3339))
	}
	if err := i.fits(q); err != nil {
		return a, http.StatusConflict, err
	}
	if a, err = i.answer(ctx, q); err != nil {
		return a, http.StatusBadRequest, err
	}
	if i.joined[q.Node] = q.Name; !again {
		if i.inv.Joined != nil {
			i.inv.Joined(q.Name, i.inv.Nodes-len(i.joined))
		}
		if len(i.joined) == i.inv.Nodes {
			close(i.done)
		}
	}
	return a, http.StatusOK, nil
}

// fits returns an error when the cluster can't take the node that q describes.
func (i *Inviter) fits(q joinRequest) error {
	if q.Pack != i.pack && !slices.Contains(q.Packs, i.pack) {
		return fmt.Errorf("this cluster's model pack is %.12s, and that of the machine is %.12s: templates of different packs can't be compared; "+
			"name the cluster's pack with --models", i.pack, q.Pack)
	}
	if q.Node.IsZero() || q.Name == "" {
		return errors.New("the machine gives its node no id or name")
	}
	for other, name := range i.joined {
		if name == q.Name && other != q.Node {
			return fmt.Errorf("a node called %s has just joined: give another name with --name", name)
		}
	}
	for _, m := range i.members {
		switch {
		case m.ID == q.Node && m.Answers:
			return fmt.Errorf("the node of that data directory is %s, and runs in this cluster", m.Name)
		case m.ID != q.Node && m.Name == q.Name && m.State != wire.StateRemoved:
			return fmt.Errorf("the cluster has a node called %s: give another name with --name", m.Name)
		}
	}
	return nil
}

// answer signs the certificates and returns what the node needs.
func (i *Inviter) answer(ctx context.Context, q joinRequest) (a joinAnswer, err error) {
	ca := i.authority.Authority()
	a = joinAnswer{Authorities: ca.CertPEM(), Seeds: i.seeds, Region: i.settings.Region, Cluster: ca.Name(), Pack: i.pack}
	var errs [4]error
	a.Certificate, errs[0] = ca.SignNode(q.Request, q.Node, q.Hosts)
	a.Server, errs[1] = ca.SignServer(q.ServerRequest, q.Hosts)
	// Read the keys now and not when the invitation was opened: they may have been
	// rotated.
	a.ClusterKey, a.GossipKey, errs[2] = i.settings.ReadKeys(ctx)
	a.Status, errs[3] = ca.SignStatus(q.StatusRequest, q.Node)
	return a, errors.Join(errs[:]...)
}
