package serverentry

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/registry/secrettext"
)

const (
	context  = 2   // lines around a change
	maxLines = 500 // of a difference
)

// difference returns the changed lines of the file with some context, without secrets.
func (e *Editor) difference(before []byte, now *file) []string {
	old, err := configedit.OpenBroken(e.Path)
	if err != nil {
		return []string{"the file cannot be read: " + err.Error()}
	}
	if bytes.Equal(before, now.Text()) {
		return nil
	}
	old.SetText(unixText(before))
	written := unixText(now.Text())
	mask := config.NewMask(now.cfg)
	if cfg, err := config.Parse(e.Path, before, os.LookupEnv); err == nil {
		mask.Add(cfg)
	}
	hideSecrets(now.File, old)
	hideSecrets(old, nil)
	a, b := mask.String(string(old.Text())), mask.String(string(unixText(now.Text())))
	switch {
	case a == b && !bytes.Equal(unixText(before), written):
		return []string{"only hidden values differ"}
	case a == b:
		return []string{"only line ends or the byte order mark differ"}
	}
	text, err := udiff.ToUnified(e.Path, e.Path, a, udiff.Lines(a, b), context)
	if err != nil { // impossible: the edits match the text
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 2 {
		lines = lines[2:] // the file's name
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], "… more lines")
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" || strings.HasPrefix(line, `\ No newline`) })
}

// unixText removes what a difference does not show: the byte order mark and "\r" at line
// ends.
func unixText(text []byte) []byte {
	return bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
}

// hideSecrets replaces the secrets of all servers in the text. Those that differ from the
// older file's stay different.
func hideSecrets(f, older *configedit.File) {
	names, err := f.Servers()
	if err != nil {
		return
	}
	for _, server := range names {
		keys := f.Keys(server)
		for _, key := range mappings {
			all, _ := keys[key].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				text, ok := scalarText(all[name])
				if !ok || !secrettext.IsSecret(name, text) {
					continue
				}
				by := hidden
				if older != nil {
					inner, _ := older.Keys(server)[key].(map[string]any)
					if before, _ := scalarText(inner[name]); before != text {
						by = newSecret
					}
				}
				_ = f.Set(server, by, key, name) // otherwise the mask hides it
			}
		}
	}
}
