package engine_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"os"
	"os/exec"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/internal/memscan"
	"facet/internal/must"
)

// extracting is set in the environment of a process that only extracts.
const extracting = "FACET_TEST_EXTRACTS"

// Another process extracts faces. Then it has neither crops nor tensors of them, in its own
// buffers or in those of ONNX Runtime.
func TestProcessForgetsCrops(t *testing.T) {
	photos := []string{"face_recognition/biden.jpg", "scikit-image/astronaut.png"}
	e := enginetest.New(t, engine.Config{Workers: 1})
	if os.Getenv(extracting) != "" {
		for _, name := range photos {
			if _, err := e.Extract(t.Context(), enginetest.Photo(t, name)); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = os.Stdout.WriteString("extracted\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	pieces := memscan.New()
	for _, name := range photos {
		crops, inputs, err := e.Seen(enginetest.Photo(t, name))
		must.Do(t, err)
		for _, pix := range crops {
			pieces.Add("crop", pix)
		}
		for _, values := range inputs {
			var text []byte
			for _, v := range values {
				text = binary.LittleEndian.AppendUint32(text, math.Float32bits(v))
			}
			pieces.Add("tensor", text)
		}
	}
	if pieces.Len() < 4000 {
		t.Fatalf("only %d pieces", pieces.Len())
	}
	found, _, err := pieces.In(extractor(t))
	if err != nil {
		t.Skipf("the memory of another process can't be read: %v", err)
	}
	if len(found) > 0 {
		t.Errorf("%d runs are left, in bytes: %v", len(found), found)
	}
}

// extractor starts the other process and waits until it has extracted.
func extractor(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestProcessForgetsCrops$")
	cmd.Env = append(os.Environ(), extracting+"=1")
	in, err := cmd.StdinPipe()
	must.Do(t, err)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "extracted" {
			return cmd.Process.Pid
		}
	}
	t.Fatal("the other process extracted nothing")
	return 0
}
