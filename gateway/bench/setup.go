package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// programs are the programs of a measurement: Goblin, and the server's command line up to
// its number of resources.
type programs struct {
	goblin string
	server []string
}

// modulePath is set by gateway/deploy/renamemodule.
const modulePath = "goblin"

// buildPrograms builds Goblin, unless $GOBLIN_BENCH_BINARY replaces it, and the test
// server.
func buildPrograms(dir string) (programs, error) {
	server := filepath.Join(dir, "testserver")
	p := programs{goblin: os.Getenv("GOBLIN_BENCH_BINARY"), server: []string{server, "-fast"}}
	if p.goblin == "" {
		p.goblin = filepath.Join(dir, "goblin")
		if err := goBuild(p.goblin, modulePath); err != nil {
			return p, err
		}
	}
	return p, goBuild(server, modulePath+"/gateway/internal/testserver")
}

func goBuild(path, pkg string) error {
	if text, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// touched is the resource that the tool "touch" reports as updated.
const touched = "file:///srv/data/touched.json"

// setup is a config with servers named s0, s1 and so on.
type setup struct {
	config string   // path of the config
	env    []string // environment with this config and own folders

	programs programs
}

// newSetup requires a short dir, because it contains the daemon's socket.
func newSetup(dir string, p programs, servers, resources int) (*setup, error) {
	s := &setup{config: filepath.Join(dir, "c.yaml"), programs: p}
	s.env = []string{"XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + dir, "HOME=" + dir, "GOBLIN_CONFIG=" + s.config}
	var text strings.Builder
	text.WriteString("gateway: {startup_wait: 30s, linger: 1s}\nlog: {level: warn}\nservers:\n")
	for i := range servers {
		fmt.Fprintf(&text, "  s%d: {command: %q, args: [%s, %q]}\n", i, p.server[0], strings.Join(p.server[1:], ", "), strconv.Itoa(resources))
	}
	return s, os.WriteFile(s.config, []byte(text.String()), 0o600)
}

func (s *setup) serverCommand(resources int) []string {
	return append(slices.Clone(s.programs.server), strconv.Itoa(resources))
}

// Direct starts a server and initializes it.
func (s *setup) Direct(resources int) (*client, error) {
	return startClient(nil, s.serverCommand(resources)...)
}

// Copied is like Direct, with one cat process per direction in between, the simplest
// possible relay.
func (s *setup) Copied(resources int) (*client, error) {
	return startClient(nil, append([]string{"sh", "-c", `cat | "$0" "$@" | cat`}, s.serverCommand(resources)...)...)
}

// Relayed is like Direct, with this program as a relay in between.
func (s *setup) Relayed(resources int) (*client, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startClient(nil, append([]string{self, relayMode}, s.serverCommand(resources)...)...)
}

// Start starts Goblin and initializes it.
func (s *setup) Start(args ...string) (*client, error) {
	return startClient(s.env, append([]string{s.programs.goblin}, args...)...)
}

// Through is like Start, and waits until all servers have listed.
func (s *setup) Through(args ...string) (*client, error) {
	p, err := s.Start(args...)
	if err != nil {
		return nil, err
	}
	if _, err := p.Ask("tools/list", "{}"); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Command returns an unstarted Goblin with this config.
func (s *setup) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.programs.goblin, args...)
	cmd.Env = append(os.Environ(), s.env...)
	return cmd
}
