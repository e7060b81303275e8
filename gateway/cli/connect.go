package cli

import (
	"path/filepath"
	"strings"

	"goblin/gateway/config"
	"goblin/registry/termtext"
)

// ClientCommand returns the program and the arguments that a client of this config starts.
// exe is the path of this program, empty if it is not known.
func (a *App) ClientCommand(cfg *config.Config, exe string) []string {
	if exe == "" || strings.Contains(exe, "go-build") { // that of go run is gone when it has ended
		exe = "goblin"
	}
	words := []string{exe, "stdio"}
	// A client has another environment and another working directory.
	if path, err := filepath.Abs(cfg.Path); err == nil && !cfg.Demo && path != config.DefaultPath(a.Getenv) {
		words = append(words, "--config", path)
	}
	return words
}

// CommandLine returns a goblin command about the same config, for users to type: verb is constant
// text, names are quoted.
func (a *App) CommandLine(verb string, names ...string) string {
	if a.ConfigFlag == "" {
		return termtext.Command("goblin "+verb, names)
	}
	return termtext.Command("goblin "+verb, names, "--config", a.ConfigFlag)
}
