package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Memory returns a process's current and peak resident memory, in MiB.
func Memory(t *testing.T, pid int) (now, peak int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for key, value := range map[string]*int{"VmRSS": &now, "VmHWM": &peak} {
		found := regexp.MustCompile(key + `:\s+(\d+) kB`).FindSubmatch(status)
		require.NotNil(t, found, "%s", status)
		kib, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		*value = kib >> 10
	}
	return now, peak
}

// WriteProgram writes an executable script. It prevents concurrent forks: a child would
// inherit the open file until its exec. The system doesn't run files that are open for
// writing ("text file busy").
func WriteProgram(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700)) //nolint:gosec // tests run it
}

// Racing reports whether the binary has the race detector, which takes much more time and
// memory.
func Racing() bool { return os.Getenv("GOBLIN_E2E_RACE") != "" }

// Bounded fails if a process ever had more than most MiB resident.
func Bounded(t *testing.T, pid, most int) {
	t.Helper()
	if _, peak := Memory(t, pid); !Racing() {
		require.LessOrEqual(t, peak, most, "MiB resident")
	}
}

func (p *Program) Bounded(most int) {
	p.T.Helper()
	Bounded(p.T, p.Cmd.Process.Pid, most)
}

// Kill kills a process, which can't react to that.
func Kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
