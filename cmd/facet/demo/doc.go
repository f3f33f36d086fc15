// Package demo is `facet demo`, the story behind `make demo`. A cluster starts,
// learns a few faces, recognises one of them, loses a node and continues.
//
// The demo calls the cluster over HTTPS like any client, and kills a node as an
// accident would. It may import client, node, internal/id and the packages dev,
// console, process and config of cmd/facet.
package demo
