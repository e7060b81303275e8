//go:build e2e

package e2e_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysOfTheReadmeWorkAsTyped(t *testing.T) {
	t.Parallel()
	w := demo(t)
	p := w.Pane(112, 60)
	p.Goblin("")
	p.Shows("3 up", "Resources 2012")
	rows := regexp.MustCompile("(?m)^\\| ((?:`[^`]+` ?)+) \\| ").FindAllStringSubmatch(section(t, "Two commands for a clone"), -1)
	require.Len(t, rows, len(effects))
	for _, row := range rows {
		typed := strings.ReplaceAll(row[1], "`", "")
		require.Contains(t, effects, typed)
		for key := range strings.FieldsSeq(typed) {
			switch key {
			case "Enter", "Ctrl-S":
				p.Keys(strings.Replace(key, "Ctrl-S", "C-s", 1))
			default:
				p.Types(key)
			}
		}
		p.Shows(effects[typed]...)
		if typed == "?" || strings.HasPrefix(typed, ":") {
			p.Keys("Escape")
			p.Hides(effects[typed][0])
		}
	}
}

// effects are the UI's texts after the keys that the README suggests.
var effects = map[string][]string{
	"4 j s Enter":              {"on, held by you", "Date and time in UTC"},
	"2 / count Enter c Ctrl-S": {"X cancels"},
	"5 ]":                      {"tools/call"},
	"?":                        {"type to search"},
	": setup Enter":            {"Your clients"},
}

// section is a part of the README.
func section(t *testing.T, title string) string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, root+"/README.md"), "\n## "+title+"\n")
	require.True(t, found, title)
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}
