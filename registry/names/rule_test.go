package names_test

import (
	"strings"
	"testing"

	"goblin/registry/names"

	"github.com/stretchr/testify/require"
)

func TestWhatLooksLikeATail(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"x_0123abcd": true, "_0123abcd": true, "x_0123abcd_0123abcd": true,
		"0123abcd": false, "x-0123abcd": false, "x_0123abcg": false, "x_0123ABCD": false, "x_0123abc": false, "": false,
	} {
		require.Equal(t, want, names.HasHashSuffix(name, '_'), name)
	}
}

func TestShortTailsOfFlatIDsAreForWhatIsShown(t *testing.T) {
	t.Parallel()
	rule := names.Rules([]string{"a", "a_b", "a_b_c"}, names.DefaultNameLen)["a"]
	for _, c := range []struct {
		original string
		short    bool
	}{
		{"x", true},      // of no other server
		{"b_x", true},    // may belong to one other server
		{"b_c_x", true},  // may belong to several, but is shown completely
		{"b_c:x", false}, // not shown completely
		{"_b_c_x", false},
	} {
		short, long := names.HashSuffixes(c.original, '~')
		require.Equal(t, map[bool]string{true: short, false: long}[c.short], rule.FlatSuffix(c.original, names.Flatten(c.original)), c.original)
	}
}

func TestNamesThatAreTooLongForAnyConfigHaveNoRules(t *testing.T) {
	t.Parallel()
	s := names.NewRuleSet([]string{"a"})
	require.Len(t, s.ForName("a_"+strings.Repeat("x", names.MaxNameLen-2)), 2)
	require.Nil(t, s.ForName("a_"+strings.Repeat("x", names.MaxNameLen-1)), "otherwise they would be cached for every requested length")
}
