package view_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/gateway/config"
	"goblin/gateway/policy"
	"goblin/gateway/servers"
	"goblin/gateway/state"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/names"
)

// Names, tags and contents of servers, so that globs match some of them.
var (
	drawnServers = []string{"git", "github", "mail", "files"}
	drawnTags    = []string{"work", "home"}
	drawnKinds   = []registry.Kind{registry.Tool, registry.Prompt, registry.Resource, registry.Template}
	drawnThings  = map[registry.Kind][]string{
		registry.Tool:     {"read", "read_all", "delete", "move"},
		registry.Prompt:   {"review", "read"},
		registry.Resource: {"file:///pub/a", "file:///pub/b", "file:///secret/a", "mail:1", "ui://app"},
		registry.Template: {"file:///pub/{name}", "mail:{id}"},
	}
	choosers  = []string{"git*", "*", "mail", "?iles", "tag:work", "tag:h*", "tag:*"}
	nameGlobs = []string{"*", "read*", "re?d", "git/*", "*/read", "delete", "mail/mo*", "review"}
	uriGlobs  = []string{"*", "file:*", "*secret*", "mail:*", "file:///pub/*", "ui:*"}
)

// fits is an independent matcher of globs with * and ?.
func fits(glob, text string) bool {
	pattern := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(glob))
	return regexp.MustCompile("^" + pattern + "$").MatchString(text)
}

func fitsAny(globs []string, texts ...string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return fits(g, text) })
	})
}

// drawnView is the test's model of a profile.
type drawnView struct {
	servers map[string]bool
	profile config.Profile
	flat    bool
}

// has reports whether a view has an entry, given the disabled entries. It is independent
// of the tested code.
func (v *drawnView) has(e *registry.Entry, off []state.ToggleEntry) bool {
	if e.Server == registry.Local {
		return true
	}
	filters := map[registry.Kind]config.Filter{registry.Tool: v.profile.Tools, registry.Prompt: v.profile.Prompts}
	var through bool
	if f, named := filters[e.Kind]; named {
		full := e.Server + "/" + e.Name
		through = (len(f.Allow) == 0 || fitsAny(f.Allow, e.Name, full)) && !fitsAny(f.Deny, e.Name, full)
	} else if uris := policy.NewURIFilter(v.profile.Resources); e.Kind == registry.Template {
		through = uris.MatchTemplate(e.Name)
	} else {
		through = uris.Match(e.Name)
	}
	return v.servers[e.Server] && through && !slices.ContainsFunc(off, func(s state.ToggleEntry) bool {
		return s.Server == e.Server && s.Kind == e.Kind.String() && s.Name == e.Name && (s.Profile == "" || s.Profile == v.profile.Name)
	})
}

// listed returns an entry's definition in the view: the server's, with the name of the
// namespace.
func (v *drawnView) listed(e *registry.Entry) string {
	var name, member string
	switch {
	case e.Kind == registry.Tool || e.Kind == registry.Prompt || e.Server == registry.Local:
		return string(e.JSON())
	case e.Kind == registry.Template:
		member = "uriTemplate"
		if name = names.NamespacedURI(e.Server, e.Name); v.flat {
			name = e.Name
		}
	default:
		member = "uri"
		if name = names.NamespacedURI(e.Server, e.Name); v.flat && !names.IsApp(e.Name) {
			name = names.FlatID(e.Server, e.Name)
		}
	}
	var definition map[string]any
	_ = json.Unmarshal(e.JSON(), &definition)
	definition[member] = name
	text, _ := json.Marshal(definition)
	return string(text)
}

// drawViews draws a config and the expected view of each profile.
func drawViews(t *rapid.T, flat bool) (*config.Config, map[string]*drawnView) {
	some := func(of []string, label string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, 2, rapid.ID[string]).Draw(t, label)
	}
	servers, tags := map[string]any{}, map[string][]string{}
	for _, name := range drawnServers {
		tags[name] = some(drawnTags, "tags of "+name)
		servers[name] = map[string]any{"command": "c", "tags": tags[name]}
	}
	profiles, all := map[string]any{}, map[string]*drawnView{}
	for _, name := range []string{"one", "two", "default"} {
		p := config.Profile{
			Name: name, Servers: some(choosers, "servers"),
			Tools:     config.Filter{Allow: some(nameGlobs, "allow"), Deny: some(nameGlobs, "deny")},
			Prompts:   config.Filter{Allow: some(nameGlobs, "allow"), Deny: some(nameGlobs, "deny")},
			Resources: config.Filter{Allow: some(uriGlobs, "allow"), Deny: some(uriGlobs, "deny")},
			Namespace: rapid.SampledFrom([]config.Namespace{"", config.NamespaceURI, config.NamespaceFlat}).Draw(t, "namespace"),
		}
		part := map[string]any{"servers": p.Servers}
		for key, f := range map[string]config.Filter{"tools": p.Tools, "prompts": p.Prompts, "resources": p.Resources} {
			part[key] = map[string]any{"allow": f.Allow, "deny": f.Deny}
		}
		v := &drawnView{servers: map[string]bool{}, profile: p, flat: flat}
		if p.Namespace != "" {
			part["namespace"], v.flat = p.Namespace, p.Namespace == config.NamespaceFlat
		}
		profiles[name], all[name] = part, v
		for _, server := range drawnServers {
			v.servers[server] = len(p.Servers) == 0 || slices.ContainsFunc(p.Servers, func(glob string) bool {
				tag, tagged := strings.CutPrefix(glob, "tag:")
				return !tagged && fits(glob, server) || tagged && fitsAny([]string{tag}, tags[server]...)
			})
		}
	}
	text, err := json.Marshal(map[string]any{"servers": servers, "profiles": profiles, "gateway": map[string]any{"meta_tools": false}})
	require.NoError(t, err)
	cfg, err := config.Parse("goblin.yaml", text, func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	return cfg, all
}

// drawOff draws the disabled entries.
func drawOff(t *rapid.T) (list []state.ToggleEntry) {
	for range rapid.IntRange(0, 4).Draw(t, "off") {
		k := rapid.SampledFrom(drawnKinds).Draw(t, "kind")
		s := state.ToggleEntry{
			Profile: rapid.SampledFrom([]string{"", "one", "default"}).Draw(t, "for"), Server: rapid.SampledFrom(drawnServers).Draw(t, "of"),
			Kind: k.String(), Name: rapid.SampledFrom(drawnThings[k]).Draw(t, "what"),
		}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func relist(t *rapid.T, r *registry.Registry, server string) {
	for _, k := range drawnKinds {
		member := map[registry.Kind]string{registry.Resource: "uri", registry.Template: "uriTemplate"}[k]
		if member == "" {
			member = "name"
		}
		var items [][]byte
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(drawnThings[k]), rapid.ID[string]).Draw(t, server+" "+k.String()) {
			items = append(items, fmt.Appendf(nil, `{"description":"of %s",%q:%q}`, server, member, name))
		}
		r.SetList(server, k, items)
	}
}

func lookup(s *registry.Snapshot, k registry.Kind, name string) (registry.Target, error) {
	return map[registry.Kind]func(string) (registry.Target, error){
		registry.Tool: s.ResolveTool, registry.Prompt: s.ResolvePrompt, registry.Resource: s.ResolveResource, registry.Template: s.ResolveTemplate,
	}[k](name)
}

// A profile's view is the current catalog, filtered by config and disabled entries, with
// the namespace's names. Earlier states do not matter. Versions reflect changes.
func TestAViewIsTheWholeFilteredAndNamed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		flat := rapid.Bool().Draw(rt, "flat")
		r := registry.New(registry.Options{Servers: drawnServers, Flat: flat, PageSize: rapid.SampledFrom([]int{1, 3, 1000}).Draw(rt, "page")})
		require.NoError(rt, r.AddResource(registry.ServersResource(r)))
		for _, server := range drawnServers {
			relist(rt, r, server)
		}
		cfg, drawn := drawViews(rt, flat)
		v, off := view.New(r, nil, cfg), drawOff(rt)
		v.SetDisabled(off)
		type list struct {
			text    string
			version view.Version
		}
		before := map[string]list{}
		for range 3 {
			whole := r.Load()
			for name, want := range drawn {
				profile := name
				if name == config.DefaultProfile {
					profile = ""
				}
				seen, ok := v.ForProfile(profile)
				require.True(rt, ok)
				for _, k := range drawnKinds {
					var texts []string
					for e := range whole.All(k) {
						if !want.has(e, off) {
							for _, name := range []string{e.Listed, e.Name, e.Server + "/" + e.Name, e.Server + "_" + e.Name, e.Flat, names.NamespacedURI(e.Server, e.Name)} {
								if target, err := lookup(seen.Visible, k, name); err == nil && target.Entry != nil {
									require.True(rt, want.has(target.Entry, off), "%s %q resolves for %s to %s %q", k, name, profile, target.Server, target.Name)
								}
							}
							continue
						}
						texts = append(texts, want.listed(e))
						for _, name := range []string{e.Listed, names.NamespacedURI(e.Server, e.Name), e.Flat} {
							if name == "" || k == registry.Template && !strings.Contains(name, "://"+e.Server) || (k == registry.Tool || k == registry.Prompt) && name != e.Listed {
								continue
							}
							target, err := lookup(seen.Visible, k, name)
							require.NoError(rt, err, "%s %q", k, name)
							require.Equal(rt, e.Server+" "+e.Name, target.Server+" "+target.Name)
							require.JSONEq(rt, want.listed(e), string(target.Entry.JSON()))
							if k == registry.Resource {
								require.Equal(rt, target.Entry.Listed, seen.Visible.ListedURI(e.Server, e.Name))
							}
						}
					}
					got := pagesOf(rt, seen.Lists, k)
					require.Len(rt, got, len(texts), "%ss of %q: %s", k, profile, got)
					for _, text := range texts {
						require.True(rt, slices.ContainsFunc(got, func(g string) bool { return sameJSON(g, text) }), "%s is not among the %ss of %q: %s", text, k, profile, got)
					}
					now := list{strings.Join(got, "\n"), view.ListVersion(seen.Lists, k)}
					key := name + " " + k.String()
					if was, known := before[key]; known {
						require.Equal(rt, was.text == now.text, was.version == now.version, "the %ss of %q", k, profile)
					}
					before[key] = now
				}
			}
			switch rapid.IntRange(0, 3).Draw(rt, "what changes") {
			case 0:
				relist(rt, r, rapid.SampledFrom(drawnServers).Draw(rt, "who"))
			case 1:
				cfg, drawn = drawViews(rt, flat)
				v.Apply(cfg)
			case 2:
				off = drawOff(rt)
				v.SetDisabled(off)
			case 3:
				r.SetVisible(rapid.SampledFrom(drawnServers).Draw(rt, "who"), rapid.Bool().Draw(rt, "visible"))
			}
		}
	})
}

func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("goblin.yaml", []byte(text), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	return cfg
}

// viewsOf returns the views of a config and a catalog, with no running servers.
func viewsOf(t *testing.T, r *registry.Registry, text string) *view.Views {
	t.Helper()
	return view.New(r, servers.New(servers.Options{Config: &config.Config{}, Registry: r, Logger: slog.New(slog.DiscardHandler)}, servers.Hooks{}), parsed(t, text))
}

// tools returns the names of the listed tools.
func tools(s *registry.Snapshot) (nameList []string) {
	for e := range s.All(registry.Tool) {
		nameList = append(nameList, e.Listed)
	}
	return nameList
}

func TestAnEditedChoiceOfGoblinsOwnToolsCountsAtOnce(t *testing.T) {
	t.Parallel()
	r := registry.New(registry.Options{Servers: []string{"a"}, Own: config.OwnTools()})
	require.NoError(t, r.AddTool(registry.LocalTool{
		Definition: []byte(`{"name":"catalog_tools"}`), Call: func(context.Context, []byte) ([]byte, error) { return nil, nil },
	}))
	r.SetList("a", registry.Tool, [][]byte{[]byte(`{"name":"x"}`), []byte(`{"name":"y"}`)})
	const servers = "servers: {a: {command: c}}\n"
	v := viewsOf(t, r, servers)
	without, with := []string{"a_x", "a_y"}, []string{"catalog_tools", "a_x", "a_y"}
	for _, c := range []struct {
		gateway     string
		seen, whole []string
	}{
		{"meta_tools_above: 1", with, with},
		{"meta_tools_above: 2", without, without},
		{"meta_tools_above: 1", with, with},
		{"meta_tools: false", without, without},
		{"meta_tools: true", with, with},
		{"meta_tools: false", without, without},
	} {
		v.Apply(parsed(t, servers+"gateway: {"+c.gateway+"}"))
		seen, ok := v.ForProfile("")
		require.True(t, ok)
		require.Equal(t, c.seen, tools(seen.Lists), c.gateway)
		require.Equal(t, c.whole, tools(v.Full()), c.gateway)
	}
}

func TestWhatIsOffForAllIsNotSaidToBeOffInAProfile(t *testing.T) {
	t.Parallel()
	r := registry.New(registry.Options{Servers: []string{"a"}})
	r.SetList("a", registry.Tool, [][]byte{[]byte(`{"name":"x"}`)})
	v := viewsOf(t, r, "servers: {a: {command: c}}\nprofiles: {p: {}}")
	e, err := r.ResolveTool("a_x")
	require.NoError(t, err)
	one, all := state.ToggleEntry{Profile: "p", Server: "a", Kind: "tool", Name: "x"}, state.ToggleEntry{Server: "a", Kind: "tool", Name: "x"}
	for want, off := range map[string][][]state.ToggleEntry{
		`disabled in profile "p"`:  {{one}},
		"disabled for all clients": {{all}, {one, all}, {all, one}},
	} {
		for _, off := range off {
			v.SetDisabled(off)
			require.Equal(t, want, v.HiddenBy("p", e.Entry).Why)
		}
	}
}

// A disabled resource is disabled in every spelling of its URI, and its URI is no
// pattern.
func TestNothingElseIsOffWithAResource(t *testing.T) {
	t.Parallel()
	for off, others := range map[string][]string{
		"x:/a*":     {"x:/ab", "x:/a"},
		"x:/a?b":    {"x:/axb", "x:/a", "x:/a?c"},
		"x:/a?b=1":  {"x:/a", "x:/a?b=2"},
		"x:/[ab]":   {"x:/a", "x:/b"},
		"x:/]":      {"x:/"},
		`x:/a\b`:    {"x:/ab"},
		"x:/a#one":  {"x:/a", "x:/a#two"},
		"x:/a;v=1":  {"x:/a", "x:/a;v=2"},
		"x:/{a,b}":  {"x:/a"},
		"x:/a%2Fb":  {"x:/a"},
		"x:/dir":    {"x:/dir/file", "x:/di"},
		"x:/plain":  nil,
		"x:/!(a)":   {"x:/b"},
		"x:/a/**/b": {"x:/a/c/b", "x:/a/b"},
	} {
		r := registry.New(registry.Options{Servers: []string{"a"}})
		var items [][]byte
		for _, uri := range append(others, off) {
			items = append(items, fmt.Appendf(nil, `{"name":"n","uri":%q}`, uri))
		}
		r.SetList("a", registry.Resource, items)
		v := viewsOf(t, r, "servers: {a: {command: c}}")
		v.SetDisabled([]state.ToggleEntry{{Server: "a", Kind: "resource", Name: off}})
		seen, _ := v.ForProfile("")
		require.False(t, seen.Visible.IsVisible("a", registry.Resource, off), off)
		require.False(t, seen.Visible.IsVisible("a", registry.Resource, strings.Replace(off, "x:/", "x:/./", 1)), off)
		for _, other := range others {
			require.True(t, seen.Visible.IsVisible("a", registry.Resource, other), "%s is disabled with %s", other, off)
		}
	}
}

func TestWhatSearchesFindIsNotLacking(t *testing.T) {
	t.Parallel()
	r := registry.New(registry.Options{Servers: []string{"a"}})
	r.SetList("a", registry.Tool, [][]byte{[]byte(`{"name":"denied"}`), []byte(`{"name":"found"}`), []byte(`{"name":"off"}`)})
	v := viewsOf(t, r, "servers: {a: {command: c}}\nprofiles: {p: {expose: search, tools: {deny: [denied]}}}")
	since := time.Unix(50, 0)
	v.SetDisabled([]state.ToggleEntry{{Server: "a", Kind: "tool", Name: "off", Since: since}, {Server: "a", Kind: "tool", Name: "gone", Since: since}})
	var lacking []string
	for _, off := range v.Hidden("p", registry.Tool) {
		lacking = append(lacking, fmt.Sprintf("%s by %s since %d", off.Name, off.By, max(0, off.Since.Unix())))
	}
	require.Equal(t, []string{"denied by profile since 0", "off by you since 50", "gone by you since 50"}, lacking)
}

func TestAnUnknownToolIsSaidToBeOfAServerThatIsDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state  registry.ServerState
		name   string
		absent string
	}{
		{registry.ServerState{State: registry.StateFailed}, "a_x", `server "a" has failed, so its tools are unknown`},
		{registry.ServerState{State: registry.StateSleeping}, "a_x", `server "a" is idle, so its tools are unknown`},
		{registry.ServerState{State: registry.StateNeedsLogin}, "a_x", `server "a" needs login, so its tools are unknown`},
		{registry.ServerState{State: registry.StateStopped, LastError: "waits for a project"}, "a_x", `server "a" is stopped: waits for a project, so its tools are unknown`},
		{registry.ServerState{State: registry.StateReady}, "a_x", ""},
		{registry.ServerState{State: registry.StateFailed, Listed: true}, "a_x", ""},
		{registry.ServerState{State: registry.StateFailed}, "b_x", ""},
		{registry.ServerState{State: registry.StateFailed}, "x", ""},
	} {
		r := registry.New(registry.Options{Servers: []string{"a", "b"}})
		r.SetState("a", c.state)
		r.SetState("b", registry.ServerState{State: registry.StateReady})
		_, err := viewsOf(t, r, "servers: {a: {command: c}, b: {command: c}}").FindFor(t.Context(), nil, (*registry.Snapshot).ResolveTool, c.name)
		var unknown *registry.NotFoundError
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, c.absent, unknown.MissingReason, "%s of %+v", c.name, c.state)
	}
}

func sameJSON(a, b string) bool {
	var x, y map[string]any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	first, _ := json.Marshal(x)
	second, _ := json.Marshal(y)
	return bytes.Equal(first, second)
}

// pagesOf returns the definitions on all pages of a list, as a client receives them.
func pagesOf(t *rapid.T, s *registry.Snapshot, k registry.Kind) (all []string) {
	for cursor := ""; ; {
		page, err := s.Page(k, cursor)
		require.NoError(t, err)
		var entries []json.RawMessage
		require.NoError(t, json.Unmarshal(slices.Concat([]byte{'['}, bytes.Join(page.Chunks, nil), []byte{']'}), &entries))
		for _, e := range entries {
			all = append(all, string(e))
		}
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

func TestWhatAServersConfigLeavesOutIsSaidToBeSo(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("goblin.yaml", []byte(`servers:
  aa: {command: x, tools: {deny: ["sl*"]}}
  bb: {command: x, tools: {allow: [push]}, prompts: {deny: [greet]}}
profiles:
  deny: {tools: {deny: [aa/slow, slower, aa/gone, "aa/slow*"]}, prompts: {deny: [bb/greet]}}
  allow: {tools: {allow: [bb/pull, pull, "aa/sl*"]}}
  one: {servers: [bb], tools: {deny: [slow]}}
`), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	listed := make(view.ListedNames)
	listed.Add("aa", registry.Tool, "echo")
	listed.Add("bb", registry.Tool, "push")
	var told []string
	for _, p := range view.UnusedGlobs(cfg, listed) {
		told = append(told, p.Text)
	}
	require.ElementsMatch(t, []string{
		`"tools" in profile "deny": "aa/slow" is excluded by "tools" of server "aa"`,
		`"tools" in profile "deny": "slower" is excluded by "tools" of server "aa"`,
		`"tools" in profile "deny": "aa/gone" matches no tool of its servers`,
		`"prompts" in profile "deny": "bb/greet" is excluded by "prompts" of server "bb"`,
		`"tools" in profile "allow": "bb/pull" is excluded by "tools" of server "bb"; did you mean "bb/push"?`,
		`"tools" in profile "allow": "pull" matches no tool of its servers`,
		`"tools" in profile "allow": "aa/sl*" matches no tool of its servers`,
		`"tools" in profile "one": "slow" matches no tool of its servers`,
	}, told)
}
