package registry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilesOfASkillAreInItsFolder(t *testing.T) {
	for _, c := range []struct{ uri, file, wrong string }{
		{"skill://f/SKILL.md", `"skill://f/a"`, ""},
		{"skill://f/SKILL.md", `"skill://f/a/..b"`, ""},
		{"skill://f/SKILL.md", `"skill://f"`, `file "skill://f" is outside of its folder`},
		{"skill://f/SKILL.md", `"skill://fa"`, `file "skill://fa" is outside of its folder`},
		{"skill://f/SKILL.md", `"skill://g/a"`, `file "skill://g/a" is outside of its folder`},
		{"skill://f/SKILL.md", `"skill://f/../g/a"`, `file "skill://f/../g/a" is outside of its folder`},
		{"skill://f/SKILL.md", `"skill://f/%2e%2E/g/a"`, `file "skill://f/%2e%2E/g/a" is outside of its folder`},
		{"skill://f/SKILL.md", `7`, `file "" is outside of its folder`},
		{"skill://f/../g/SKILL.md", `"skill://f/../g/a"`, "uri leaves its folder"},
		{"skill://f/README.md", `"skill://f/a"`, "uri does not end in /SKILL.md"},
		{"/SKILL.md", `"/a"`, "uri does not end in /SKILL.md"},
	} {
		err := CheckSkill(fmt.Appendf(nil, `{"uri":%q,"resources":[{"uri":%s}]}`, c.uri, c.file))
		if c.wrong == "" {
			require.NoError(t, err, c.file)
		} else {
			require.EqualError(t, err, c.wrong)
		}
	}
	long := "skill://f/" + strings.Repeat("a", MaxURI)
	require.Error(t, CheckSkill(fmt.Appendf(nil, `{"uri":"skill://f/SKILL.md","resources":[{"uri":%q}]}`, long)))
}

// A server serves unlisted skills and their folders, but no unapproved ones.
func TestNothingOfAWithheldSkillIsReached(t *testing.T) {
	r := New(Options{Servers: []string{"a"}})
	r.ServesSkills("a", true)
	of := func(name string) UnapprovedTool { return UnapprovedTool{Server: "a", Name: name, Hidden: true} }
	r.SetUnapproved("a", []UnapprovedTool{of("skill://f/SKILL.md"), {Server: "a", Name: "skill://told/SKILL.md"}})
	for _, uri := range []string{"skill://f", "skill://f/", "skill://f/SKILL.md", "skill://f/a/b"} {
		require.Equal(t, "RESOURCE_NOT_FOUND: Resource not found: mcp://a/"+uri, outcome(r.Load().ResolveSkill("mcp://a/"+uri)))
	}
	for _, uri := range []string{"skill://fa", "skill://fa/SKILL.md", "skill://told", "skill://told/SKILL.md"} {
		require.Equal(t, "a "+uri+" unlisted", outcome(r.Load().ResolveSkill("mcp://a/"+uri)))
	}
}
