package config

import (
	"slices"
	"strings"
)

// synonyms are keys that people know from elsewhere.
var synonyms = map[string]string{
	"cmd": "command", "exec": "command", "program": "command",
	"arguments": "args", "environment": "env", "workdir": "cwd", "working_dir": "cwd",
	"transport": "type", "uri": "url", "endpoint": "url", "serverurl": "url", "httpurl": "url",
	"enabled": "disabled", "token": "auth_token", "origins": "allowed_origins",
	"include": "allow", "exclude": "deny", "mcp_servers": "servers",
}

// nearest is the candidate that word was most likely meant to be, or "". Case,
// "-" and "_" count nothing.
func nearest(word string, candidates []string) string {
	if len(word) > 64 {
		return ""
	}
	if s := synonyms[strings.ToLower(word)]; slices.Contains(candidates, s) {
		return s
	}
	plain := strings.NewReplacer("-", "", "_", "")
	w := plain.Replace(strings.ToLower(word))
	best, limit := "", max(1, len(w)/3)
	for _, c := range candidates {
		if d := distance(w, plain.Replace(strings.ToLower(c))); d <= limit {
			best, limit = c, d-1
		}
	}
	return best
}

// distance counts insertions, deletions, substitutions and swaps of neighbours
// (optimal string alignment), in bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// didYouMean is the tail of a message about an unknown word: the nearest one,
// else all of them.
func didYouMean(word, label string, candidates []string) string {
	if s := nearest(word, candidates); s != "" {
		return "; did you mean " + quote(s) + "?"
	}
	return "; " + label + " " + strings.Join(candidates, ", ")
}
