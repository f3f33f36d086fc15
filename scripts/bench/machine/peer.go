package machine

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// Peer is a program that answers each line of JSON with a line of JSON.
type Peer struct {
	name string
	cmd  *exec.Cmd
	in   *json.Encoder
	out  *bufio.Reader
}

// StartPeer starts a program. Errors name it.
func StartPeer(name string, cmd *exec.Cmd) (*Peer, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &Peer{name, cmd, json.NewEncoder(in), bufio.NewReader(out)}, nil
}

// PID returns the process id.
func (p *Peer) PID() int { return p.cmd.Process.Pid }

// Ask sends a question and reads the answer.
func (p *Peer) Ask(question, answer any) error {
	if err := p.in.Encode(question); err != nil {
		return fmt.Errorf("ask %s: %w", p.name, err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("answer of %s: %w", p.name, err)
	}
	return json.Unmarshal(line, answer)
}

// Close ends the program. All its answers have been read.
func (p *Peer) Close() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
