package config_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"goblin/gateway/config"
)

// FuzzParse checks that Parse returns a Config or Errors, never both. Each mistake has
// one existing line, and all names are valid.
func FuzzParse(f *testing.F) {
	f.Add("c.yaml", whole)
	f.Add("c.json", `{"mcpServers": {"a": {"command": "x", "args": ["${A}"]}}, "x": [1, null]}`)
	f.Add("c.yaml", `{"mcpServers": {"a b": {"url": "http://h"}}}`)
	f.Add("c.yaml", "servers: &a {b: &b {<<: [*b, {command: x}]}}\n---\n")
	f.Add("c.yaml", `servers: {s: {command: "${file:~/x}", args: ["${cmd:op read 'a b' ${A}}"], env: {K: "a${keyring:n}$${cmd:x}"}}}`)
	f.Add("c.json", `{"gateway": {"auth_token": "${keyring:t}"}, "servers": {"s": {"url": "https://${cmd:a}/", "cwd": "${file:x}"}}}`)
	f.Add("c.json", `{"mcpServers": {"a": {"cmd": "A=b npx 'x y'", "env": ["A", {"name": "B", "value": 1}], "transport": {"url": null}}, "b": {"baseUrl": "http://h", "requestInit": {"headers": ["A: b"]}, "isActive": "no"}, "c": null}}`)
	f.Add("c.json", `{"mcpServers": [{"name": "a", "command": ["x", "${file:y}"], "command": "C:\\a b.exe"}]}`)
	f.Add("c.yaml", "\ufeff? !!binary x\n: !!int y\n")
	for _, m := range mistakes {
		f.Add("c.yaml", m.src)
	}
	f.Fuzz(func(t *testing.T, name, src string) {
		cfg, err := config.Parse(name, []byte(src), env)
		if err != nil {
			var list *config.Errors
			if cfg != nil || !errors.As(err, &list) || len(list.Problems) == 0 {
				t.Fatalf("Parse = %v, %v", cfg, err)
			}
			check(t, name, src, list.Problems)
			check(t, name, src, list.Warnings)
			return
		}
		check(t, name, src, cfg.Warnings)
		again, _ := config.Parse(name, []byte(src), env)
		if !reflect.DeepEqual(again, cfg) {
			t.Fatal("the same text gave two configs")
		}
		seen := map[string]bool{"goblin": true}
		for i := range cfg.Servers {
			s := &cfg.Servers[i]
			if seen[s.Name] || s.Name == "" || len(s.Name) > 64 || !s.Equal(&again.Servers[i]) {
				t.Fatalf("server %q", s.Name)
			}
			seen[s.Name] = true
			if now, err := s.Resolve(t.Context(), valued); err == nil && len(now.References()) > 0 {
				t.Fatalf("server %q still has references", s.Name)
			} else if err != nil {
				check(t, name, src, []config.Problem{{File: name, Text: err.Error()}})
			}
			if s.Problem == "" && (s.Type == config.Stdio) != (s.Command != "") {
				t.Fatalf("server %q is %s with command %q", s.Name, s.Type, s.Command)
			}
		}
		if g := cfg.Gateway; g.Listen != "" && g.NoToken.Text == "" && config.CheckListen(g.Listen, g.AuthToken) != nil {
			t.Fatalf("listen %q with token %q", g.Listen, g.AuthToken)
		}
	})
}

func valued(_ context.Context, kind string, words []string, _ string) (string, error) {
	if len(words) == 0 || words[0] == "" || strings.Contains(strings.Join(words, ""), "\x00") {
		return "", fmt.Errorf("%s without words", kind)
	}
	return "value", nil
}

func check(t *testing.T, name, src string, problems []config.Problem) {
	t.Helper()
	for _, p := range problems {
		if p.File != name || p.Text == "" || p.Line < 0 || p.Line > lines(src) || strings.ContainsAny(p.Text, "\n\x1b") {
			t.Fatalf("problem %+v of %d lines", p, lines(src))
		}
	}
}

// lines counts the line breaks that YAML knows.
func lines(src string) int {
	return 1 + strings.Count(src, "\n") + strings.Count(src, "\r") + strings.Count(src, "\u0085") +
		strings.Count(src, "\u2028") + strings.Count(src, "\u2029")
}
