//go:build interop

package e2e

import (
	"path/filepath"
	"testing"
)

// The screen over servers that people have: the reference servers from npm.
func TestInteropTheScreenWorksOnNpmServers(t *testing.T) {
	n := newNPM(t)
	w := newWorld(t)
	for server, command := range n.commands(filepath.Join(w.dir, "memory.jsonl")) {
		b, _ := w.fake(server, obj{})
		b.conf = command
	}
	p := w.pane(140, 40)
	p.goblin("")
	p.shows("3 up")

	// Find a resource by server and MIME type, and read it.
	p.types("/server:everything mime:markdown architecture")
	p.shows("architecture.md", "1 of ")
	p.keys("Enter", "Enter")
	p.shows("# Everything Server")

	// Expand a template, subscribe to what the server updates, and see it.
	p.keys("Escape", "Escape")
	p.types("t/text")
	p.shows("{resourceId}")
	p.keys("Enter", "Enter")
	p.shows("Expand mcp://everything/demo://resource/dynamic/text/{resourceId}")
	p.types("7")
	p.shows("demo://resource/dynamic/text/7")
	p.keys("C-s")
	p.shows("Resource 7")

	// Call a tool through its form.
	p.types("2/get-sum")
	p.keys("Enter")
	p.types("c")
	p.shows("Call everything_get-sum")
	p.types("19")
	p.keys("Tab")
	p.types("23")
	p.keys("C-s")
	p.shows("The sum of 19 and 23 is 42.")

	// A server that asks back is answered in a dialog.
	p.keys("Escape", "Escape")
	p.types("/elicitation-request")
	p.keys("Enter")
	p.types("c")
	p.shows("Call everything_trigger-elicitation-request")
	p.keys("C-s")
	p.shows("A server asks")
	p.hides("keys are taken after a moment")
	p.keys("Escape")
	p.hides("A server asks")
	p.shows("cancelled the elicitation")

	p.types("1")
	p.shows("everything", "filesystem", "memory", "2025-")
	p.types("q")
	p.restored(exitOK)
}
