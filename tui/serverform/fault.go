package serverform

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"goblin/registry/report"
)

var (
	unset   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\} is not set`) })
	keyring = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{keyring:[^{}]+\}`) })
	// missing matches a line of a program that lacks a variable, and variable its name.
	missing = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)missing|requir|not set|unset|undefined|must|provide|environment|invalid`)
	})
	variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b`) })
)

// maxErrorText limits the search in one error text, in bytes.
const maxErrorText = 4096

// UnsetVariable returns the variable that the config refers to without a value, or "".
func UnsetVariable(err string) string {
	if m := unset().FindStringSubmatch(err[:min(len(err), maxErrorText)]); m != nil {
		return m[1]
	}
	return ""
}

// fault returns the path of the value that the errors of a server name, or nil. The
// variable may be missing in the entry.
func fault(entry *report.ServerEntry, errs []string) []string {
	for _, text := range errs {
		text = text[:min(len(text), maxErrorText)]
		refs := keyring().FindAllString(text, -1)
		if name := UnsetVariable(text); name != "" {
			refs = append(refs, "${"+name+"}", "${"+name+":")
		}
		for _, ref := range refs {
			if f := findValue(entry, ref); f != nil {
				return f.Path
			}
		}
	}
	for _, text := range errs {
		for _, f := range slices.Backward(entry.Fields) {
			if len(f.Path) == 2 && containsWord(text, f.Path[1]) {
				return f.Path
			}
		}
	}
	if !slices.ContainsFunc(entry.Fields, func(f report.ServerField) bool { return f.Path[0] == "env" }) {
		return nil
	}
	for _, text := range errs {
		text = text[:min(len(text), maxErrorText)]
		for _, name := range variable().FindAllString(text, -1) {
			if missing().MatchString(text) && !strings.HasPrefix(name, "ERR_") {
				return []string{"env", name}
			}
		}
	}
	return nil
}

func findValue(entry *report.ServerEntry, ref string) *report.ServerField {
	for i := range entry.Fields {
		f := &entry.Fields[i]
		switch value := f.Value.(type) {
		case string:
			if strings.Contains(value, ref) {
				return f
			}
		case []string:
			if slices.ContainsFunc(value, func(s string) bool { return strings.Contains(s, ref) }) {
				return f
			}
		}
	}
	return nil
}

func containsWord(text, word string) bool {
	isLetter := func(at int) bool {
		return at >= 0 && at < len(text) && (text[at] == '_' || text[at] >= '0' && text[at] <= '9' || text[at] >= 'A' && text[at] <= 'Z' || text[at] >= 'a' && text[at] <= 'z')
	}
	for from := 0; word != ""; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			break
		}
		if at += from; !isLetter(at-1) && !isLetter(at+len(word)) {
			return true
		}
		from = at + 1
	}
	return false
}
