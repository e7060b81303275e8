package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sequences make terminals do something, or hide what they show. Each has a
// mark that no picture of Goblin's own holds.
var sequences = []string{
	"\x1b]0;inj-title", "\x1b]8;;http://inj-link", "\x1b]52;c;inj-copy", "\x1bPinj-dcs", "\x1b_inj-apc", "\x1b[31;1;5;7;9m",
	"\u009b31;inj-csi", "\u009d0;inj-osc", "\u0090inj-dcs", "\x1b[?1003;1006h", "\x1b[2Jinj-clear", "\x1bcinj-reset",
	"\u202einj-bidi", "\u2069", "\u200binj-zero", "\U000e0041", "\x00", "\binj-back", "\x7f", "\rinj-return", "\ainj-bell",
}

var injection = strings.Join(sequences, " ") + " inj-end"

// harmless fails if a text would do to a terminal what the injection asks for.
func harmless(t *testing.T, where, text string) {
	t.Helper()
	for _, sequence := range sequences {
		if strings.Contains(text, sequence) {
			t.Errorf("%s holds %q", where, sequence)
		}
	}
}

// hostile is a server that tries it everywhere.
func hostile() obj {
	return obj{
		"instructions": injection,
		"tools": []obj{
			tool("plain", obj{"title": injection, "description": injection, "annotations": obj{"title": injection}, "inputSchema": obj{
				"type": "object", "properties": obj{injection: obj{"type": "string", "description": injection}},
			}}),
			tool("b" + injection),
			tool("ask"),
		},
		"prompts": []obj{prompt("p"+injection, obj{"title": injection, "description": injection, "arguments": []obj{{"name": injection, "description": injection}}})},
		"resources": []obj{
			resource("x:plain", obj{"name": injection, "title": injection, "description": injection, "mimeType": "text/" + injection}),
			resource("x:a" + injection),
		},
		"templates": []obj{template("x:{t}/"+injection, obj{"name": injection, "description": injection})},
		"reads":     obj{"x:plain": injection},
		"on": obj{
			"tools/call ask": actions(do("request", obj{"method": "elicitation/create", "params": obj{"message": injection, "requestedSchema": obj{
				"type": "object", "properties": obj{"p" + injection: obj{"type": "string", "title": injection, "description": injection, "default": injection}},
			}}})),
			"start": actions(do("stderr", obj{"text": injection}), do("crash", obj{"code": 5, "text": injection, "starts": 2}), do("write", obj{"text": injection})),
			"tools/call plain": actions(
				do("notify", obj{"method": "notifications/message", "params": obj{"level": "error", "logger": injection, "data": injection}}),
				do("error", obj{"error": obj{"code": -32000, "message": injection}})),
		},
	}
}

// hostileInit is the handshake of a client that tries it, too.
func (c *client) hostileInit() {
	c.t.Helper()
	c.ok("initialize", obj{
		"protocolVersion": revision, "capabilities": obj{}, "clientInfo": obj{"name": "inj-client" + injection, "version": injection, "title": injection},
	})
	c.notify("notifications/initialized", nil)
}

func TestB21_P11_C16_ControlSequencesNeverReachATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.log = obj{"level": "debug"}
	w.backend("hostile", hostile())
	s := w.serve()
	c := s.rawClient()
	c.hostileInit()
	c.listen()
	c.waitListed("tools", "hostile_plain", true)
	require.Equal(t, injection, c.readText(in("hostile", "x:plain")), "a client gets what was sent")
	require.Contains(t, c.fault("tools/call", obj{"name": "hostile_plain"}).Message, "inj-end")
	c.fault("tools/call", obj{"name": "hostile_" + injection})
	c.fault(injection, nil)

	for _, args := range []string{
		"list servers", "list tools", "list prompts", "list resources", "list templates", "status", "approve", "validate", "read x:plain", "call hostile_plain", "call " + strings.ReplaceAll(injection, "\x00", ""),
	} {
		verb, rest, _ := strings.Cut(args, " ")
		all := []string{verb}
		if rest != "" {
			all = append(all, rest)
		}
		for _, more := range [][]string{nil, {"--json"}} {
			out := w.run(append(all, more...)...)
			harmless(t, "stderr of "+args, out.stderr)
			if verb != "read" { // whose output is the resource, as it is
				harmless(t, "stdout of "+args, out.stdout)
			}
		}
	}
	require.Contains(t, s.stderr.String(), "inj-end")
	harmless(t, "the log", s.stderr.String())
}

func TestP12_ControlSequencesNeverReachTheScreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("hostile", hostile())
	w.hosted = true
	c := w.pipe("stdio")
	c.hostileInit()
	c.waitListed("tools", "hostile_plain", true)
	c.fault("tools/call", obj{"name": "hostile_plain"})
	p := w.pane(200, 50)
	written := filepath.Join(w.dir, "raw")
	p.tmux("pipe-pane", "cat >"+written)
	p.goblin("")
	p.shows("x:plain")
	p.types("/plain")
	p.keys("Enter", "Enter")
	p.shows("inj-title", "inj-end") // in the detail, with the content
	p.keys("Escape", "Escape")
	for pane, text := range map[string]string{"1": "hostile", "2": "hostile_plain", "3": "hostile/p"} {
		p.types(pane)
		p.shows(text)
		p.keys("Enter")
		p.shows("inj-")
		p.keys("Escape")
	}
	p.types("2/ask") // a question of the server
	p.keys("Enter")
	p.types("c")
	p.keys("C-s")
	p.shows("A server asks", "inj-bidi")
	p.hides("keys are taken after a moment")
	p.keys("Escape")
	p.hides("A server asks")
	p.types("5")
	for _, text := range []string{"tools/call", "inj-title", "inj-"} { // requests, what the server prints, the log
		p.keys("]")
		p.shows(text)
	}
	p.types("q")
	p.shows("ended with 0")
	text, err := os.ReadFile(written)
	require.NoError(t, err)
	require.Contains(t, string(text), "inj-end")
	harmless(t, "the screen", string(text))
}
