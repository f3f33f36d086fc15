// Package engine measures the cost of the face engine beside the bare models and the
// bare JPEG decoder, and the cost of a node beside the engine. It measures the two
// sides of a comparison in turn, round after round, and prints medians, so that a busy
// machine slows both sides alike.
package engine
