package savedcall_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/savedcall"
)

// TestReferenceIsComplete parses the examples of the reference, and looks for each key.
func TestReferenceIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(text, -1)
	require.Len(t, blocks, 4)
	vars := variables("first", `"ada/teapot"`)
	for _, b := range blocks {
		call, err := savedcall.Parse("README.md", b[1])
		require.NoError(t, err, "%s", b[1])
		_, err = call.Resolve(vars)
		require.NoError(t, err)
	}
	_, err = savedcall.Parse("a.yaml", []byte("unknown: x\n"))
	require.Error(t, err)
	_, known, _ := strings.Cut(strings.SplitN(err.Error(), "\n", 2)[0], "known: ")
	for key := range strings.SplitSeq(known, ", ") {
		require.Contains(t, string(text), "`"+key+"`", "the table of keys")
	}
}
