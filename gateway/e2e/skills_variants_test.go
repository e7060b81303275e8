//go:build e2e

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Goblin's own tools cover skills once there are some, and pins apply to those too.
func TestSkillsAreFoundAndPinned(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["pin"], w.Gateway["meta_tools"] = "strict", true
	b := w.Backend("one", e2e.Obj{"resources": []e2e.Obj{}, "skills": []e2e.Obj{skill("skill://git", "git"), skill("skill://pdf", "pdf")}})
	c := w.Bridged()
	require.Contains(t, c.Names("tools"), "search_skills", "in the first list")
	cards := func(tool string, args e2e.Obj) (uris []string) {
		result := c.Ok("tools/call", e2e.Obj{"name": tool, "arguments": args})
		for _, card := range e2e.Each(result, "structuredContent", "skills") {
			uris = append(uris, e2e.Str(card, "uri")+" "+e2e.Str(card, "name")+" "+e2e.Str(card, "description"))
		}
		return uris
	}
	require.Equal(t, []string{"skill://one/git/SKILL.md git About git", "skill://one/pdf/SKILL.md pdf About pdf"}, cards("catalog_skills", e2e.Obj{}))
	require.Equal(t, []string{"skill://one/pdf/SKILL.md pdf About pdf"}, cards("search_skills", e2e.Obj{"query": "pdf"}))

	changed := skill("skill://pdf", "pdf", "more.md")
	b.Do(e2e.Do("set", e2e.Obj{"kind": "skills", "entries": []e2e.Obj{skill("skill://git", "git"), changed}}))
	b.ListChanged("resources")
	e2e.Eventually(t, "the changed skill is hidden", func() bool { uris, _, _ := listedSkills(t, c); return len(uris) == 1 })
	require.Equal(t, -32602, c.Fault("skills/get", e2e.Obj{"uri": "skill://one/pdf/SKILL.md"}).Code)
	require.Contains(t, w.Succeeds("approve"), `"skill://pdf/SKILL.md" (changed, hidden)`)
	w.Succeeds("approve", "one")
	e2e.Eventually(t, "the approved skill", func() bool { uris, _, _ := listedSkills(t, c); return len(uris) == 2 })
	require.Equal(t, "skill://one/pdf/more.md", e2e.Str(c.Ok("skills/get", e2e.Obj{"uri": "skill://one/pdf/SKILL.md"}), "skill", "resources", 1, "uri"))
}

func TestClientsHearOfToolsThatComeWithTheFirstSkillAndGoWithTheLast(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Gateway["pin"] = "strict"
	b := w.Backend("one", e2e.Obj{"resources": []e2e.Obj{}, "skills": []e2e.Obj{skill("skill://git", "git")}})
	c := w.Bridged()
	require.Contains(t, c.Names("tools"), "search_skills")
	c.Settle()
	b.Do(e2e.Do("set", e2e.Obj{"kind": "skills", "entries": []e2e.Obj{skill("skill://git", "git", "more.md")}}))
	b.ListChanged("resources")
	c.WaitNote("notifications/tools/list_changed", nil)
	require.NotContains(t, c.Names("tools"), "search_skills", "the skill is hidden")
	c.Settle()
	w.Succeeds("approve", "one")
	c.WaitNote("notifications/tools/list_changed", nil)
	require.Contains(t, c.Names("tools"), "search_skills")
	c.Settle()
	b.Add("resources", e2e.Resource("x://y"))
	b.ListChanged("resources")
	c.WaitNote("notifications/resources/list_changed", nil)
	require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
}
