package kernel

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"facet/engine/score"
)

const (
	// blockLineBytes is the size of a line of the four groups of a block.
	blockLineBytes = blockGroups * lineBytes
	// boundBytes is the size of a slot's bound, groupBoundBytes that of a group's.
	boundBytes      = 2
	groupBoundBytes = groupSlots * boundBytes
)

// layout has the offset of the bounds in a block of a plane, and the size of the block.
type layout struct{ boundsAt, blockBytes int }

func (l *layout) at(group int) int {
	return group/blockGroups*l.blockBytes + group%blockGroups*lineBytes
}

func (l *layout) bounds(plane []byte, group int) []bound {
	at := group/blockGroups*l.blockBytes + l.boundsAt + group%blockGroups*groupBoundBytes
	return unsafe.Slice((*bound)(unsafe.Pointer(&plane[at:][:groupBoundBytes][0])), groupSlots)
}

// plane tells a kernel what a scan of a plane reads and writes. The assembly knows the offsets of
// the fields.
type plane struct {
	codes []byte // blocks of four groups
	// masks has the wanted slots of each block. The scan clears the slots that are out.
	masks []uint64
	// sums has a sum for each slot. The scan shifts it left by shift (32 drops it) and adds the
	// plane's sum. The sums of slots that are not wanted are undefined.
	sums []int32
	// coarse and fine are the probe's numbers for coarseLines and fineLines lines. If there are
	// fine lines, the coarse ones count four times.
	coarse, fine           []int8
	coarseLines, fineLines int
	// run is how many lines a kernel may add up in 16 bits: four times the sums of two bytes' odd pairs
	// or even pairs fit.
	run    int
	layout layout
	shift  uint64
	limit  limit

	// list names the groups that the kernel's groups scans. The kernel's blocks scans all groups,
	// and drops the sums if sums is nil.
	list []uint16
}

// rows tells a kernel to multiply one half of the listed rows' codes by a probe.
type rows struct {
	rows   []byte   // from that half of the first row on
	list   []uint16 // slots
	probe  []int8
	sums   []int32 // of list
	stride int     // bytes of a row, whole lines: twice those of a half
	fetch  int     // how many bytes of each listed row to fetch ahead
}

const (
	// laneCount is how many probes lanes multiplies at once.
	laneCount = 16
	// turnSlots is how many rows are reordered for lanes at a time. They stay in the cache.
	turnSlots = 128
)

// turn tells a kernel which rows' codes to reorder for lanes. A reordered line has four numbers of
// each of sixteen slots, and a byte for each number, without the lower bits that the kernel drops.
type turn struct {
	rows   []byte
	to     []byte
	groups int
	stride int // bytes of a row, whole lines
}

// lanes tells a kernel to multiply rows by sixteen probes.
type lanes struct {
	turned []byte
	// ahead is the memory that will be reordered next. The kernel fetches it meanwhile.
	ahead  []byte
	groups int
	lines  int // of a group
	// probes has the first four numbers of each probe in turn, then the next four, and so on.
	probes []int8
	// masks has the rows whose sums are not below the lane's limit. A lane's masks are maskStride
	// bytes after those of the lane before.
	masks      []uint16
	maskStride int
	limits     [laneCount]int32
	// runs has the numbers of successive lines whose sums of two products fit 16 bits. A kernel that
	// multiplies by 32 bits has none.
	runs []uint8
}

// dots tells a kernel which vectors to compare exactly.
type dots struct {
	rows  []float32
	list  []uint16 // slots
	probe []float32
	dots  []float32 // of list
}

// kernel is one implementation of the inner loops. All return the same bits.
type kernel struct {
	name   string
	blocks func(*plane) // nil if groups is as fast
	groups func(*plane) // nil to compare every row exactly
	rows   func(*rows)
	dots   func(*dots)
	lanes  func(*lanes) // nil if one probe after the other is as fast
	turn   func(*turn)  // for lanes
	// drop is how many lower bits of codes turn leaves out.
	drop uint
	put  func(*put)
	sift func(*sift)
	// fetch starts fetching the first bytes of the listed rows; nil if the processor can't.
	fetch func(rows []byte, list []uint16, stride, bytes int)
}

var (
	// active is the fastest kernel that this processor runs.
	active = kernels()[0]
	// plain compares every row exactly. Without vector instructions that is faster than decoding.
	plain = kernel{name: "plain", dots: dotsPortable}
	// portable defines the results of all others.
	portable = kernel{
		name: "portable", groups: groupsPortable, rows: rowsPortable, dots: dotsPortable,
		lanes: lanesPortable, turn: func(t *turn) { turnPortable(t, 0) }, put: putPortable, sift: siftPortable,
	}
)

// Active returns the name of the kernel that this processor runs.
func Active() string { return active.name }

func groupsPortable(p *plane) {
	for _, at := range p.list {
		g := int(at)
		mask := uint16(p.masks[g/blockGroups] >> (g % blockGroups * groupSlots))
		bounds := p.layout.bounds(p.codes, g)
		for s := range groupSlots {
			if mask>>s&1 == 0 {
				continue
			}
			sum := int32(0)
			if p.shift < 32 {
				sum = p.sums[g*groupSlots+s] << p.shift
			}
			sum += p.sumAt(p.layout.at(g) + 4*s)
			p.sums[g*groupSlots+s] = sum
			if out(sum, bounds[s], &p.limit) {
				p.masks[g/blockGroups] &^= 1 << (g%blockGroups*groupSlots + s)
			}
		}
	}
}

func (p *plane) sumAt(at int) (sum int32) {
	line := func(i int, probe []int8) (sum int32) {
		word := binary.LittleEndian.Uint32(p.codes[at+i*blockLineBytes:])
		for j, q := range probe[:planeDims] {
			sum += int32(word>>(8*(j%4)+2*(j/4))&3) * int32(q)
		}
		return sum
	}
	for i := range p.coarseLines {
		sum += line(i, p.coarse[i*planeDims:])
	}
	if p.fineLines > 0 {
		sum *= 4
	}
	for i := range p.fineLines {
		sum += line(p.coarseLines+i, p.fine[i*planeDims:])
	}
	return sum
}

// out reports whether a row with this sum can't reach the limit.
func out(sum int32, b bound, l *limit) bool {
	return sum < (l.base+int32(b.a)*int32(l.c)-int32(b.t)*int32(l.z))>>l.shift
}

func rowsPortable(r *rows) {
	for i, at := range r.list {
		sum := int32(0)
		for j, b := range r.rows[int(at)*r.stride:][:r.stride/2] {
			probe := r.probe[j/unitBytes*unitNums+j%unitBytes:]
			sum += int32(b&15)*int32(probe[0]) + int32(b>>4)*int32(probe[unitBytes])
		}
		r.sums[i] = sum
	}
}

func turnPortable(t *turn, drop uint) {
	half := t.stride / 2
	for g := range t.groups {
		from, to := t.rows[g*groupSlots*t.stride:], t.to[g*groupSlots*t.stride:]
		for s := range groupSlots {
			for i := range t.stride {
				j, shift := i/unitNums*unitBytes+i%unitBytes, i%unitNums/unitBytes*4
				upper, lower := from[s*t.stride+j]>>shift&15, from[s*t.stride+half+j]>>shift&15
				to[i/4*4*groupSlots+4*s+i%4] = (upper<<4 | lower) >> drop
			}
		}
	}
}

func lanesPortable(l *lanes) {
	for lane, limit := range l.limits {
		for g := range l.groups {
			var sums [groupSlots]int32
			for i := range l.lines {
				line := l.turned[(g*l.lines+i)*lineBytes:][:lineBytes]
				probe := l.probes[(i*laneCount+lane)*4:][:4]
				for s := range groupSlots {
					for j, q := range probe {
						sums[s] += int32(line[4*s+j]) * int32(q)
					}
				}
			}
			mask := uint16(0)
			for s, sum := range sums {
				if sum >= limit {
					mask |= 1 << s
				}
			}
			l.masks[lane*l.maskStride/2+g] = mask
		}
	}
}

func dotsPortable(d *dots) {
	n := len(d.probe)
	for i, at := range d.list {
		d.dots[i] = score.Dot(d.probe, d.rows[int(at)*n:][:n])
	}
}

func putPortable(p *put) {
	for block, mask := range p.masks {
		for ; mask != 0; mask &= mask - 1 {
			slot := bits.TrailingZeros64(mask)
			b := p.layout.bounds(p.plane, block*blockGroups+slot/groupSlots)[slot%groupSlots]
			at := block*blockSlots + slot
			sum := p.sums[at]
			to := p.late
			if !out(sum, b, &p.limit) {
				to = p.soon
			}
			to.at[to.n], to.bounds[to.n], to.sums[to.n] = uint16(p.first)+uint16(at), b, sum
			to.n++
		}
	}
}

func siftPortable(s *sift) {
	l, left := s.list, s.from
	for i := s.from; i < s.from+s.rows; i++ {
		l.at[left], l.bounds[left], l.sums[left] = l.at[i], l.bounds[i], l.sums[i]
		if !out(l.sums[i], l.bounds[i], &s.limit) {
			left++
		}
	}
	s.left = left - s.from
}
