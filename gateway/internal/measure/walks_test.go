//go:build systems

package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A request that visits ever more packages, or goes back and forth between them, is one
// that nobody can follow any more.
func TestWalksOfTwoRequestsAreShort(t *testing.T) {
	compiled, err := exports(root)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, walks(&out, root, compiled))
	short := []struct{ packages, turns int }{{8, 0}, {10, 6}} // a read; a call whose server asks the client
	found := regexp.MustCompile(`: (\d+) packages, (\d+) turns back`).FindAllStringSubmatch(out.String(), -1)
	require.Len(t, found, len(short), out.String())
	for i, most := range short {
		packages, _ := strconv.Atoi(found[i][1])
		turns, _ := strconv.Atoi(found[i][2])
		require.True(t, packages <= most.packages && turns <= most.turns,
			"at most %d packages and %d turns back:%s", most.packages, most.turns, out.String())
	}
}
