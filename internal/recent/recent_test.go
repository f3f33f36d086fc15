package recent

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestOldestLinesGoFirst(t *testing.T) {
	t.Parallel()
	l := New(20)
	for i := range 10 {
		if n, err := fmt.Fprintf(l, "line %d\n", i); n != 7 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := string(l.Text()); got != "line 8\nline 9\n" {
		t.Errorf("got %q", got)
	}
}

func TestLongLineIsCut(t *testing.T) {
	t.Parallel()
	l := New(2 * lineMax)
	line := strings.Repeat("x", 3*lineMax) + "\n"
	if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
		t.Fatal(n, err)
	}
	if got := l.Text(); len(got) != lineMax+1 || got[lineMax] != '\n' {
		t.Errorf("%d bytes are kept", len(got))
	}
	if l = New(10); true { // a line that is longer than all
		l.Write([]byte(line))
		if got := l.Text(); len(got) != 0 {
			t.Errorf("%d bytes are kept, at most 10", len(got))
		}
	}
}

func TestWritersMayMeetReaders(t *testing.T) {
	t.Parallel()
	l := New(1 << 10)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 1000 {
				l.Write([]byte("a line\n"))
				if got := len(l.Text()); got > 1<<10 {
					t.Errorf("%d bytes", got)
				}
			}
		})
	}
	work.Wait()
}
