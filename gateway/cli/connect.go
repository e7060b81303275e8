package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"goblin/gateway/config"
)

// ClientCommand is what a client of this config starts: a program and its arguments.
// exe is the path of this program, empty if it is not known.
func (a *App) ClientCommand(cfg *config.Config, exe string) []string {
	if exe == "" || strings.Contains(exe, "go-build") { // that of go run is gone when it has ended
		exe = "goblin"
	}
	words := []string{exe, "stdio"}
	// A client has another environment and another working directory.
	if path, err := filepath.Abs(cfg.Path); err == nil && !cfg.Demo && path != a.DefaultConfig() {
		words = append(words, "--config", path)
	}
	return words
}

// Line is a command of Goblin's about the same config, for users to type.
func (a *App) Line(words string) string {
	if a.ConfigFlag != "" {
		words += " --config " + shellWord(a.ConfigFlag)
	}
	return "goblin " + words
}

// DefaultConfig is where a config is looked for that nobody names; "" without a
// home.
func (a *App) DefaultConfig() string {
	dir := a.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.Getenv("HOME"), ".config")
	}
	if !filepath.IsAbs(dir) {
		return "" // the working directory holds no config
	}
	return filepath.Join(dir, "goblin", "config.yaml")
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./\\-]+$`) })

// shellWord quotes a word where a POSIX shell needs it.
func shellWord(word string) string {
	if plainWord().MatchString(word) && !strings.Contains(word, `\`) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
