// Package console is `facet console`: the pages of node/console on loopback, and a proxy that
// signs their requests with a profile's key. The browser has no secret of the tenant and sees no
// certificate, and when a node dies the next one answers.
//
// The address has a token that works once. Whoever opens it gets a cookie, and only requests with
// the cookie reach the cluster. A request for another host, or from a page of another origin, is
// refused, so that no web page reaches the cluster through the person's browser.
//
// It may import client, node/console, node/listener, node/receipt, node/wire and the package dev of cmd/facet.
package console
