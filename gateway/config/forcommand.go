package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ForCommand returns a config whose only server is a command in the working folder, with
// this process's environment. It has no file, so it uses no state files.
func ForCommand(server string, command []string) (*Config, error) {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = strings.ReplaceAll(word, "${", "$${") // no variables
	}
	if strings.ContainsRune(words[0], filepath.Separator) {
		full, err := filepath.Abs(words[0])
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", command[0], err)
		}
		words[0] = full
	}
	folder, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working folder: %w", err)
	}
	entry := map[string]any{"command": words[0], "args": words[1:], "cwd": strings.ReplaceAll(folder, "${", "$${"), "inherit_env": true, "idle_timeout": "off"}
	text, err := json.Marshal(map[string]any{
		"servers": map[string]any{server: entry},
		"gateway": map[string]any{"pin": PinOff, "remember": "off", "meta_tools": false},
	})
	if err != nil {
		return nil, err
	}
	cfg, err := Parse("the command", text, func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, err
	}
	if s := &cfg.Servers[0]; isSelf(s) { // only a config could start it without end
		s.Disabled, s.Problem, s.Problems = false, "", nil
	}
	cfg.Path, cfg.Demo = "", true // no state files and no reload
	return cfg, nil
}
