package holder

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// place is where a process acts for its member.
type place struct {
	// Token names the place. A takeover draws a new one.
	Token string `json:"token"`
	// Takeovers numbers the takeovers of the identity up to this one.
	Takeovers uint64 `json:"takeovers"`
	// Where has the directory's inode and the address at which other nodes reach the process.
	Where string `json:"where"`
}

// openPlace returns the place of the directory dir at address. inPlace reports that the
// directory has not been copied or moved. A new directory gets a place.
func openPlace(dir, address string) (p place, inPlace bool, err error) {
	where, err := whereIs(dir, address)
	if err != nil {
		return p, false, err
	}
	known, err := read(dir, placeFile, &p)
	if err != nil || known && p.Where == where {
		return p, true, err
	}
	p.Where = where
	if p.Token, err = newToken(); err != nil || known {
		return p, false, err
	}
	return p, true, write(dir, placeFile, p)
}

func whereIs(dir, address string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the data directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("look at the data directory: it has no inode")
	}
	return fmt.Sprintf("%d %s", stat.Ino, address), nil
}

func newToken() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("draw a token: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
