package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config/reference"
	"goblin/registry/report"
)

// The key reference lists the keys of the schema, and thereby of the parser.
func TestKeyReferenceIsCurrent(t *testing.T) {
	const file = "KEYS.md"
	var b strings.Builder
	b.WriteString("# Config keys\n\nThis file is made from the table that the parser uses: `go generate ./gateway/config`.\n" +
		"[README.md](README.md) explains the keys. `NAME` stands for a name that you choose, `[]` for each entry of a list.\n")
	sections := map[string][]string{}
	order := []string{"Top level", "`servers.NAME`"}
	for _, k := range reference.Keys() {
		title, name := sectionOf(k.Path)
		if sections[title] == nil && title != order[0] && title != order[1] {
			order = append(order, title)
		}
		sections[title] = append(sections[title], row(name, &k))
	}
	for _, title := range order {
		fmt.Fprintf(&b, "\n## %s\n\n| key | values | default | meaning |\n|---|---|---|---|\n%s", title, strings.Join(sections[title], ""))
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, b.String() == string(text), "%s is not current: run go generate ./gateway/config", file)
}

// sectionOf returns the section of a key, and its name there.
func sectionOf(path string) (title, name string) {
	first, rest, inner := strings.Cut(path, ".")
	if !inner {
		return "Top level", path
	}
	if below, ok := strings.CutPrefix(rest, "NAME."); ok {
		first, rest = first+".NAME", below
	}
	return "`" + first + "`", rest
}

// markdown escapes special characters of Markdown tables, except in code.
var markdown = strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;", `\`, `\\`)

func row(name string, k *report.ConfigKey) string {
	value := ""
	if k.Default != "" {
		value = "`" + k.Default + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, k.Values, value, markdown.Replace(k.Text))
}
