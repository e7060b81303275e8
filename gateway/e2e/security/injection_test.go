//go:build e2e

package security

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// sequences control terminals or hide text. Each has a mark that no frame of Goblin's own
// contains.
var sequences = []string{
	"\x1b]0;inj-title", "\x1b]8;;http://inj-link", "\x1b]52;c;inj-copy", "\x1bPinj-dcs", "\x1b_inj-apc", "\x1b[31;1;5;7;9m",
	"\u009b31;inj-csi", "\u009d0;inj-osc", "\u0090inj-dcs", "\x1b[?1003;1006h", "\x1b[2Jinj-clear", "\x1bcinj-reset",
	"\u202einj-bidi", "\u2069", "\u200binj-zero", "\U000e0041", "\x00", "\binj-back", "\x7f", "\rinj-return", "\ainj-bell",
}

var injection = strings.Join(sequences, " ") + " inj-end"

// harmless fails if a text contains the effect of an injection.
func harmless(t *testing.T, where, text string) {
	t.Helper()
	for _, sequence := range sequences {
		if strings.Contains(text, sequence) {
			t.Errorf("%s holds %q", where, sequence)
		}
	}
}

// hostile is a server that tries it everywhere.
func hostile() e2e.Obj {
	return e2e.Obj{
		"instructions": injection,
		"tools": []e2e.Obj{
			e2e.Tool("plain", e2e.Obj{"title": injection, "description": injection, "annotations": e2e.Obj{"title": injection}, "inputSchema": e2e.Obj{
				"type": "object", "properties": e2e.Obj{injection: e2e.Obj{"type": "string", "description": injection}},
			}}),
			e2e.Tool("b" + injection),
			e2e.Tool("ask"),
		},
		"prompts": []e2e.Obj{e2e.Prompt("p"+injection, e2e.Obj{"title": injection, "description": injection, "arguments": []e2e.Obj{{"name": injection, "description": injection}}})},
		"resources": []e2e.Obj{
			e2e.Resource("x:plain", e2e.Obj{"name": injection, "title": injection, "description": injection, "mimeType": "text/" + injection}),
			e2e.Resource("x:a" + injection),
		},
		"templates": []e2e.Obj{e2e.Template("x:{t}/"+injection, e2e.Obj{"name": injection, "description": injection})},
		"reads":     e2e.Obj{"x:plain": injection},
		"on": e2e.Obj{
			"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": injection, "requestedSchema": e2e.Obj{
				"type": "object", "properties": e2e.Obj{"p" + injection: e2e.Obj{"type": "string", "title": injection, "description": injection, "default": injection}},
			}}})),
			"start": e2e.Actions(e2e.Do("stderr", e2e.Obj{"text": injection}), e2e.Do("crash", e2e.Obj{"code": 5, "text": injection, "starts": 2}), e2e.Do("write", e2e.Obj{"text": injection})),
			"tools/call plain": e2e.Actions(
				e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "error", "logger": injection, "data": injection}}),
				e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32000, "message": injection}})),
		},
	}
}

// hostileInit is the handshake of a client that tries it, too.
func hostileInit(c *e2e.Client) {
	c.T.Helper()
	c.Ok("initialize", e2e.Obj{
		"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "inj-client" + injection, "version": injection, "title": injection},
	})
	c.Notify("notifications/initialized", nil)
}

func TestB21_P11_C16_ControlSequencesNeverReachATerminal(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Log = e2e.Obj{"level": "debug"}
	w.Backend("hostile", hostile())
	s := w.Serve()
	c := s.RawClient()
	hostileInit(c)
	c.Listen()
	c.WaitListed("tools", "hostile_plain", true)
	require.Equal(t, injection, c.ReadText(e2e.In("hostile", "x:plain")), "a client gets what was sent")
	require.Contains(t, c.Fault("tools/call", e2e.Obj{"name": "hostile_plain"}).Message, "inj-end")
	c.Fault("tools/call", e2e.Obj{"name": "hostile_" + injection})
	c.Fault(injection, nil)

	for _, args := range []string{
		"list servers", "list tools", "list prompts", "list resources", "list templates", "status", "approve", "validate", "read x:plain", "call hostile_plain", "call " + strings.ReplaceAll(injection, "\x00", ""),
	} {
		verb, rest, _ := strings.Cut(args, " ")
		all := []string{verb}
		if rest != "" {
			all = append(all, rest)
		}
		for _, more := range [][]string{nil, {"--json"}} {
			out := w.Run(append(all, more...)...)
			harmless(t, "stderr of "+args, out.Stderr)
			if verb != "read" { // whose output is the unchanged resource
				harmless(t, "stdout of "+args, out.Stdout)
			}
		}
	}
	s.Logs("inj-end")
	harmless(t, "the log", s.Stderr.String())
}

func TestP12_ControlSequencesNeverReachTheScreen(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("hostile", hostile())
	w.AllowDaemon = true
	c := w.Pipe("stdio")
	hostileInit(c)
	c.WaitListed("tools", "hostile_plain", true)
	c.Fault("tools/call", e2e.Obj{"name": "hostile_plain"})
	p := w.Pane(200, 50)
	written := filepath.Join(w.Dir, "raw")
	p.Tmux("pipe-pane", "cat >"+written)
	p.Goblin("")
	p.Shows("1 up")
	p.Types("4")
	p.Shows("x:plain")
	p.Types("/plain")
	p.Keys("Enter", "Enter")
	p.Shows("inj-title", "inj-end") // in the detail, with the content
	p.Keys("Escape", "Escape")
	for pane, text := range map[string]string{"1": "hostile", "2": "hostile_plain", "3": "hostile/p"} {
		p.Types(pane)
		p.Shows(text)
		p.Keys("Enter")
		p.Shows("inj-")
		if pane == "3" {
			p.Shows("Get hostile/p")
			p.PressUntil("Escape", "Get hostile/p") // the first may close the field's completions
			continue
		}
		p.Keys("Escape")
	}
	p.Types("2/ask") // a request from the server
	p.Keys("Enter")
	p.Types("c")
	p.Keys("C-s")
	p.Shows("asks (waiting", "inj-bidi")
	p.PressUntil("Escape", "asks (waiting")
	p.Types("5")
	for _, text := range []string{"tools/call", "inj-title", "inj-"} { // requests, the server's output, the log
		p.Keys("]")
		p.Shows(text)
	}
	p.Types("q")
	p.Shows("ended with 0")
	text, err := os.ReadFile(written)
	require.NoError(t, err)
	require.Contains(t, string(text), "inj-end")
	harmless(t, "the UI", string(text))
}

func TestLinesOfAFailedToolAreToldFromThoseOfGoblin(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("calc", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("add")}, "on": e2e.Obj{"tools/call add": e2e.Actions(
		e2e.Do("result", e2e.Obj{"result": e2e.Obj{"isError": true, "content": []e2e.Obj{{"type": "text", "text": "no\ngoblin: all is well"}}}}))}})
	out := w.Run("call", "calc_add")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Equal(t, "goblin: tool \"calc_add\" failed: no\n  goblin: all is well\n", out.Stderr)
}
