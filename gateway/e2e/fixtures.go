package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	AppLog  = "file:///logs/app.log"
	AppJSON = "file:///config/app.json"
)

func Resource(uri string, more ...Obj) Obj {
	return Merge(Obj{"uri": uri, "name": uri}, more)
}

func Tool(name string, more ...Obj) Obj {
	return Merge(Obj{"name": name, "inputSchema": Obj{"type": "object"}}, more)
}

func Prompt(name string, more ...Obj) Obj { return Merge(Obj{"name": name}, more) }

func Template(uri string, more ...Obj) Obj {
	return Merge(Obj{"uriTemplate": uri, "name": uri}, more)
}

func Merge(o Obj, more []Obj) Obj {
	for _, m := range more {
		for k, v := range m {
			o[k] = v
		}
	}
	return o
}

// Filesystem, S3 and Dbsrv are the servers of the checklist.
func Filesystem() Obj {
	return Obj{
		"resources": []Obj{
			{"uri": AppLog, "name": "app.log", "mimeType": "text/plain", "size": 12, "description": "log"},
			{"uri": AppJSON, "name": "app.json", "mimeType": "application/json"},
		},
		"tools": []Obj{Tool("stat"), Tool("move")},
	}
}

func S3() Obj {
	return Obj{"resources": []Obj{Resource("s3://bucket/config/app.json", Obj{"mimeType": "application/json"})}}
}

func Dbsrv() Obj {
	return Obj{
		"resources": []Obj{},
		"templates": []Obj{{
			"uriTemplate": "mcp://database/{table}/{id}", "name": "row", "title": "Row",
			"description": "one row", "mimeType": "application/json", "annotations": Obj{"priority": 0.5},
		}},
	}
}

func In(server, uri string) string { return "mcp://" + server + "/" + uri }

func Do(what string, more ...Obj) Obj { return Merge(Obj{"do": what}, more) }

func Actions(acts ...Obj) []Obj { return acts }

// RandomURIs returns distinct URIs of many shapes. They stay distinct after a WHATWG
// parser.
func RandomURIs(n int) []string {
	r := rand.New(rand.NewPCG(3, 8))
	schemes := []string{"file:///", "x:", "urn:isbn:", "https://h.example/", "s3://b/", "mcp://q/"}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:?#[]@!$&'()*+,;=%20 äß€|^\\{}<>\"`"
	runes := []rune(letters)
	seen := map[string]bool{}
	var out []string
	for len(out) < n {
		var b strings.Builder
		b.WriteString(schemes[r.IntN(len(schemes))])
		fmt.Fprintf(&b, "%d/", len(out)) // stays distinct after any normalization
		for range 1 + r.IntN(20) {
			b.WriteRune(runes[r.IntN(len(runes))])
		}
		b.WriteByte('z') // trailing blanks and dots are tested elsewhere
		uri := b.String()
		if strings.Contains(uri, "/.") || strings.Contains(uri, "/%2e") || seen[uri] {
			continue
		}
		seen[uri] = true
		out = append(out, uri)
	}
	return out
}

func Sorted(names []string) []string {
	slices.Sort(names)
	return names
}

func IsSorted(names []string) bool { return slices.IsSorted(names) }

func Contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

var Form = Obj{"message": "who?", "requestedSchema": Obj{"type": "object", "properties": Obj{}}}

// AskingServer returns a server with three tools. "ask" sends a request to the client,
// "other" waits until it is released, and "hang" never answers.
func AskingServer(method string, params Obj) Obj {
	return Obj{"tools": []Obj{Tool("ask"), Tool("other"), Tool("hang")}, "on": Obj{
		"tools/call hang":  Actions(Do("hang")),
		"tools/call ask":   Actions(Do("request", Obj{"method": method, "params": params}), Do("answers")),
		"tools/call other": Actions(Do("wait", Obj{"name": "other"})),
	}}
}

// Shop returns a server for the commands.
func Shop() Obj {
	return Merge(Filesystem(), []Obj{{
		"prompts":   []Obj{Prompt("greet", Obj{"arguments": []Obj{{"name": "who"}}})},
		"templates": []Obj{Template("row:///{id}")},
		"reads": Obj{
			AppLog:  []Obj{{"uri": AppLog, "mimeType": "text/plain", "text": "line one\nline two"}},
			AppJSON: []Obj{{"uri": AppJSON, "mimeType": "application/octet-stream", "blob": "AAECAw=="}},
		},
		"calls": Obj{"move": Obj{"isError": true, "content": []Obj{{"type": "text", "text": "cannot move"}}}},
	}})
}

// DemoWorld returns a world without a config, so that the embedded demo is served.
func DemoWorld(t *testing.T) *World {
	w := NewWorld(t)
	w.Written, w.Config = true, ""
	return w
}

// DemoClient returns a client of a demo whose servers have listed.
func DemoClient(t *testing.T) *Client {
	c := DemoWorld(t).Standalone()
	Eventually(t, "the lists of the demo", func() bool {
		return strings.Count(c.ReadText("goblin://servers"), `"listed":true`) == 3
	})
	return c
}

// HealthyServer adds a healthy server beside an odd one, to show that it isn't affected.
func (w *World) HealthyServer() *Backend { return w.Backend("fine", Filesystem()) }

func (c *Client) CallHealthyServer() {
	c.T.Helper()
	c.WaitListed("tools", "fine_stat", true)
	var ids []string
	for range 20 {
		ids = append(ids, c.Begin("tools/call", Obj{"name": "fine_stat", "arguments": Obj{}}))
	}
	for _, id := range ids {
		require.Equal(c.T, "fine:stat:{}", Str(c.End(id).Result, "content", 0, "text"))
	}
}

func Count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

func CountingServer() Obj {
	return Obj{
		"tools": []Obj{Tool("count")}, "prompts": []Obj{Prompt("p")}, "resources": []Obj{Resource("x:1")}, "templates": []Obj{Template("x:///{a}")},
		"on": Obj{"tools/call count": Actions(Do("count"))},
	}
}

func (c *Client) Counts() (pid, n int) {
	c.T.Helper()
	_, err := fmt.Sscan(c.CallText("own_count", Obj{}), &pid, &n)
	require.NoError(c.T, err)
	return pid, n
}

// CountsTo calls the tool for the counts from..n, all in one process.
func (c *Client) CountsTo(from, n int) (pid int) {
	c.T.Helper()
	for want := from; want <= n; want++ {
		p, got := c.Counts()
		require.Equal(c.T, want, got)
		require.True(c.T, pid == 0 || p == pid, "one process")
		pid = p
	}
	return pid
}

// HashSuffix returns the tail of a changed name.
func HashSuffix(server, original string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + original))
	return hex.EncodeToString(sum[:4])
}

// FlatHashSuffix returns the tail of equal flat ids, a hash of the original URI.
func FlatHashSuffix(original string) string {
	sum := sha256.Sum256([]byte(original))
	return hex.EncodeToString(sum[:4])
}

// RugPull returns a server whose tools change their definitions on command.
func RugPull() Obj {
	return Obj{"tools": []Obj{Tool("add", Obj{"description": "Adds"}), Tool("same")}}
}

func RemoteScript() Obj {
	return Merge(Filesystem(), []Obj{{"prompts": []Obj{Prompt("p")}}})
}

// BridgeToRunning returns an initialized client of goblin stdio with a running daemon.
func (w *World) BridgeToRunning() *Client {
	w.T.Helper()
	w.AllowDaemon = true // the bridge may start a new daemon
	c := w.Pipe("stdio")
	c.Init()
	return c
}
