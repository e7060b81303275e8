package devloop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"goblin/gateway/childproc"
	"goblin/registry"
)

// runBuild runs the build of a server and returns the end of its output, as plain text.
// When ctx is done, it stops all processes of the build and waits for them.
func (l *loop) runBuild(ctx context.Context) (output string, err error) {
	s := &l.defined
	if l.m.o.Resolve != nil {
		if s, err = l.m.o.Resolve(ctx, s); err != nil {
			return "", err
		}
	}
	words, env := s.Build.Command(), s.Environ(os.LookupEnv, os.Environ())
	program, err := childproc.LookPath(words[0], env)
	if err != nil {
		return "", fmt.Errorf("command %q not found; install it or set its full path in build", words[0])
	}
	text, err := l.m.o.Children.Run(ctx, &exec.Cmd{Path: program, Args: words, Dir: s.Cwd, Env: env}, s.Name, registry.MaxBuildOutput)
	return plain(string(text)), err
}

// plain returns output without control sequences. Of a line that was overwritten by
// carriage returns, the last version stays.
func plain(output string) string {
	lines := strings.Split(strings.ToValidUTF8(ansi.Strip(output), "\uFFFD"), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}
