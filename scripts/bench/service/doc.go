// Package service measures searches through the whole service: three nodes in processes
// of their own, a gallery over several shards, signed HTTPS over kept-alive connections.
// Its probes are templates already, so that the models' time hides nothing, or a photo
// that goes through the real models. Beside that it measures the search kernel alone over
// the same templates with the same probes, and the models alone, and prints where a
// search's time and processor time go.
package service
