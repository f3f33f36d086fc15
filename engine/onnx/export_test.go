package onnx

// PortsOf is portsOf for tests.
var PortsOf = portsOf
