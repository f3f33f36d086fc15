package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/config"
	"facet/cmd/facet/signature"
	"facet/cmd/facet/tenant"
	"facet/node/sigv4"
)

// explaining is one call of facet explain-signature.
type explaining struct {
	where    tenant.Connection
	parts    signature.Parts
	bodyFile string
	at       string
	region   string
	forms    string
	mustSign []string
}

func newExplainSignature() *cobra.Command {
	var x explaining
	cmd := &cobra.Command{
		Use: "explain-signature [FILE]", Short: "say why the signature of a request is refused",
		Long: "Verify the signature of a request step by step, and name the first step that refuses it and how to repair it.\n\n" +
			"FILE has the request as it was sent, or the output of \"curl -v\"; - or none is standard input. --method, --url and\n" +
			"--header give a request in parts. The secret key comes from the tenant's profile, or from FACET_SECRET_KEY.\n" +
			"Nothing is sent.\n\n" +
			"The exit status is 0 if the signature is accepted, and 1 if not.",
		Example: "  curl -v … 2>&1 | facet explain-signature --body-file photo.json\n" +
			"  facet explain-signature request.txt --at 2026-11-26T20:00:00Z\n" +
			"  facet explain-signature --method GET --url https://127.0.0.1:7420/v1.1/health --header 'X-Cloud-Date: …' --header 'Authorization: …'",
		Args: cli.Args(cobra.MaximumNArgs(1)),
	}
	f := cmd.Flags()
	x.where.Flags(f)
	f.StringVar(&x.parts.Method, "method", "", "method of a request in parts")
	f.StringVar(&x.parts.URL, "url", "", "URL of a request in parts, percent-encoded as it is sent")
	f.StringArrayVar(&x.parts.Headers, "header", nil, "header of a request in parts, \"NAME: VALUE\"; may be repeated")
	f.StringVar(&x.bodyFile, "body-file", "", "file with the body, byte by byte as it is sent")
	f.StringVar(&x.at, "at", "", "when the request was sent, YYYY-MM-DDTHH:MM:SSZ (default: now)")
	f.StringVar(&x.region, "region", "", "the server's setting region (default: the profile's)")
	f.StringVar(&x.forms, "signature-forms", string(config.FormsTolerant), "the server's setting signature-forms, tolerant or strict")
	f.StringSliceVar(&x.mustSign, "must-sign", nil, "the server's setting must-sign")
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := x.explain(cmd, args)
		if err != nil {
			return err
		}
		write := func(w io.Writer) error { return signature.Write(w, e) }
		if *asJSON {
			write = func(w io.Writer) error { return cli.PrintJSON(w, e) }
		}
		if err := write(cmd.OutOrStdout()); err != nil || e.Accepted {
			return err
		}
		return &cli.ExitError{Status: cli.ExitFailed}
	}
	return cmd
}

// explain reads the request and explains it.
func (x *explaining) explain(cmd *cobra.Command, args []string) (e sigv4.Explanation, err error) {
	now := time.Now()
	if x.at != "" {
		if now, err = time.Parse(time.RFC3339, x.at); err != nil {
			return e, cli.Misuse(errors.New("--at is a time like 2026-11-26T20:00:00Z"))
		}
	}
	canonical := sigv4.Tolerant
	switch config.SignatureForms(x.forms) {
	case config.FormsTolerant:
	case config.FormsStrict:
		canonical = sigv4.Strict
	default:
		return e, cli.Misuse(errors.New("--signature-forms is tolerant or strict"))
	}
	sent, err := x.request(cmd.InOrStdin(), args)
	if err != nil {
		return e, err
	}
	profile, err := x.secret()
	if err != nil {
		return e, err
	}
	sent.Secret = profile.SecretKey
	var ports []string
	for _, base := range profile.BaseURLs {
		if u, err := url.Parse(base); err == nil {
			sent.Hosts, ports = append(sent.Hosts, u.Host), append(ports, u.Port())
		}
	}
	region := cmp.Or(x.region, profile.Region, sigv4.RegionDefault)
	v := sigv4.New(sigv4.Config{
		Region: region, Service: cmp.Or(profile.Service, sigv4.ServiceDefault), Canonical: canonical, Ports: ports, MustSign: x.mustSign,
	})
	if claim, err := v.Parse(sent.Request, now); err == nil && profile.AccessKey != "" && claim.AccessKey != profile.AccessKey {
		fmt.Fprintf(cmd.ErrOrStderr(), "facet: the request names the access key %s, and the profile is of %s\n", claim.AccessKey, profile.AccessKey)
	}
	return v.Explain(sent, now), nil
}

// request reads the request from its parts, or from the file that args name.
func (x *explaining) request(in io.Reader, args []string) (s sigv4.Sent, err error) {
	var body []byte
	if x.bodyFile != "" {
		f, err := os.Open(x.bodyFile)
		if err != nil {
			return s, fmt.Errorf("read the body: %w", err)
		}
		defer f.Close()
		if body, err = signature.ReadBody(f); err != nil {
			return s, fmt.Errorf("read the body: %w", err)
		}
	}
	if x.parts.URL != "" || x.parts.Method != "" || len(x.parts.Headers) > 0 {
		if len(args) > 0 {
			return s, cli.Misuse(errors.New("a FILE and --method, --url or --header exclude each other"))
		}
		s, err := x.parts.Request(body)
		if err != nil {
			return s, cli.Misuse(err)
		}
		return s, nil
	}
	if len(args) == 1 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return s, fmt.Errorf("read the request: %w", err)
		}
		defer f.Close()
		in = f
	}
	return signature.Read(in, body)
}

// secret returns the tenant's profile, or one with a secret key alone if only the environment has
// one.
func (x *explaining) secret() (client.Config, error) {
	_, profile, err := x.where.Read()
	if secret := os.Getenv(tenant.SecretVariable); err != nil && secret != "" && !x.where.Named() {
		return client.Config{SecretKey: secret}, nil
	}
	return profile, err
}
