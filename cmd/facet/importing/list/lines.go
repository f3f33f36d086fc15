package list

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// lineBytesMax is the most bytes of a line.
const lineBytesMax = 64 << 10

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	// utf16Marks are the first bytes of a text in UTF-16.
	utf16Marks = [][]byte{{0xff, 0xfe}, {0xfe, 0xff}}

	errUTF16 = errors.New(`the list is in UTF-16: save it as "CSV UTF-8"`)
	errUTF8  = errors.New(`the line is not in UTF-8: save the list as "CSV UTF-8"`)
	errLong  = fmt.Errorf("the line has more than %d KiB", lineBytesMax>>10)
)

// lines reads lines of bounded length.
type lines struct {
	in     *bufio.Reader
	number int
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, lineBytesMax)} }

// next returns the next line without its end. The line is valid until the next call. bad
// is why this line can't be used; the lines behind it can. err is io.EOF, or an error of
// the reader.
func (l *lines) next() (line []byte, bad, err error) {
	line, err = l.in.ReadSlice('\n')
	if len(line) == 0 && err != nil {
		return nil, nil, err
	}
	l.number++
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.in.ReadSlice('\n')
		}
		bad = errLong
	}
	if err != nil && err != io.EOF {
		return nil, nil, fmt.Errorf("read line %d: %w", l.number, err)
	}
	if bad != nil {
		return nil, bad, nil
	}
	if l.number == 1 {
		for _, mark := range utf16Marks {
			if bytes.HasPrefix(line, mark) {
				return nil, nil, errUTF16
			}
		}
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if !utf8.Valid(line) {
		return nil, errUTF8, nil
	}
	return line, nil, nil
}
