package wire

// Version is the software's version, the first heading of CHANGELOG.md. "make version" writes it.
const Version = "0.4.0-dev"
