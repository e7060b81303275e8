package replay

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of a file of rules.
const (
	maxRulesFile = 1 << 20 // bytes
	maxRules     = 1000
)

// Rules are parts of params that do not count when requests are compared. Nil has none.
type Rules struct {
	rules []rule
}

// rule applies to requests that match its globs; "" matches all.
type rule struct {
	Server, Method, Name string
	Paths                []string

	paths []fieldPath
}

// ReadRules reads a file of rules:
//
//	ignore:
//	  - paths: [arguments.now, "arguments.items[*].id"]
//	  - {server: files, method: tools/call, name: "read_*", paths: [arguments.session]}
//
// server, method and name are globs on the server's own names. Paths begin at the params
// and have the syntax of "goblin diff --ignore": arguments.rows[*].when, ..id, _meta['acme/id'].
func ReadRules(file string) (*Rules, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxRulesFile {
		return nil, fmt.Errorf("%s is larger than %d KiB", file, maxRulesFile>>10)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rules, err := ParseRules(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return rules, nil
}

// ParseRules parses the text of a file of rules.
func ParseRules(text []byte) (*Rules, error) {
	var parsed struct {
		Ignore []rule `yaml:"ignore"`
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&parsed); err != nil {
		return nil, fmt.Errorf("not a file of rules: %w", err)
	}
	if len(parsed.Ignore) > maxRules {
		return nil, fmt.Errorf("%d rules; the limit is %d", len(parsed.Ignore), maxRules)
	}
	for i := range parsed.Ignore {
		r := &parsed.Ignore[i]
		for _, glob := range []string{r.Server, r.Method, r.Name} {
			if _, err := path.Match(glob, ""); err != nil {
				return nil, fmt.Errorf("rule %d: invalid glob %q", i+1, glob)
			}
		}
		if len(r.Paths) == 0 {
			return nil, fmt.Errorf("rule %d has no paths", i+1)
		}
		paths, err := parsePaths(r.Paths)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		r.paths = paths
	}
	return &Rules{rules: parsed.Ignore}, nil
}

// of returns the rules of a server.
func (r *Rules) of(server string) *Rules {
	if r == nil {
		return nil
	}
	own := new(Rules)
	for _, one := range r.rules {
		if matches(one.Server, server) {
			own.rules = append(own.rules, one)
		}
	}
	return own
}

func (r *Rules) apply(t target, members map[string]any) {
	if r == nil {
		return
	}
	for _, one := range r.rules {
		if matches(one.Method, t.method) && matches(one.Name, t.name) {
			for _, p := range one.paths {
				p.remove(members)
			}
		}
	}
}

// matches reports whether a name matches a glob. Unlike path.Match, * matches slashes.
func matches(glob, name string) bool {
	if glob == "" {
		return true
	}
	const slash = "\x00"
	ok, _ := path.Match(strings.ReplaceAll(glob, "/", slash), strings.ReplaceAll(name, "/", slash))
	return ok
}

// fieldPath is a parsed path, with the syntax of [goblin/registry/compare.ParseIgnored].
type fieldPath []segment

// segment is a member, an element, or any of both. deep also matches below.
type segment struct {
	name      string
	index     int
	isIndex   bool
	any, deep bool
}

const maxSegments = 30

func parsePaths(texts []string) (all []fieldPath, err error) {
	for _, text := range texts {
		p, err := parsePath(text)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", text, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func parsePath(text string) (p fieldPath, err error) {
	rest := strings.TrimPrefix(text, "$")
	if rest == text && !strings.HasPrefix(rest, ".") && !strings.HasPrefix(rest, "[") {
		rest = "." + rest
	}
	for rest != "" && rest != "." {
		var s segment
		if after, ok := strings.CutPrefix(rest, ".."); ok {
			s.deep, rest = true, after
			if !strings.HasPrefix(rest, "[") {
				rest = "." + rest
			}
		}
		if rest, err = s.parse(rest); err != nil {
			return nil, err
		}
		if p = append(p, s); len(p) > maxSegments {
			return nil, fmt.Errorf("more than %d parts", maxSegments)
		}
	}
	if len(p) == 0 {
		return nil, errors.New("it is empty")
	}
	return p, nil
}

func (s *segment) parse(text string) (rest string, err error) {
	if after, ok := strings.CutPrefix(text, "."); ok {
		end := strings.IndexAny(after, ".[")
		if end < 0 {
			end = len(after)
		}
		if s.name = after[:end]; s.name == "" {
			return "", errors.New("a name is missing")
		}
		s.any = s.name == "*"
		return after[end:], nil
	}
	inside, rest, ok := cutBrackets(text)
	if !ok {
		return "", errors.New("a bracket or quote is missing")
	}
	if quote := inside[:min(1, len(inside))]; quote == "'" || quote == `"` {
		s.name = strings.ReplaceAll(inside[1:len(inside)-1], `\`+quote, quote)
		return rest, nil
	}
	if s.any = inside == "*"; s.any {
		return rest, nil
	}
	if s.index, err = strconv.Atoi(inside); err != nil || s.index < 0 {
		return "", fmt.Errorf("[%s] is neither an index nor [*] nor a quoted name", inside)
	}
	s.isIndex = true
	return rest, nil
}

// cutBrackets returns the text in the brackets at the start of text and the text after
// them.
func cutBrackets(text string) (inside, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "[")
	if !ok || text == "" {
		return "", "", false
	}
	from := 0
	if quote := text[0]; quote == '\'' || quote == '"' {
		for from = 1; from < len(text) && text[from] != quote; from++ {
			if text[from] == '\\' {
				from++
			}
		}
		if from++; from >= len(text) || text[from] != ']' {
			return "", "", false
		}
	}
	end := strings.IndexByte(text[from:], ']')
	if end < 0 {
		return "", "", false
	}
	return text[:from+end], text[from+end+1:], true
}

// remove removes the values at p. Removed elements become null, so that others keep
// their index.
func (p fieldPath) remove(v any) {
	s, last := &p[0], len(p) == 1
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			fits := s.any || !s.isIndex && s.name == name
			switch {
			case fits && last:
				delete(v, name)
				continue
			case fits:
				p[1:].remove(member)
			}
			if s.deep {
				p.remove(member)
			}
		}
	case []any:
		for i, element := range v {
			fits := s.any || s.isIndex && s.index == i
			switch {
			case fits && last:
				v[i] = nil
				continue
			case fits:
				p[1:].remove(element)
			}
			if s.deep {
				p.remove(element)
			}
		}
	}
}
