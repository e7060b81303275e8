package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Binary is the Goblin that is measured: $GOBLIN_BENCH_BINARY, else one built
// into dir.
func Binary(dir string) (string, error) {
	if path := os.Getenv("GOBLIN_BENCH_BINARY"); path != "" {
		return path, nil
	}
	path := filepath.Join(dir, "goblin")
	if text, err := exec.Command("go", "build", "-o", path, "goblin").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build goblin: %w\n%s", err, text)
	}
	return path, nil
}

// Fixture is a config with backends, named s0, s1 and so on.
type Fixture struct {
	Config string   // path of the config
	Env    []string // makes Goblin use it, in a place of its own

	goblin, self string
}

// NewFixture writes a config with servers backends, each of so many resources,
// into dir, which must be short: the host's socket is there too.
func NewFixture(dir, goblin string, servers, resources int) (*Fixture, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &Fixture{Config: filepath.Join(dir, "c.yaml"), goblin: goblin, self: self}
	f.Env = []string{"XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + dir, "HOME=" + dir, "GOBLIN_CONFIG=" + f.Config}
	var text strings.Builder
	text.WriteString("gateway: {startup_wait: 30s, linger: 1s}\nservers:\n")
	for i := range servers {
		fmt.Fprintf(&text, "  s%d: {command: %q, args: [backend], env: {%s: %q}}\n", i, self, backendEnv, strconv.Itoa(resources))
	}
	return f, os.WriteFile(f.Config, []byte(text.String()), 0o600)
}

// Direct starts a backend of so many resources and shakes hands with it.
func (f *Fixture) Direct(resources int) (*Peer, error) {
	return Start([]string{backendEnv + "=" + strconv.Itoa(resources)}, f.self)
}

// Start starts Goblin and shakes hands with it.
func (f *Fixture) Start(args ...string) (*Peer, error) { return Start(f.Env, f.goblin, args...) }

// Through is Start that waits until all backends have listed.
func (f *Fixture) Through(args ...string) (*Peer, error) {
	p, err := f.Start(args...)
	if err != nil {
		return nil, err
	}
	if _, err := p.Ask("tools/list", "{}"); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Command is Goblin with that config, not started yet.
func (f *Fixture) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(f.goblin, args...)
	cmd.Env = append(os.Environ(), f.Env...)
	return cmd
}
