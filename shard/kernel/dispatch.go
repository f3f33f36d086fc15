package kernel

// active is the fastest kernel that this processor runs.
var active = kernels()[0]
