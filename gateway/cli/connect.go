package cli

import (
	"path/filepath"
	"strings"

	"goblin/gateway/config"
	"goblin/registry/termtext"
)

// ClientCommand returns the command by which clients start Goblin with this config. exe
// is the path of this program, or "" if unknown.
func (a *App) ClientCommand(cfg *config.Config, exe string) []string {
	if exe == "" || strings.Contains(exe, "go-build") { // "go run" deletes it on exit
		exe = "goblin"
	}
	words := []string{exe, "stdio"}
	// Clients have another environment and working directory, so the path must be
	// absolute.
	if path, err := filepath.Abs(cfg.Path); err == nil && !cfg.Demo && path != config.DefaultPath(a.Getenv) {
		words = append(words, "--config", path)
	}
	return words
}

// CommandLine returns a goblin command for the same config, to be printed. verb is
// inserted as is, names are quoted.
func (a *App) CommandLine(verb string, names ...string) string {
	if a.ConfigFlag == "" {
		return termtext.Command("goblin "+verb, names)
	}
	return termtext.Command("goblin "+verb, names, "--config", a.ConfigFlag)
}
