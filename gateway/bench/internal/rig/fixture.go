// Package rig is what measurements share: Goblin and its backend built and
// configured, a peer that asks over streams, and what a process costs.
package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Programs are paths of what is measured: Backend costs as little as a server can,
// SDK is one as authors of servers build them.
type Programs struct{ Goblin, Backend, SDK string }

// Build builds the programs into dir. $GOBLIN_BENCH_BINARY names a Goblin
// that is there already, for instance one of another revision.
func Build(dir string) (Programs, error) {
	p := Programs{
		Goblin:  os.Getenv("GOBLIN_BENCH_BINARY"),
		Backend: filepath.Join(dir, "backend"),
		SDK:     filepath.Join(dir, "sdkserver"),
	}
	if p.Goblin == "" {
		p.Goblin = filepath.Join(dir, "goblin")
		if err := build(p.Goblin, "goblin"); err != nil {
			return p, err
		}
	}
	if err := build(p.Backend, "goblin/gateway/bench/internal/backend"); err != nil {
		return p, err
	}
	return p, build(p.SDK, "goblin/gateway/bench/internal/sdkserver")
}

func build(path, pkg string) error {
	if text, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// Touched is the resource whose updates the backend's tool "touch" tells.
const Touched = "file:///srv/data/touched.json"

// Fixture is a config with backends, named s0, s1 and so on.
type Fixture struct {
	Config string   // path of the config
	Env    []string // makes Goblin use it, in a place of its own

	programs Programs
}

// NewFixture writes a config with servers backends, each of so many resources,
// into dir, which must be short: the daemon's socket is there too.
func NewFixture(dir string, p Programs, servers, resources int) (*Fixture, error) {
	f := &Fixture{Config: filepath.Join(dir, "c.yaml"), programs: p}
	f.Env = []string{"XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + dir, "HOME=" + dir, "GOBLIN_CONFIG=" + f.Config}
	var text strings.Builder
	text.WriteString("gateway: {startup_wait: 30s, linger: 1s}\nlog: {level: warn}\nservers:\n")
	for i := range servers {
		fmt.Fprintf(&text, "  s%d: {command: %q, args: [%q]}\n", i, p.Backend, strconv.Itoa(resources))
	}
	return f, os.WriteFile(f.Config, []byte(text.String()), 0o600)
}

// Direct starts a backend of so many resources and shakes hands with it.
func (f *Fixture) Direct(resources int) (*Peer, error) {
	return Start(nil, f.programs.Backend, strconv.Itoa(resources))
}

// Copied is Direct with a bare cat each way in between, which is the least that
// can stand there.
func (f *Fixture) Copied(resources int) (*Peer, error) {
	return Start(nil, "sh", "-c", `cat | "$0" "$1" | cat`, f.programs.Backend, strconv.Itoa(resources))
}

// Start starts Goblin and shakes hands with it.
func (f *Fixture) Start(args ...string) (*Peer, error) {
	return Start(f.Env, f.programs.Goblin, args...)
}

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
	cmd := exec.Command(f.programs.Goblin, args...)
	cmd.Env = append(os.Environ(), f.Env...)
	return cmd
}
