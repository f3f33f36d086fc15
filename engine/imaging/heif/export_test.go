package heif

// DecodeIn is Decode with so many bytes of memory.
var DecodeIn = decodeIn
