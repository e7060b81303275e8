package config

import (
	"slices"
	"strings"

	"goblin/registry/suggest"
)

// synonyms maps keys known from other programs to Goblin's.
var synonyms = map[string]string{
	"cmd": "command", "exec": "command", "program": "command",
	"arguments": "args", "environment": "env", "workdir": "cwd", "working_dir": "cwd",
	"transport": "type", "uri": "url", "endpoint": "url", "serverurl": "url", "httpurl": "url",
	"enabled": "disabled", "token": "auth_token", "origins": "allowed_origins",
	"include": "allow", "exclude": "deny", "mcp_servers": "servers",
}

// nearest ignores case, "-" and "_".
func nearest(word string, candidates []string) string {
	if len(word) > 64 {
		return ""
	}
	if s := synonyms[strings.ToLower(word)]; slices.Contains(candidates, s) {
		return s
	}
	plain := strings.NewReplacer("-", "", "_", "")
	f := suggest.New(plain.Replace(word))
	for _, c := range candidates {
		f.Add(c, plain.Replace(c))
	}
	return append(f.Best(), "")[0]
}

// didYouMean returns the hint for an unknown word: the nearest candidate, or all of them
// after label.
func didYouMean(word, label string, candidates []string) string {
	if s := nearest(word, candidates); s != "" {
		return suggest.DidYouMean(s)
	}
	return "; " + label + " " + strings.Join(candidates, ", ")
}
