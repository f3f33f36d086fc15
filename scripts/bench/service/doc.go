// Package service measures searches through the whole service: three nodes in processes
// of their own, a gallery over several shards, and signed HTTPS over kept-alive
// connections. One kind of probe is a template, so that the models' time hides nothing.
// The other is a photo that goes through the real models. For comparison the package
// measures the search kernel alone, over the same templates with the same probes, and
// the models alone. It prints where a search's time and processor time go.
package service
