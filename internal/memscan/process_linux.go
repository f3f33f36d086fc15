package memscan

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	// stepBytes is how much of a process is read at once.
	stepBytes = 16 << 20
	// overlapBytes is how much of it is read again with the next step.
	overlapBytes = 4 << 10
)

// In returns the runs that the writable memory of a process has. Pages that are not in
// memory or in swap have nothing and are passed by.
func (p *Pieces) In(pid int) (found Found, bytesRead int, err error) {
	open := func(name string) *os.File {
		f, openErr := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
		err = errors.Join(err, openErr)
		return f
	}
	maps, memory, pages := open("maps"), open("mem"), open("pagemap")
	defer maps.Close()
	defer memory.Close()
	defer pages.Close()
	if err != nil {
		return nil, 0, err
	}
	found = Found{}
	b := make([]byte, stepBytes)
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") {
			continue
		}
		mapping := nameOf(lines.Text())
		for _, run := range resident(pages, from, to) {
			for at := run[0]; at < run[1]; at += stepBytes - overlapBytes {
				n, _ := memory.ReadAt(b[:min(run[1]-at, stepBytes)], at) // a page may be gone by now
				bytesRead += n
				p.search(b[:n], at, func(f find) {
					if at > run[0] && f.address < at+overlapBytes/2 {
						return // the step before has it whole
					}
					f.mapping = mapping
					found[place{pid, f.address, f.kind}] = f
				})
			}
		}
	}
	return found, bytesRead, nil
}

// nameOf returns the name of a mapping; most have none.
func nameOf(line string) string {
	if at := strings.IndexByte(line, '['); at >= 0 {
		return line[at:]
	}
	return "anonymous memory"
}

// resident returns the runs of pages between two addresses that are in memory or in swap.
func resident(pages *os.File, from, to int64) (runs [][2]int64) {
	size := int64(os.Getpagesize())
	entries := make([]byte, (to-from)/size*8)
	n, _ := pages.ReadAt(entries, from/size*8)
	for i := 0; i+8 <= n; i += 8 {
		if binary.LittleEndian.Uint64(entries[i:])>>62 == 0 {
			continue
		}
		at := from + int64(i)/8*size
		if last := len(runs) - 1; last >= 0 && runs[last][1] == at {
			runs[last][1] += size
		} else {
			runs = append(runs, [2]int64{at, at + size})
		}
	}
	return runs
}
