package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACallAgainstTheImportsIsATurnBack(t *testing.T) {
	all := map[string]built{
		"goblin/gateway":            {Imports: []string{"goblin/gateway/inflight", "goblin/gateway/downstream"}},
		"goblin/gateway/inflight":   {Imports: []string{"goblin/gateway/upstream"}},
		"goblin/gateway/upstream":   {Imports: []string{"goblin/gateway/upstream/x"}},
		"goblin/gateway/downstream": {},
	}
	for walk, want := range map[string]string{
		"gateway>gateway/inflight":                                                   "2 packages, 0 turns back\n  gateway > call\n",
		"gateway>gateway/inflight gateway/inflight>gateway":                          "2 packages, 1 turns back\n  gateway > call, gateway < call\n",
		"gateway>gateway/inflight gateway/inflight>gateway gateway/inflight>gateway": "2 packages, 2 turns back\n  gateway > call, gateway < call\n",
		"gateway/downstream>gateway":                                                 "2 packages, 0 turns back\n  downstream > gateway\n",
		"gateway/upstream>gateway":                                                   "2 packages, 0 turns back\n  upstream > gateway\n",
		"gateway/upstream>gateway/upstream/x":                                        "1 packages, 0 turns back\n  upstream > upstream/x\n",
	} {
		var steps []step
		for _, one := range strings.Fields(walk) {
			from, to, _ := strings.Cut(one, ">")
			steps = append(steps, step{from, to})
		}
		var out strings.Builder
		show(&out, "walk", steps, all)
		require.Equal(t, "\nwalk: "+want, out.String(), walk)
	}
}
