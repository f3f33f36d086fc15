package memscan

import "encoding/binary"

// When a signal interrupts a thread, the system writes the thread's registers to the thread's
// signal stack. They stay there until the thread's next signal. On x86-64 the part with the
// vector registers starts at a multiple of 64 (Linux, arch/x86/include/uapi/asm/sigcontext.h):
//
//	0     160                  416   464
//	│ x87 │ XMM0 to XMM15, 256 │     │ "FPXS" …
const (
	registersAt    = 160
	registersEnd   = registersAt + 16*16
	frameMagicAt   = 464
	frameMagic     = 0x46505853
	frameAlignment = 64
)

// inRegisters reports whether b[from:to] lies in the vector registers of a signal frame.
// b starts at a multiple of 64.
func inRegisters(b []byte, from, to int) bool {
	for frame := max(0, to-registersEnd+frameAlignment-1) / frameAlignment * frameAlignment; frame+registersAt <= from; frame += frameAlignment {
		if frame+frameMagicAt+4 <= len(b) && binary.LittleEndian.Uint32(b[frame+frameMagicAt:]) == frameMagic {
			return true
		}
	}
	return false
}
