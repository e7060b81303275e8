package upstream

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"
)

// TestMain makes the test binary a server of mcp-go when asked to.
func TestMain(m *testing.M) {
	if os.Getenv("FAKE_MODE") == mcpGo {
		recordStart()
		_ = mcpserver.ServeStdio(peer(), mcpserver.WithErrorLogger(log.New(io.Discard, "", 0)))
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // most of them wait
	goleak.VerifyTestMain(prepared{m})
}

// recordStart says what fakes say when they start.
func recordStart() {
	w, err := os.OpenFile(os.Getenv("FAKE_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer w.Close()
	fmt.Fprintf(w, "start %d\n", os.Getpid())
}

// mcpGo is the mode that the test binary has itself.
const mcpGo = "mcp-go"

// What the fake is told of limits, see there.
const (
	maxAskingBytes = 4 << 20
)

var (
	fakeProgram string // the program of the fakes
	fakeSizes   = func() string {
		text, _ := json.Marshal(map[string]int{
			"Line": maxStderrLine, "Split": maxSplit, "Quote": maxQuote,
			"Asking": maxAsking, "Heavy": maxAskingBytes,
		})
		return string(text)
	}()
)

// prepared builds the program of the fakes before the tests run.
type prepared struct{ *testing.M }

func (p prepared) Run() int {
	dir, err := os.MkdirTemp("", "upstream")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	fakeProgram = filepath.Join(dir, "fake")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", fakeProgram, "./testdata/fake").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build the fake: %v\n%s", err, out))
	}
	return p.M.Run()
}
