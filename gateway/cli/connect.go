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
	if path, err := filepath.Abs(cfg.Path); err == nil && !cfg.Demo && path != config.DefaultPath(a.Getenv) {
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

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./\\-]+$`) })

// shellWord quotes a word where a POSIX shell needs it.
func shellWord(word string) string {
	if plainWord().MatchString(word) && !strings.Contains(word, `\`) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
