package kernel

// active is the fastest kernel of this processor.
var active = kernels()[0]
