package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func TestProfilesChooseServersByNameAndTag(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "goblin.yaml", `
servers:
  git: {command: c, tags: [work, code]}
  github: {command: c}
  mail: {command: c, tags: [home]}
profiles:
  all: {servers: ["*"]}
  tagged: {servers: ["tag:wor*"]}
  both: {servers: ["git*", "tag:home"]}
  one: {servers: [mail], tools: {allow: [mail/read], deny: ["*x"]}, meta_tools: [search_tools]}
clients: {"codex*": one, other: all}
`)
	require.Empty(t, cfg.Warnings)
	has := map[string]string{}
	for _, p := range cfg.Profiles {
		for i := range cfg.Servers {
			if p.Has(&cfg.Servers[i]) {
				has[p.Name] += " " + cfg.Servers[i].Name
			}
		}
	}
	require.Equal(t, map[string]string{"all": " git github mail", "tagged": " git", "both": " git github mail", "one": " mail"}, has)
	one, ok := cfg.Profile("one")
	require.True(t, ok)
	require.Equal(t, []bool{true, false, false}, []bool{one.Tools.MatchOriginal("mail", "read"), one.Tools.MatchOriginal("git", "read"), one.Tools.MatchOriginal("mail", "send")})
	require.Equal(t, []bool{true, false}, []bool{one.MetaTools.Has("search_tools"), one.MetaTools.Has("execute_lua")})
	require.Equal(t, []config.ClientRule{{Glob: "codex*", Profile: "one"}, {Glob: "other", Profile: "all"}}, cfg.Clients)
}

func TestOwnToolsAreThoseOfTheProfileElseOfTheGateway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ gateway, profile, want string }{
		{"", "", "auto: describe_tool execute_lua search_tools"},
		{"meta_tools: true", "", "describe_tool execute_lua search_tools"},
		{"meta_tools: false", "", ""},
		{"meta_tools: [call_tool]", "", "call_tool"},
		{"meta_tools: false", "meta_tools: auto", "auto: describe_tool execute_lua search_tools"},
		{"meta_tools: false", "meta_tools: true", "describe_tool execute_lua search_tools"},
		{"meta_tools: true", "meta_tools: false", ""},
		{"", "meta_tools: [execute_lua, call_tool]", "call_tool execute_lua"},
		{"", "expose: search", "call_tool describe_tool execute_lua search_tools"},
		{"meta_tools: false", "expose: search", "call_tool describe_tool search_tools"},
		{"", "expose: search, meta_tools: false", "call_tool describe_tool search_tools"},
		{"meta_tools: true", "expose: search, meta_tools: [execute_lua]", "call_tool describe_tool execute_lua search_tools"},
		{"meta_tools: true", "expose: all", "describe_tool execute_lua search_tools"},
	} {
		cfg := parse(t, "goblin.yaml", fmt.Sprintf("gateway: {%s}\nprofiles: {p: {%s}}", c.gateway, c.profile))
		p, ok := cfg.Profile("p")
		require.True(t, ok)
		m := cfg.ProfileMetaTools(p)
		var has []string
		for _, name := range []string{"call_tool", "describe_tool", "execute_lua", "search_tools"} {
			if m.Has(name) {
				has = append(has, name)
			}
		}
		got := strings.Join(has, " ")
		if m.Auto {
			got = "auto: " + got
		}
		require.Equal(t, c.want, got, "%s, %s", c.gateway, c.profile)
	}
}

func TestProfilesThatMeanNothingAreToldWithTheirLine(t *testing.T) {
	t.Parallel()
	const servers = "servers:\n  git: {command: c, tags: [work]}\n"
	for _, c := range []struct{ name, src, mistake, warning string }{
		{name: "name", src: "profiles: {\"a b\": {}}", mistake: `3: "a b" is not a valid profile name; use up to 64 letters, digits, and . _ - (not first)`},
		{name: "key", src: "profiles:\n  p: {server: [git]}", mistake: `4: unknown key "server" in profile "p"; did you mean "servers"?`},
		{name: "glob", src: "profiles:\n  p: {tools: {deny: [\"[a\"]}}", mistake: `4: "deny[0]" in tools of profile "p" is not a valid`},
		{name: "tag", src: "profiles:\n  p: {servers: [\"tag:\"]}", mistake: `4: "servers[0]" in profile "p" is an empty pattern`},
		{name: "own tool", src: "profiles:\n  p: {meta_tools: [serch_tools]}", mistake: `4: "meta_tools[0]" in profile "p" must be a known name, not "serch_tools"; did you mean "search_tools"?`},
		{name: "own tools", src: "profiles:\n  p: {meta_tools: often}", mistake: `4: "meta_tools" in profile "p" must be auto, true, false or a list of names, not text`},
		{name: "exposure", src: "profiles:\n  p:\n    expose: some", mistake: `5: "expose" in profile "p" must be all or search, not "some"`},
		{name: "namespace", src: "profiles:\n  p: {namespace: url}", mistake: `4: "namespace" in profile "p" must be uri or flat, not "url"`},
		{name: "namespace of ids", src: "profiles:\n  p:\n    namespace: flat", warning: `5: "namespace" in profile "p": flat lists resources by ids that are not URIs; clients that validate URIs, such as the Python SDK 1.x, reject the whole list`},
		{name: "namespace of URIs", src: "profiles:\n  p: {namespace: uri}"},
		{name: "rule for nothing", src: "profiles:\n  coding: {}\nclients:\n  a: codign", mistake: `6: clients: "a": unknown profile "codign"; did you mean "coding"?`},
		{name: "rule without profiles", src: "clients: {a: coding}", mistake: `3: clients: "a": unknown profile "coding"; the config has no "profiles"`},
		{name: "unknown server", src: "profiles:\n  p: {servers: [gti, \"*\"]}", warning: `4: "servers" in profile "p": "gti" matches no server; did you mean "git"?`},
		{name: "unknown tag", src: "profiles:\n  p: {servers: [\"tag:wrok\", git]}", warning: `4: "servers" in profile "p": "tag:wrok" matches no server; did you mean "work"?`},
		{name: "rule behind a wider one", src: "profiles: {p: {servers: [git]}, q: {servers: [git]}}\nclients:\n  \"c*\": p\n  codex: q", warning: `6: clients: "codex" never applies, because "c*" on line 5 matches the same names first`},
		{name: "a profile of empty lists", src: "profiles:\n  p:\n    servers: []\n    tools: {allow: []}", warning: `4: profile "p" is empty, so its clients see everything`},
		{name: "no servers", src: "profiles:\n  p:\n    tools: {allow: [x]}\n    servers: []", warning: `6: "servers" in profile "p" is empty, so the profile includes all servers`},
		{name: "a profile that names nothing", src: "profiles:\n  p: {servers: [git]}\n  q:", warning: `5: profile "q" is empty, so its clients see everything`},
		{name: "a rule that is no glob", src: "profiles: {p: {servers: [git]}}\nclients:\n  \"[a\": p", mistake: `5: "[a" in clients is not a valid`},
		{name: "a rule without a name", src: "profiles: {p: {servers: [git]}}\nclients:\n  \"\": p", mistake: `5: "" in clients is an empty pattern`},
		{name: "a rule for the others", src: "profiles: {p: {servers: [git]}, q: {servers: [git]}}\nclients:\n  \"c*\": p\n  \"*\": q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse("goblin.yaml", []byte(servers+c.src), env)
			if c.mistake != "" {
				require.ErrorContains(t, err, "goblin.yaml:"+c.mistake)
				return
			}
			require.NoError(t, err)
			var told []string
			for _, w := range cfg.Warnings {
				told = append(told, w.String())
			}
			want := []string(nil)
			if c.warning != "" {
				want = []string{"goblin.yaml:" + c.warning}
			}
			require.Equal(t, want, told)
		})
	}
}

func TestAnOverrideOfAProfileWithAnUnsetVariableConcernsItAlone(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "goblin.yaml", `
servers:
  git: {command: c}
  docs: {command: c}
profiles:
  p:
    overrides:
      git:
        tools:
          "push*": {arguments: {repo: "${REPO}", branch: main}}
          pull: {title: "Pull ${NOBODY} ${NOBODY}"}
          log: {name: "${BREAK}"}
          plain: {title: Plain}
          gone: {title: "${GONE}"}
          'a\b': {title: "${ODD}"}
        prompts:
          ask: {arguments: {who: ["${WHO}"]}}
        resources:
          "x:1": {title: "The ${TITLE}", description: As it is}
          "x:2": {title: Two}
    tools: {deny: [git/gone]}
  q: {overrides: {git: {tools: {pull: {title: "${TOKEN}"}}}}}
`)
	var told []string
	for _, w := range cfg.Warnings {
		told = append(told, w.String())
	}
	const until = ` (until then clients of profile "p" do not see `
	require.Equal(t, []string{
		`goblin.yaml:10: ${REPO} is not set, but "repo" in overrides.git.tools.push*.arguments of profile "p" needs it; set it or write ${REPO:-default}` + until + `tool "push*" of server "git")`,
		`goblin.yaml:11: ${NOBODY} is not set, but "title" in overrides.git.tools.pull of profile "p" needs it; set it or write ${NOBODY:-default}` + until + `tool "pull" of server "git")`,
		`goblin.yaml:12: "name" in overrides.git.tools.log of profile "p" is not a valid tool name; use 1 to 128 letters, digits, _ and -` + until + `tool "log" of server "git")`,
		`goblin.yaml:14: ${GONE} is not set, but "title" in overrides.git.tools.gone of profile "p" needs it; set it or write ${GONE:-default}` + until + `tool "gone" of server "git")`,
		`goblin.yaml:15: ${ODD} is not set, but "title" in overrides.git.tools.a\b of profile "p" needs it; set it or write ${ODD:-default}` + until + `tool "a\\b" of server "git")`,
		`goblin.yaml:17: ${WHO} is not set, but "who[0]" in overrides.git.prompts.ask.arguments of profile "p" needs it; set it or write ${WHO:-default}` + until + `prompt "ask" of server "git")`,
		`goblin.yaml:19: ${TITLE} is not set, but "title" in overrides.git.resources.x:1 of profile "p" needs it; set it or write ${TITLE:-default} (until then clients of profile "p" see resource "x:1" of server "git" without the override)`,
	}, told)
	for _, s := range cfg.Servers {
		require.Empty(t, s.Problem, s.Name)
	}
	p, _ := cfg.Profile("p")
	for name, seen := range map[string]bool{"git/push*": false, "git/pusher": true, "docs/push*": true, "git/pull": false, "docs/pull": true, "git/log": false, "git/plain": true, "git/gone": false, `git/a\b`: false} {
		server, tool, _ := strings.Cut(name, "/")
		require.Equal(t, seen, p.Tools.MatchOriginal(server, tool), name)
	}
	require.False(t, p.Prompts.MatchOriginal("git", "ask"))
	require.Contains(t, p.Pending, config.OverrideTarget{Profile: "p", Server: "git", Kind: "tools", Name: "pull"})
	require.NotContains(t, p.Pending, config.OverrideTarget{Profile: "p", Server: "git", Kind: "tools", Name: "gone"}, "hidden anyway")
	require.True(t, p.Resources.IsEmpty())
	require.Nil(t, p.Overrides["git"].Resources["x:1"])
	require.Equal(t, "Two", *p.Overrides["git"].Resources["x:2"].Title)
	require.Equal(t, "Plain", *p.Overrides["git"].Tools["plain"].Title)
	q, _ := cfg.Profile("q")
	require.True(t, q.Tools.MatchOriginal("git", "pull"))
	require.Equal(t, "s3cr3t", *q.Overrides["git"].Tools["pull"].Title)

	// A mistake without a variable is reported for the file.
	_, err := config.Parse("goblin.yaml", []byte("servers: {git: {command: c}}\nprofiles:\n  p: {overrides: {git: {tools: {log: {name: \"a b\"}}}}}"), env)
	require.ErrorContains(t, err, "goblin.yaml:3: ")
	_, err = config.Parse("goblin.yaml", []byte("servers: {git: {command: c}}\nprofiles:\n  p: {tools: {deny: [\"${REPO}\"]}}"), env)
	require.ErrorContains(t, err, "goblin.yaml:3: ${REPO} is not set", "would deny less than intended")
}

func TestProfilesAreTheSameWhileClientsSeeTheSame(t *testing.T) {
	t.Parallel()
	const text = `
servers: {a: {command: x, tags: [t], overrides: {tools: {b: {name: c}}}}}
profiles: {p: {servers: [a]}}
clients: {one: p}
gateway: {meta_tools: auto, meta_tools_above: 50, page_size: 100}
`
	was := parse(t, "goblin.yaml", text)
	for _, tt := range []struct {
		from, to string
		same     bool
	}{
		{"command: x", "command: y", true},
		{"page_size: 100", "page_size: 200", true},
		{"servers: [a]", "servers: []", false},
		{"{one: p}", "{two: p}", false},
		{"tags: [t]", "tags: [u]", false},
		{"name: c", "name: d", false},
		{"meta_tools: auto", "meta_tools: true", false},
		{"above: 50", "above: 60", false},
		{"{a: {command", "{b: {command", false},
	} {
		require.Contains(t, text, tt.from)
		is := parse(t, "goblin.yaml", strings.Replace(text, tt.from, tt.to, 1))
		require.Equal(t, tt.same, is.ProfilesEqual(was), tt.to)
	}
}
