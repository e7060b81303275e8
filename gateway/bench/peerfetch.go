package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// npmGateway is a gateway of npm that others use, at an exact version.
type npmGateway struct {
	pkg, version string
	program      string // within the package

	dir string // with node_modules
}

// peersBefore bounds the dates of the peers' dependencies, so that every run installs the
// same ones.
const peersBefore = "2026-11-28"

var (
	mcpProxy     = npmGateway{pkg: "mcp-proxy", version: "6.7.19", program: "dist/bin/mcp-proxy.mjs"}
	supergateway = npmGateway{pkg: "supergateway", version: "4.0.0", program: "dist/index.js"}
)

//go:embed stdioproxy.mjs
var stdioProxy []byte

func (p *npmGateway) String() string { return p.pkg + " " + p.version }

// fetch installs the peer into the user's cache folder, without install scripts.
func (p *npmGateway) fetch() error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	cache = filepath.Join(cache, "goblin-bench")
	p.dir = filepath.Join(cache, p.pkg+"-"+p.version)
	if _, err := os.Stat(filepath.Join(p.dir, "node_modules")); err == nil {
		return nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(cache, "partial")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	install := exec.Command("npm", "install", "--prefix", partial, "--ignore-scripts", "--no-audit", "--no-fund",
		"--before", peersBefore, p.pkg+"@"+p.version)
	if text, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(install.Args, " "), err, text)
	}
	return os.Rename(partial, p.dir)
}

// command returns a command line of the peer.
func (p *npmGateway) command(args ...string) []string {
	return append([]string{"node", filepath.Join(p.dir, "node_modules", p.pkg, filepath.FromSlash(p.program))}, args...)
}

// stdioCommand returns the command line of mcp-proxy over stdio.
func (p *npmGateway) stdioCommand(server ...string) ([]string, error) {
	script := filepath.Join(p.dir, "stdio.mjs")
	return append([]string{"node", script}, server...), os.WriteFile(script, stdioProxy, 0o600)
}
