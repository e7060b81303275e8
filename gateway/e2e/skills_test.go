package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// skill is an entry of skills/list (SEP-2640), with a number that decoders lose.
func skill(folder, name string, files ...string) e2e.Obj {
	var all []e2e.Obj
	for _, file := range append([]string{"SKILL.md"}, files...) {
		all = append(all, e2e.Obj{"uri": folder + "/" + file, "digest": "sha256:" + fmt.Sprintf("%064x", len(file)), "size": len(file)})
	}
	return e2e.Obj{
		"uri": folder + "/SKILL.md", "resources": all,
		"frontmatter": e2e.Obj{"name": name, "description": "About " + name, "n": json.RawMessage("1.50"), "uri": "skill://text"},
	}
}

// listedSkills returns the URIs and entries of all pages.
func listedSkills(t *testing.T, c *e2e.Client) (uris []string, entries []json.RawMessage, last json.RawMessage) {
	t.Helper()
	params := e2e.Obj{}
	for {
		last = c.Ok("skills/list", params)
		for _, e := range e2e.Each(last, "skills") {
			uris, entries = append(uris, e2e.Str(e, "uri")), append(entries, e)
		}
		next := e2e.At(last, "nextCursor")
		if next == nil {
			return uris, entries, last
		}
		params = e2e.Obj{"cursor": next}
	}
}

func TestSkillsOfAllServersAreServed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["namespace"], w.Gateway["page_size"] = "flat", 2
	one := w.Backend("one", e2e.Obj{
		"resources": []e2e.Obj{}, "pagesize": 1, "hints": e2e.Obj{"ttlMs": 120000, "cacheScope": json.RawMessage(`"public"`)},
		"skills": []e2e.Obj{
			skill("skill://git", "git", "docs/A.md"), skill("skill://acme/refunds", "refunds"), skill("github://o/r/pdf", "pdf"), skill("skill://secret", "secret"),
			{"uri": "skill://up/../../etc/SKILL.md", "frontmatter": e2e.Obj{"name": "etc"}, "resources": "dynamic"},
			{"uri": "skill://x/%2e%2E/SKILL.md", "frontmatter": e2e.Obj{"name": "x"}, "resources": "dynamic"},
			{"uri": "skill://out/SKILL.md", "frontmatter": e2e.Obj{"name": "out"}, "resources": []e2e.Obj{{"uri": "file:///etc/passwd"}}},
		},
		"folders": e2e.Obj{"skill://git": []e2e.Obj{
			{"uri": "skill://git/SKILL.md", "name": "SKILL.md"},
			{"uri": "skill://git/docs", "name": "docs", "mimeType": "inode/directory"},
			{"uri": "skill://git/secret.md", "name": "secret.md"},
		}},
	}, e2e.Obj{"resources": e2e.Obj{"deny": []string{"skill://secret/*", "skill://git/secret.md"}}})
	two := w.Backend("two", e2e.Obj{"era": "modern", "resources": []e2e.Obj{}, "skills": []e2e.Obj{skill("skill://git", "git")}, "hints": e2e.Obj{"ttlMs": 60000}})
	w.Backend("none", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Served()
	modern := s.Stateless()
	modern.Caps = e2e.Obj{}
	e2e.Eventually(t, "the skills of both servers", func() bool { uris, _, _ := listedSkills(t, modern); return len(uris) == 4 })
	legacy := s.Client(false)

	found := modern.Ok("server/discover", e2e.Obj{})
	require.JSONEq(t, `{"directoryRead":true}`, string(e2e.At(found, "capabilities", "extensions", "io.modelcontextprotocol/skills")))
	for era, c := range map[string]*e2e.Client{"legacy": legacy, "modern": modern} {
		uris, entries, last := listedSkills(t, c)
		require.Equal(t, []string{
			"mcp://one/github://o/r/pdf/SKILL.md", "skill://one/acme/refunds/SKILL.md", "skill://one/git/SKILL.md", "skill://two/git/SKILL.md",
		}, uris, era)
		require.Equal(t, `"private"`, string(e2e.At(last, "cacheScope")))
		require.NotNil(t, e2e.At(last, "ttlMs"))
		require.JSONEq(t, `{"name":"git","description":"About git","n":1.50,"uri":"skill://text"}`, string(e2e.At(entries[2], "frontmatter")))
		require.Contains(t, string(entries[2]), "1.50")
		require.Equal(t, "skill://one/git/docs/A.md", e2e.Str(entries[2], "resources", 1, "uri"))
		require.Equal(t, "sha256:"+fmt.Sprintf("%064x", 9), e2e.Str(entries[2], "resources", 1, "digest"))
		require.Equal(t, "mcp://one/github://o/r/pdf/SKILL.md", e2e.Str(entries[0], "resources", 0, "uri"))
		for i, uri := range uris {
			require.JSONEq(t, string(entries[i]), string(e2e.At(c.Ok("skills/get", e2e.Obj{"uri": uri}), "skill")), uri)
			c.ReadText(uri)
		}
		// Other spellings, and a file that is not listed as a resource.
		require.Equal(t, "skill://one/git/SKILL.md", e2e.Str(c.Ok("skills/get", e2e.Obj{"uri": "mcp://one/skill://git/SKILL.md"}), "skill", "uri"))
		require.Equal(t, "skill://one/acme/refunds/SKILL.md", e2e.Str(c.Ok("skills/get", e2e.Obj{"uri": "skill://acme/refunds/SKILL.md"}), "skill", "uri"))
		require.Equal(t, "one skill://git/docs/A.md", c.ReadText("skill://one/git/docs/A.md"))
		require.Equal(t, "one skill://acme/refunds/SKILL.md", c.ReadText("skill://acme/refunds/SKILL.md"))
		require.Equal(t, "AMBIGUOUS", c.Fault("skills/get", e2e.Obj{"uri": "skill://git/SKILL.md"}).Kind())

		folder := c.Ok("resources/directory/read", e2e.Obj{"uri": "skill://one/git"})
		require.JSONEq(t, `[{"uri":"skill://one/git/SKILL.md","name":"SKILL.md"},{"uri":"skill://one/git/docs","name":"docs","mimeType":"inode/directory"}]`,
			string(e2e.At(folder, "resources")), "except entries that the config denies")

		for _, uri := range []string{
			"skill://nobody/SKILL.md", "skill://one/secret/SKILL.md", "skill://one/none/SKILL.md", "skill://one/git/../../x/SKILL.md", "skill://none/x/SKILL.md",
			"mcp://one/file:///etc/SKILL.md",
		} {
			require.Equal(t, -32602, c.Fault("skills/get", e2e.Obj{"uri": uri}).Code, "%s %s", era, uri)
			require.Equal(t, -32602, c.Fault("resources/directory/read", e2e.Obj{"uri": uri}).Code, "%s %s", era, uri)
		}
	}
	require.NotContains(t, one.Uris("skills/get"), "skill://secret/SKILL.md", "denied entries are not requested")
	for _, uri := range append(one.Uris("skills/get"), one.Uris("resources/directory/read")...) {
		require.NotContains(t, uri, "..")
	}
	require.Equal(t, 1, two.Count("skills/list"), "while it is fresh")

	two.Do(e2e.Do("crash"))
	uris, _, _ := listedSkills(t, modern)
	require.Contains(t, uris, "skill://one/git/SKILL.md", "one server down hides only its own")
}
