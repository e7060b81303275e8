//go:build e2e

package profiles

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

type billedTool struct {
	Listed                         string
	Off, Unused                    bool
	Calls, Errors, DefinitionBytes int
}

// usage is the output of `goblin usage --json`.
type usage struct {
	Daemon bool `json:"host"`
	All    struct {
		Calls, Errors int
		P50Ms         float64
	}
	Servers []struct {
		Name                    string
		Tools, DefinitionTokens int
	}
	Tools   []billedTool
	Clients []struct {
		Name                   string
		Connected              bool
		Tools, DefinitionBytes int
		Breaks                 []struct{ Limit, Text, Fix string }
	}
}

func billOf(w *e2e.World) (u usage) {
	w.T.Helper()
	require.NoError(w.T, json.Unmarshal([]byte(w.Succeeds("usage", "--json")), &u))
	return u
}

// A user with too many tools checks their cost and disables the unused ones.
func TestLatenciesContainNoServerStarts(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	shop := w.Backend("shop", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("greet")}, "calls": e2e.Obj{"greet": "Good morning"},
		"on": e2e.Obj{"initialize": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 1_500}))},
	}, e2e.Obj{"start": "lazy"})
	w.Write()
	w.Succeeds("list", "tools") // caches the list, so the call starts the server
	starts := shop.Starts()
	c := w.Pipe("stdio")
	c.Ok("initialize", e2e.Obj{"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "c", "version": "1"}})
	c.Notify("notifications/initialized", nil)
	require.Equal(t, "Good morning", c.CallText("shop_greet", e2e.Obj{}))
	require.Equal(t, starts+1, shop.Starts())
	u := billOf(w)
	require.Equal(t, 1, u.All.Calls)
	require.Positive(t, u.All.P50Ms)
	require.Less(t, u.All.P50Ms, 1_000.0)
	c.Close()
	w.Succeeds("stop")
}

func TestTheBillIsSeenAndMadeSmallerOnTheScreen(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	tools := []e2e.Obj{e2e.Tool("used"), e2e.Tool("idle", e2e.Obj{"description": strings.Repeat("long ", 400)}), e2e.Tool("denied")}
	for i := range 45 {
		tools = append(tools, e2e.Tool("t"+strings.Repeat("x", i)))
	}
	w.Backend("big", e2e.Obj{"tools": tools}, e2e.Obj{"tools": e2e.Obj{"deny": []string{"denied"}}})
	w.Profiles = e2e.Obj{"part": e2e.Obj{"tools": e2e.Obj{"allow": []string{"used"}}}}
	p := w.Pane(150, 40)
	p.Goblin("")
	p.Shows("Servers 1")
	c := w.Pipe("stdio")
	c.Ok("initialize", e2e.Obj{"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "cursor-vscode", "version": "1"}})
	c.Notify("notifications/initialized", nil)
	c.WaitListed("tools", "big_idle", true)
	for range 3 {
		c.CallText("big_used", e2e.Obj{})
	}
	c.Settle()
	c.Forget()

	p.Types("6")
	p.Shows("[Tools", "Goblin tools")
	p.Types("j")
	p.Shows("[Tools", "> big_idle", "3 calls in the last hour", "Never called", "x disables it")
	p.Types("x")
	c.WaitNote("notifications/tools/list_changed", nil)
	require.NotContains(t, c.Names("tools"), "big_idle")
	p.Types("r")
	p.Types("/")
	p.Types("off:yes")
	p.Keys("Enter")
	p.Shows("> big_idle", "disabled", "Disabled for all clients, so it costs nothing. x enables it.")
	u := billOf(w)
	i := slices.IndexFunc(u.Tools, func(t billedTool) bool { return t.Listed == "big_idle" })
	require.True(t, u.Tools[i].Off)
	require.False(t, u.Tools[i].Unused)
	require.Zero(t, u.Tools[i].DefinitionBytes)
	require.Regexp(t, `(?m)^big_idle +disabled`, w.Succeeds("usage", "--all"))
	require.Equal(t, 3, u.All.Calls)

	// The client's row explains its limit and the key to press.
	p.Keys("Escape")
	p.Types("]")
	p.Shows("[Clients 1]", "cursor-vscode", "Cursor accepts 40", "x in the UI", "6 Usage !1")
	require.Equal(t, "tools", u.Clients[0].Breaks[0].Limit)
	require.Contains(t, u.Clients[0].Breaks[0].Fix, "goblin tools off")

	// Other reasons why an entry is hidden: the config, and a profile.
	p.Types("1")
	p.Shows("hidden", "tool denied (filtered by config)")
	p.Types("2V")
	p.Shows("View as a profile's clients", "part")
	p.Types("j")
	p.Keys("Enter")
	p.Shows("as seen by part", "hidden")

	// Counts and disabled tools persist over a restart.
	c.Close()
	p.Shows("clients 0")
	p.Types("q")
	p.Restored(0)
	kept := billOf(w)
	require.False(t, kept.Daemon)
	require.Equal(t, 3, kept.All.Calls)
	require.Regexp(t, `(?m)^big_idle +disabled`, w.Succeeds("usage", "--all"))
	w.AllowDaemon = true
	d := w.Pipe("stdio")
	d.Init()
	d.CallText("big_used", e2e.Obj{})
	e2e.Eventually(t, "the fourth call", func() bool { u := billOf(w); return u.Daemon && u.All.Calls == 4 })
	require.NotContains(t, d.Names("tools"), "big_idle")
}

// The size for a client that searches includes only what it gets, in the UI, too.
func TestTheBillIsOfWhatListsHave(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	delete(w.Gateway, "meta_tools")
	tools := []e2e.Obj{e2e.Tool("weigh", e2e.Obj{"description": "weigh apples"})}
	for i := range 80 {
		tools = append(tools, e2e.Tool(fmt.Sprint("t", i), e2e.Obj{"description": strings.Repeat("long ", 100)}))
	}
	w.Backend("big", e2e.Obj{"tools": tools, "prompts": []e2e.Obj{e2e.Prompt("p")}})
	w.Profiles = e2e.Obj{"lean": e2e.Obj{"expose": "search"}}
	p := w.Pane(150, 40)
	p.Goblin("")
	p.Shows("Servers 1")
	sent := map[string][2]int{}
	var stay []*e2e.Client
	for name, args := range map[string][]string{"all-of-it": {"stdio"}, "searcher": {"stdio", "--profile", "lean"}} {
		c := w.Pipe(args...)
		c.Ok("initialize", e2e.Obj{"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": name, "version": "1"}})
		c.Notify("notifications/initialized", nil)
		stay = append(stay, c)
		var list []json.RawMessage
		require.NoError(t, json.Unmarshal(e2e.At(c.Ok("tools/list", e2e.Obj{}), "tools"), &list))
		bytes := 0
		for _, one := range list {
			bytes += len(one)
		}
		sent[name] = [2]int{len(list), bytes}
	}
	require.Equal(t, 81+len(ownTools), sent["all-of-it"][0])
	require.Equal(t, 1+len(ownTools), sent["searcher"][0])
	require.Greater(t, sent["all-of-it"][1], 5*sent["searcher"][1])
	billed := map[string][2]int{}
	for _, c := range billOf(w).Clients {
		billed[c.Name] = [2]int{c.Tools, c.DefinitionBytes}
	}
	require.Equal(t, sent, billed)
	require.Regexp(t, `(?m)^SERVER +TOOLS +UNUSED +OTHERS +TOKENS[^\n]*\nbig +81 +81 +16 B `, w.Succeeds("usage"))

	p.Types("6")
	p.Types("]")
	p.Shows("[Clients 2]", "all-of-it", "searcher")
	p.Types("/")
	p.Types("searcher")
	p.Keys("Enter")
	row := regexp.MustCompile(fmt.Sprintf(`> searcher +%d +%d +`, sent["searcher"][0], (sent["searcher"][1]+3)/4))
	p.Until("the client's lists", row.MatchString)
	// Tools that it finds are marked in its view, and are not disabled.
	p.Types("2V")
	counts := regexp.MustCompile(fmt.Sprintf(`\(no profile\) +%d +1 +1[^0-9](?s:.*)lean +%d of %[1]d +1 of 1 +1 of 1[^0-9]`, sent["all-of-it"][0], sent["searcher"][0]))
	p.Until("the sizes of each profile's lists", counts.MatchString)
	p.Types("j")
	p.Keys("Enter")
	p.Shows("as seen by lean", "search only")
	p.Types("/")
	p.Types("weigh")
	p.Keys("Enter")
	p.Shows("Tools 1/", "search only", "found by search_tools")

	// Disabled tools are neither sent nor counted.
	w.Succeeds("tools", "off", "big_t1")
	for _, c := range billOf(w).Clients {
		if c.Name == "all-of-it" {
			require.Equal(t, sent[c.Name][0]-1, c.Tools)
			require.Less(t, c.DefinitionBytes, sent[c.Name][1]-500)
		}
	}
	for _, c := range stay {
		c.Quiet()
	}
}

// Disabled tools are disabled for lists, sizes and clients when the command returns.
func TestCommandsThatFollowSeeWhatIsOff(t *testing.T) {
	t.Parallel()
	w, _, _, _ := worlds(t)
	c := ways()["flag"](w, "")
	c.WaitListed("tools", "seen_keep", true)
	for range 3 {
		w.Succeeds("tools", "off", "seen_keep")
		require.Regexp(t, `(?m)^seen_keep +seen +disabled`, w.Succeeds("tools", "list"))
		require.NotContains(t, c.Names("tools"), "seen_keep")
		w.Succeeds("tools", "on", "seen_keep")
		require.Regexp(t, `(?m)^seen_keep +seen +listed$`, w.Succeeds("tools", "list"))
		require.Contains(t, c.Names("tools"), "seen_keep")
	}
}

// Clients without sessions are counted by the names in their requests, with the sizes of
// their profiles.
func TestTheBillNamesStatelessClientsOverHTTP(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	var tools []e2e.Obj
	for i := range 120 {
		tools = append(tools, e2e.Tool(fmt.Sprintf("t%d", i)))
	}
	w.Backend("big", e2e.Obj{"tools": tools})
	w.Profiles = e2e.Obj{"part": e2e.Obj{"tools": e2e.Obj{"allow": []string{"t1"}}, "meta_tools": false}}
	w.Clients = `{"small*": part}`
	for _, name := range []string{"windsurf", "small"} {
		c := w.Served().RawClient().Stateless(e2e.Obj{e2e.ProtocolPrefix + "clientInfo": e2e.Obj{"name": name, "version": "1"}})
		c.Web.Stateless = true
		c.WaitListed("tools", "big_t1", true)
		c.Ok("tools/call", e2e.Obj{"name": "big_t1"})
	}
	seen := map[string]int{}
	for _, c := range billOf(w).Clients {
		require.True(t, c.Connected, c.Name)
		seen[c.Name] = c.Tools
		if c.Name == "windsurf" {
			require.NotEmpty(t, c.Breaks)
			require.Contains(t, c.Breaks[0].Text, "100")
		}
	}
	require.Equal(t, 1, seen["small"])
	require.Greater(t, seen["windsurf"], 119)
	require.Len(t, seen, 2, "%v", seen)
}

func TestACallThatWasCancelledIsNoErrorOfTheBill(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	back := w.Backend("slow", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("wait")}, "on": e2e.Obj{"tools/call wait": e2e.Actions(e2e.Do("hang"))}})
	c := w.Join()
	c.WaitListed("tools", "slow_wait", true)
	id := c.Begin("tools/call", e2e.Obj{"name": "slow_wait"})
	back.WaitReceived("tools/call", 1)
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
	back.WaitReceived("notifications/cancelled", 1)
	e2e.Eventually(t, "the call is counted", func() bool { return billOf(w).All.Calls == 1 })
	require.Zero(t, billOf(w).All.Errors)
	require.Zero(t, billOf(w).All.P50Ms, "it has no time")
}

func TestInjectedDelaysAreNoLatency(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.AllowDaemon = true
	w.Backend("b", e2e.Filesystem())
	w.Rules = []string{`{when: "name:b_stat", then: delay, delay: 30ms}`}
	c := w.Pipe("stdio")
	c.Init()
	c.CallText("b_stat", e2e.Obj{})
	u := billOf(w)
	require.Equal(t, 1, u.All.Calls)
	require.Zero(t, u.All.P50Ms)
}
