//go:build interop

package interop

import (
	"path/filepath"
	"testing"

	"goblin/gateway/e2e"
)

// The screen over servers that people have: the reference servers from npm.
func TestInteropTheScreenWorksOnNpmServers(t *testing.T) {
	n := newNPM(t)
	w := e2e.NewWorld(t)
	for server, command := range n.commands(filepath.Join(w.Dir, "memory.jsonl")) {
		b, _ := w.Fake(server, e2e.Obj{})
		b.Conf = command
	}
	p := w.Pane(140, 40)
	p.Goblin("")
	p.Shows("3 up")

	// Find a resource by server and MIME type, and read it.
	p.Types("/server:everything mime:markdown architecture")
	p.Shows("architecture.md", "1 of ")
	p.Keys("Enter", "Enter")
	p.Shows("# Everything Server")

	// Expand a template, subscribe to what the server updates, and see it.
	p.Keys("Escape", "Escape")
	p.Types("t/text")
	p.Shows("{resourceId}")
	p.Keys("Enter", "Enter")
	p.Shows("Expand mcp://everything/demo://resource/dynamic/text/{resourceId}")
	p.Types("7")
	p.Shows("demo://resource/dynamic/text/7")
	p.Keys("C-s")
	p.Shows("Resource 7")

	// Call a tool through its form.
	p.Types("2/get-sum")
	p.Keys("Enter")
	p.Types("c")
	p.Shows("Call everything_get-sum")
	p.Types("19")
	p.Keys("Tab")
	p.Types("23")
	p.Keys("C-s")
	p.Shows("The sum of 19 and 23 is 42.")

	// A server that asks back is answered in a dialog.
	p.Keys("Escape", "Escape")
	p.Types("/elicitation-request")
	p.Keys("Enter")
	p.Types("c")
	p.Shows("Call everything_trigger-elicitation-request")
	p.Keys("C-s")
	p.Shows("A server asks")
	p.Insists("Escape", "A server asks")
	p.Shows("cancelled the elicitation")

	p.Types("1")
	p.Shows("everything", "filesystem", "memory", "2025-")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}
