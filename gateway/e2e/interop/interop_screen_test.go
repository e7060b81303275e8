//go:build interop

package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// opened opens the UI with the reference servers from npm, and a server whose command
// does not exist.
func opened(t *testing.T, width, height int) (*e2e.World, *e2e.Pane) {
	t.Helper()
	n := newNPM(t)
	w := e2e.NewWorld(t)
	for server, command := range n.commands(filepath.Join(w.Dir, "memory.jsonl")) {
		b, _ := w.Fake(server, e2e.Obj{})
		b.Conf = command
	}
	broken, _ := w.Fake("broken", e2e.Obj{})
	broken.Conf = e2e.Obj{"command": "no-such-program"}
	p := w.Pane(width, height)
	p.TakeCopies()
	p.Goblin("")
	p.Shows("3 up", "1 down")
	return w, p
}

// spans waits until Goblin has drawn a frame for a width: a terminal cuts frames that
// were drawn for another one.
func spans(p *e2e.Pane, width int) {
	p.Until(fmt.Sprintf("a frame of %d cells", width), func(screen string) bool {
		return slices.ContainsFunc(strings.Split(screen, "\n"), func(line string) bool {
			return ansi.StringWidth(line) == width && strings.HasSuffix(line, "╮")
		})
	})
}

func TestInteropTheScreenFindsReadsAndWatches(t *testing.T) {
	_, p := opened(t, 140, 40)
	p.Types("4")

	// By words, and by server and MIME type from lists with counts.
	p.Types("/arch")
	p.Shows("Resources 1/9", "architecture.md")
	p.Keys("Enter")
	p.Keys("Escape")
	p.Types("f")
	p.Shows("[ ] everything                    7", "0 selected")
	p.Keys("Space")
	p.Shows("1 selected")
	p.Keys("Enter")
	p.Shows("/ server:everything  7 of 9")
	p.Keys("Escape")
	p.Shows("Resources 9 ")
	p.Types("m")
	p.Shows("[ ] text/markdown                 7")
	p.Types("json")
	p.Hides("text/markdown                 7")
	p.Keys("Enter")
	p.Shows("/ mime:application/json  2 of 9", "memory://knowledge-graph")
	p.Keys("Escape")

	// Three are marked, subscribed to by one key, and counted while they are watched.
	p.Types("/server:everything mime:markdown")
	p.Keys("Enter")
	p.Types("g")
	p.Keys("Space", "Space", "Space")
	p.Types("s")
	p.Types("w")
	p.Shows("Subscriptions 3", "subscribers", "you")
	p.Keys("Escape")
	p.Hides("Subscriptions 3")
	p.Types("2/toggle-subscriber")
	p.Keys("Enter")
	p.Types("c")
	p.Shows("Call everything_toggle-subscriber-updates")
	p.Keys("C-s")
	p.Hides("Call everything_toggle-subscriber-updates")
	p.Types("4")
	p.Shows("Δ1")

	// Markdown, and bytes.
	p.Keys("Escape")
	p.Types("/architecture")
	p.Keys("Enter", "Enter")
	p.Shows("# Everything Server")
	p.Keys("Escape", "Escape")
	p.Types("t/blob")
	p.Shows("{resourceId}")
	p.Keys("Enter", "Enter")
	p.Shows("Expand mcp://everything/demo://resource/dynamic/blob/{resourceId}")
	p.Types("8")
	p.Shows("demo://resource/dynamic/blob/8")
	p.Keys("C-s")
	p.Shows("00000000  ", "|Resource", "sha256")

	// The server's completions, on an empty field.
	p.Keys("Escape", "Escape")
	p.Types("3/completable")
	p.Keys("Enter")
	p.Types("c")
	p.Shows("Get everything/completable-prompt")
	p.Keys("C-Space")
	p.Shows("Engineering", "Marketing")
	p.Types("Sup")
	p.Until("the remaining one", func(screen string) bool {
		return strings.Contains(screen, "│  Support") && !strings.Contains(screen, "Engineering")
	})
	p.Keys("Tab")
	p.Shows("> department *  Support")
	p.PressUntil("Escape", "Get everything/completable-prompt")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

func TestInteropTheScreenCallsTools(t *testing.T) {
	_, p := opened(t, 140, 60)

	// An object in a list in the arguments has fields, and missing values are reported.
	p.Types("2/create_entities")
	p.Keys("Enter")
	p.Shows("c calls it.") // it is listed after its server is up
	p.Types("c")
	p.Shows("Call memory_create_entities", "no items")
	p.Keys("Space")
	p.Shows("observations *")
	p.Keys("C-s")
	p.Shows("! required")
	p.Types("Ada")
	p.Keys("Tab")
	p.Types("person")
	p.Keys("Tab", "Space")
	p.Types("👩‍👩‍👧 writes")
	p.Resize(60, 20)
	spans(p, 60)
	p.Shows("writes")
	p.Resize(140, 60)
	spans(p, 140)
	p.Shows("name *          Ada", "👩‍👩‍👧 writes")
	p.Keys("C-s")
	p.Shows("Structured", `"name": "Ada"`, `"entityType": "person"`)

	// Its recorded exchange is copied, and called once more with other values.
	p.Types("i")
	p.Shows("1 of ", "tools/call", "memory_create_e")
	p.Keys("Enter")
	p.Shows("[Answer] Request")
	p.Types("y")
	p.Shows("Copied the JSON-RPC")
	p.Copied(`"name":"memory_create_entities","arguments":{"entities":[{"name":"Ada"`)
	p.Types("Y")
	p.Shows("Copy the request", "goblin command")
	p.Keys("Enter")
	p.Shows("Copied the goblin command")
	p.Copied("goblin call memory_create_entities --args ")
	p.Types("c")
	p.Shows("Call memory_create_entities", "name *          Ada")
	p.Keys("Tab", "C-u")
	p.Types("Grace")
	p.Shows("name *          Grace")
	p.Keys("C-s")
	p.Shows("  2 of ") // the new one and the old
	p.Types("2")
	p.Shows(`"name": "Grace"`)
	p.Types("H")
	p.Shows("Recent calls", "Grace")
	p.Keys("Escape")

	// A long call shows its progress, and ends when another client cancels it.
	p.Keys("Escape")
	p.Types("/long-running")
	p.Keys("Enter")
	p.Types("c")
	p.Shows("Call everything_trigger-long-running-operation")
	p.Keys("C-s")
	p.Shows("running", " 20 %")
	p.Types("1")
	p.Shows("in flight 1")
	p.Types("X")
	p.Hides("in flight 1")
	p.Types("2")
	p.Shows("Cancelled", `"duration": 10`)

	// The user answers a server's request.
	p.Keys("Escape")
	p.Types("/elicitation-request")
	p.Keys("Enter")
	p.Types("c")
	p.Shows("Call everything_trigger-elicitation-request")
	p.Keys("C-s")
	p.Shows("Your full, legal name", "[ answer ]")
	p.Hides("pause typing to use keys")
	p.Types("Ada")
	p.Keys("C-s")
	p.Shows("User provided the requested information", "- Name: Ada")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

func TestInteropTheScreenExplainsServersAndClients(t *testing.T) {
	w, p := opened(t, 160, 40)

	// The UI shows a failed server's reason and command. Then a server is disabled and
	// started again.
	p.Types("!")
	p.Shows(`command "no-such-program" not found`, "attempts", "not found; install it ")
	p.Types("/memory")
	p.Keys("Enter")
	p.Shows("MEMORY_FILE_PATH", "folder")
	p.Types("x")
	p.Shows("Disable memory?", "disappear", "permanently")
	p.Types("y")
	p.Shows("disabled since")
	p.Types("x")
	p.Shows("Enable memory?")
	p.Types("y")
	p.Shows("3 up")
	p.Types("r")
	p.Shows("ready since")
	p.Keys("Escape")

	// A client is followed from the list of clients to the exchange.
	c := w.Bridged()
	p.Shows("clients 1")
	require.Equal(t, "The sum of 19 and 23 is 42.", c.CallText("everything_get-sum", e2e.Obj{"a": 19, "b": 23}))
	p.Types("0")
	p.Shows("Clients 2", "requests")
	p.Types("/e2e")
	p.Shows("Clients 1/2")
	p.Keys("Enter", "Enter")
	p.Shows("tools/call")
	p.Types("/get-sum")
	p.Keys("Enter", "Enter")
	p.Shows("The sum of 19 and 23 is 42.", "19", "Request")
	p.Keys("Escape")

	// A paste into a list runs no keys, and one into the filter is one line.
	paste := func(text string) {
		file := filepath.Join(w.Dir, "paste")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		p.Tmux("load-buffer", file)
		p.Tmux("paste-buffer", "-p")
	}
	p.Types("4")
	paste("q\ny\n")
	p.Types("/")
	paste("static\nstartup.md")
	p.Shows("/ static startup.md", "Resources 1/9")
	p.Keys("Escape")

	// The UI asks before data is lost.
	p.Types("q")
	p.Shows("Quit?", "1 client")
	p.Types("n")
	p.Hides("Quit?")
	c.Close()
	p.Shows("clients 0")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}
