package kernel

import (
	"encoding/binary"

	"facet/engine/score"
)

// layout says how far apart the parts of a plane are.
type layout struct{ groupBytes, lineBytes, blockBytes int }

// at gives the offset of a group.
func (l *layout) at(group int) int {
	return group/blockGroups*l.blockBytes + group%blockGroups*l.groupBytes
}

// plane says what a scan of a plane reads and writes. The assembly knows the
// offsets of the fields.
type plane struct {
	codes []byte // blocks of four groups
	// masks tells the slots of each group that are wanted, and after the scan those
	// of them that are not out.
	masks []uint16
	// sums are of slots: shifted by shift to the left (32: dropped), then the plane's
	// sum is added. They mean nothing for slots that were not wanted.
	sums   []int32
	probe  []int8
	lines  int
	layout layout
	shift  uint64
	offset float32
	limit  limit

	// list names the groups to scan; blocks scans all of them instead.
	list []uint16
	// fetch is how many lines a group has, bounds included.
	fetch int
}

// rests says of which rows to sum the rest of the code: low, and
// mid shifted to the left by shift (32: dropped).
type rests struct {
	rows   []byte
	list   []uint16 // slots
	probe  []int8
	sums   []int32 // of list
	stride int
	units  int // of 64 numbers in a row
	shift  uint64
}

// laneCount is how many probes lanes works for at once.
const laneCount = 16

// lanes says how to bound all rows of a piece by hi and mid, for sixteen probes.
type lanes struct {
	hi, mid []byte
	groups  int
	lines   int
	// probes has, for every four numbers, those of each probe in turn.
	probes []int8
	// masks and sums are of each probe in turn, at strides in bytes; masks tells the
	// rows that are not out, sums are those of hi and mid together.
	masks      []uint16
	maskStride int
	sums       []int32
	sumStride  int
	offset     [laneCount]float32
	c, z       [laneCount]float32
}

// dots says which vectors to compare exactly.
type dots struct {
	rows  []float32
	list  []uint16 // slots
	probe []float32
	dots  []float32 // of list
}

// kernel is one implementation of the inner loops. All give the same bits.
type kernel struct {
	name   string
	blocks func(*plane) // nil if groups is as fast
	groups func(*plane) // nil if every row is to be compared exactly
	rests  func(*rests)
	dots   func(*dots)
	lanes  func(*lanes) // nil if it is no faster than one probe after the other
	// fetch begins to fetch the listed rows of so many bytes; nil if it can't.
	fetch func(rows []byte, list []uint16, stride int)
}

var (
	// plain compares every row exactly: without vector instructions that is faster than
	// to take codes apart.
	plain = kernel{name: "plain", dots: dotsPortable}
	// portable defines what the others do.
	portable = kernel{name: "portable", groups: groupsPortable, rests: restsPortable, dots: dotsPortable}
)

func groupsPortable(p *plane) {
	for _, at := range p.list {
		g := int(at)
		mask := p.masks[g]
		group := p.codes[p.layout.at(g):]
		bounds := group[p.lines*p.layout.lineBytes:]
		for s := range groupSlots {
			if mask>>s&1 == 0 {
				continue
			}
			sum := int32(0)
			if p.shift < 32 {
				sum = p.sums[g*groupSlots+s] << p.shift
			}
			sum += planeSum(group[4*s:], p)
			p.sums[g*groupSlots+s] = sum
			alpha := float32(binary.LittleEndian.Uint16(bounds[2*s:]))
			tan := float32(binary.LittleEndian.Uint16(bounds[lineBytes/2+2*s:]))
			if out(sum, p.offset, alpha, tan, p.limit) {
				p.masks[g] &^= 1 << s
			}
		}
	}
}

// planeSum multiplies the slot that codes begins with by the probe.
func planeSum(codes []byte, p *plane) (sum int32) {
	for i := range p.lines {
		word := binary.LittleEndian.Uint32(codes[i*p.layout.lineBytes:])
		for j, q := range p.probe[i*planeDims:][:planeDims] {
			sum += int32(word>>(8*(j%4)+2*(j/4))&3) * int32(q)
		}
	}
	return sum
}

// out tells whether a row can't reach the limit. Each operation is rounded by itself.
func out(sum int32, offset, alpha, tan float32, l limit) bool {
	return float32(float32(float32(sum)-offset)*alpha)+float32(tan*l.z) < l.c
}

func restsPortable(r *rests) {
	for i, at := range r.list {
		low := r.rows[int(at)*r.stride:][:r.stride]
		mid := low[r.units*lowBytes:]
		sum := int32(0)
		for j := range r.units {
			q := r.probe[j*unitDims:][:unitDims]
			for k, b := range low[j*lowBytes:][:lowBytes] {
				sum += int32(b&15)*int32(q[k]) + int32(b>>4)*int32(q[k+lowBytes])
			}
			for k, x := range q {
				sum += int32(mid[j*midBytes+k%midBytes]>>(2*(k/midBytes))&3) * int32(x) << r.shift
			}
		}
		r.sums[i] = sum
	}
}

func dotsPortable(d *dots) {
	n := len(d.probe)
	for i, at := range d.list {
		d.dots[i] = score.Dot(d.probe, d.rows[int(at)*n:][:n])
	}
}
