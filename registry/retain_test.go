package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRetainDropsWhatIsNotKept(t *testing.T) {
	t.Parallel()
	for name, flat := range map[string]bool{"uri": false, "flat": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := catalog(t, Options{Flat: flat}, `
				a tool keep
				a tool drop
				a prompt keep
				a prompt drop
				a resource file:///keep
				a resource file:///drop
				a template file:///{keep}
				a template file:///keep/{id}
				a template file:///drop/{drop}
				a skill skill://keep/SKILL.md
				a skill skill://drop/SKILL.md
				b tool drop
				b resource file:///drop`)
			before := r.Load()
			want, err := r.ResolveResource("file:///keep/1")
			require.NoError(t, err)
			r.Retain("a", func(_ Kind, name string) bool { return !strings.Contains(name, "drop") })
			r.Retain("none", func(Kind, string) bool { return false })
			for k := range Kind(Kinds) {
				require.NotEqual(t, before.Version(k), r.Load().Version(k), k)
				var left []string
				for e := range r.Load().Server("a", k) {
					left = append(left, e.Name)
					was := before.table("a").runs[k].name(hashKey(e.Name), e.Name)
					require.Equal(t, was.Listed, e.Listed)
					require.Equal(t, string(was.JSON()), string(e.JSON()))
				}
				require.NotEmpty(t, left)
				require.NotContains(t, strings.Join(left, " "), "drop")
			}
			require.Len(t, before.visible("b", Resource), r.Load().ServerCount("b", Resource))
			got, err := r.ResolveTool("drop") // there is only one owner
			require.NoError(t, err)
			require.Equal(t, "b", got.Server)
			_, err = r.ResolveTool("a_drop")
			require.Error(t, err)
			still, err := r.ResolveResource("file:///keep/1")
			require.NoError(t, err)
			require.Equal(t, want.Template.Name, still.Template.Name)
			same := r.Load()
			r.Retain("a", func(Kind, string) bool { return true })
			require.Same(t, same, r.Load())
		})
	}
}
