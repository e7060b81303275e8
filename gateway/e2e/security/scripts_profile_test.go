//go:build e2e

package security

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// probe is a script that reports everything that it can detect.
const probe = `
local out = {}
local function note(...) for _, v in ipairs{...} do out[#out + 1] = type(v) == "string" and v or json.encode(v) end end
local function try(f, ...) local ok, why = pcall(f, ...) note(why == nil and "nil" or why) end
for name, t in pairs(servers) do note(name) end
note(tools.list{}, resources.list{}, prompts.list{})
for _, s in ipairs{"open", "vaul", "vault"} do
  try(function() return tools.list{server = s} end)
  try(function() return search("plums", {server = s}) end)
  for _, t in ipairs{"hide_jewel", "hide_jewels", "withhel_jewel", "late_jewe", "searched", "rename", "origina"} do try(function() return servers[s][t]{} end) end
end
for _, words in ipairs{"plums", "jewels", "jewel", "original", "hide", "withheld"} do
  for _, kind in ipairs{"tool", "prompt", "resource", "template", "skill"} do try(search, words, {kind = kind}) end
end
for _, uri in ipairs{"mcp://vault/file:///jewel", "mcp://open/file:///hide/jewe", "file:///jewe", "mcp://vaul/x", "mcp://open/file:///pub/"} do try(resources.read, uri) end
for _, name in ipairs{"open/hide_jewe", "vault/jewe", "jewe", "open/loo", "look"} do try(prompts.get, name, {}) end
try(function() return vaul.x end)
try(function() return open.execute_lu{} end)
return out
`

// jewels has entries whose names and texts mark them as hidden from the client.
func jewels(mark string) e2e.Obj {
	return e2e.Obj{
		"tools": []e2e.Obj{
			e2e.Tool("look", e2e.Obj{"description": "Looks at plums"}), e2e.Tool("gate"),
			e2e.Tool("late_jewels", e2e.Obj{"description": "Weighs figs"}),
			e2e.Tool("hide_"+mark, e2e.Obj{"description": "Weighs plums, " + mark}),
			e2e.Tool("original_"+mark, e2e.Obj{"description": "Original of plums, " + mark}),
		},
		"prompts":   []e2e.Obj{e2e.Prompt("look"), e2e.Prompt("hide_"+mark, e2e.Obj{"description": "plums " + mark})},
		"resources": []e2e.Obj{e2e.Resource("file:///pub/a"), e2e.Resource("file:///hide/"+mark, e2e.Obj{"description": "plums " + mark})},
		"templates": []e2e.Obj{e2e.Template("file:///hide/{"+mark+"}", e2e.Obj{"description": "plums " + mark})},
		"on":        e2e.Obj{"tools/call gate": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "gate"}))},
	}
}

// narrowed returns a world with a profile that hides entries of one server and all of
// another.
func narrowed(t *testing.T) (w *e2e.World, open, vault *e2e.Backend) {
	w = e2e.NewWorld(t)
	w.Gateway["pin"] = "strict"
	open = w.Backend("open", jewels("sparkling"))
	vault = w.Backend("vault", jewels("sparkling"))
	w.Profiles = e2e.Obj{"narrow": e2e.Obj{
		"servers": []string{"open"}, "meta_tools": true,
		"tools": e2e.Obj{"deny": []string{"hide_*"}}, "prompts": e2e.Obj{"deny": []string{"hide_*"}}, "resources": e2e.Obj{"deny": []string{"file:///hide/*"}},
		"overrides": e2e.Obj{"open": e2e.Obj{"tools": e2e.Obj{"original_sparkling": e2e.Obj{"name": "renamed", "description": "A new text"}}}},
	}}
	return w, open, vault
}

func TestScriptsFindOutOnlyWhatTheProfileShows(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"daemon": {"stdio", "--profile", "narrow"}, "standalone": {"stdio", "--standalone", "--profile", "narrow"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, open, vault := narrowed(t)
			w.AllowDaemon = name == "daemon"
			c := w.Pipe(args...)
			c.Init()
			c.WaitListed("tools", "open_renamed", true)
			for _, b := range []*e2e.Backend{open, vault} { // tools that are unapproved, and tools outside of the profile
				lists := b.Count("tools/list")
				b.Add("tools", e2e.Tool("hide_withheld_sparkling"))
				b.ListChanged("tools")
				b.WaitReceived("tools/list", lists+1)
			}
			text := c.CallText("execute_lua", e2e.Obj{"script": probe})
			require.Contains(t, text, "open_look")
			require.Contains(t, text, "A new text")
			for _, hidden := range []string{"sparkling", "Original of", "withheld_", `"vault"`, "vault_", "approve"} {
				require.NotContains(t, text, hidden)
			}
			require.Zero(t, vault.Count("tools/call")+vault.Count("resources/read")+vault.Count("prompts/get"))
			if name == "daemon" {
				shell := w.RunInput(probe, "lua", "-", "--profile", "narrow").Stdout
				require.Contains(t, shell, "open_look")
				for _, hidden := range []string{"sparkling", "Original of", "withheld_", `"vault"`, "vault_", "approve"} {
					require.NotContains(t, shell, hidden)
				}
			}
		})
	}
}

func TestRunningScriptsLoseWhatIsHiddenMeanwhile(t *testing.T) {
	t.Parallel()
	const script = `
local late, gate, read = open.late_jewels, open.gate, resources.read
assert(late{})
gate{}
local out = {}
local function try(f, ...) local ok, why = pcall(f, ...) out[#out + 1] = (ok and "GOT " or "no ") .. tostring(why) end
try(late, {})
try(function() return servers.open.late_jewels{} end)
try(read, "mcp://open/file:///pub/a")
try(function() return vault.look{} end)
try(prompts.get, "vault/look", {})
out[#out + 1] = json.encode(tools.list{})
out[#out + 1] = json.encode(search("figs"))
return out
`
	changes := map[string]func(w *e2e.World){
		"disabled": func(w *e2e.World) {
			for _, args := range [][]string{{"tools", "off", "open_late_jewels"}, {"resources", "off", "mcp://open/file:///pub/a"}, {"tools", "off", "vault_look", "vault_late_jewels"}, {"prompts", "off", "vault/look"}} {
				w.Succeeds(append(args, "--profile", "wide")...)
			}
		},
		"profile": func(w *e2e.World) {
			w.Edit(func() {
				w.Profiles["wide"] = e2e.Obj{"servers": []string{"open"}, "meta_tools": true, "tools": e2e.Obj{"deny": []string{"late_*"}}, "resources": e2e.Obj{"deny": []string{"file:///pub/a"}}}
			})
		},
	}
	changes["removed"] = func(w *e2e.World) { w.Edit(func() { delete(w.Profiles, "wide") }) }
	for name, change := range changes {
		for _, way := range []string{"client", "shell"} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				w, open, vault := narrowed(t)
				w.Profiles["wide"] = e2e.Obj{"servers": []string{"*"}, "meta_tools": true}
				w.AllowDaemon = true
				c := w.Pipe("stdio", "--profile", "wide")
				c.Init()
				c.WaitListed("tools", "vault_look", true)
				c.Names("resources")
				c.Names("prompts")
				text := make(chan string, 1)
				if way == "client" {
					call := c.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": script}})
					go func() { text <- string(c.End(call).Result) }()
				} else {
					go func() { text <- w.RunInput(script, "lua", "-", "--profile", "wide").Stdout }()
				}
				open.WaitEvent("wait", "gate")
				change(w)
				c.WaitListed("tools", "open_late_jewels", false)
				c.WaitListed("tools", "vault_look", false)
				open.Do(e2e.Do("release", e2e.Obj{"name": "gate"}))
				got := <-text
				require.Contains(t, got, "RESOURCE_NOT_FOUND", "the script continued")
				require.NotContains(t, got, "GOT ")
				require.NotContains(t, got, "Weighs figs", "lists and searches do not have it")
				require.Equal(t, 2, open.Count("tools/call"), "one earlier call, and the gate")
				require.Zero(t, slices.Max([]int{open.Count("resources/read"), vault.Count("tools/call"), vault.Count("prompts/get")}))
			})
		}
	}
}
