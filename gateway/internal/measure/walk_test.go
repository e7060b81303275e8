package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLooksAreNoTurns(t *testing.T) {
	for walk, want := range map[string]string{
		"a b c":           "a b c",
		"a a b b c c":     "a b c",
		"a b a b a c":     "a b a c",
		"a b c b a":       "a b c b a",
		"a b c a c d":     "a b c d",
		"a b a b c b c d": "a b c d",
	} {
		require.Equal(t, want, strings.Join(withoutLooks(strings.Fields(walk)), " "), walk)
	}
}
