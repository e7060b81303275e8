package e2e

import (
	"bufio"
	"os/exec"
	"strings"

	"github.com/stretchr/testify/require"
)

func (w *World) BadHTTP(args []string) (addr string) {
	cmd := exec.Command(Badserver, args...)
	cmd.Env = w.Environ()
	out, err := cmd.StdoutPipe()
	require.NoError(w.T, err)
	require.NoError(w.T, cmd.Start())
	w.T.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(w.T, err)
	return strings.TrimSpace(line)
}
