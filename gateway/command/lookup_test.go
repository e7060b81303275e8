package command_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/command"
)

// book is of two servers, of which one is renamed in part for the clients of a profile.
func book(profile bool) *command.NameIndex {
	b := command.NewNameIndex("tool")
	b.Add("clock", "time_in", "clock_time_in")
	b.Add("clock", "zones", "clock_zones")
	b.Add("atlas", "zones", "atlas_zones")
	b.Add("atlas", "place", "atlas_place")
	b.Add("gone", "old_thing", "") // it is off, and not listed
	if profile {
		b.See("clock", "time_in", "clock_now")
		b.See("clock", "zones", "clock_zones")
	}
	b.Add("clock", "time_in", "") // it is off, too
	return b
}

func TestNamesMeanThings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile bool
		names   []string
		want    string
	}{
		{false, []string{"clock_time_in"}, "[clock_time_in]"},
		{false, []string{"clock/time_in"}, "[clock_time_in]"},
		{false, []string{"time_in"}, "[clock_time_in]"},
		{false, []string{"time_in", "clock_*", "clock/time_in"}, "[clock_time_in clock_zones]"},
		{false, []string{"*/zones"}, "[clock_zones atlas_zones]"},
		{false, []string{"old_thing"}, "[gone/old_thing]"},
		{false, []string{"gone/*"}, "[gone/old_thing]"},
		{true, []string{"clock_now"}, "[clock_now]"},
		{true, []string{"clock_n*"}, "[clock_now]"},
		{true, []string{"clock_time_in"}, "[clock_now]"},
		{true, []string{"time_in"}, "[clock_now]"},
		{true, []string{"zones"}, "[clock_zones]"}, // the profile does not have the other server
		{true, []string{"atlas_place"}, "[atlas_place]"},
		{true, []string{"place"}, "[atlas_place]"},
	} {
		found, err := book(c.profile).Find(c.names...)
		require.NoError(t, err, c.names)
		require.Equal(t, c.want, fmt.Sprint(command.Names(found)), "%v, profile %v", c.names, c.profile)
	}
}

func TestWhatClientsOfTheProfileSeeGoesFirst(t *testing.T) {
	t.Parallel()
	b := command.NewNameIndex("tool")
	b.Add("a", "one", "a_one")
	b.Add("b", "a_one", "b_a_one")
	b.See("b", "a_one", "a_one")
	found, err := b.Find("a_one")
	require.NoError(t, err)
	require.Equal(t, []command.Thing{{Server: "b", Name: "a_one", Listed: "b_a_one", Seen: "a_one"}}, found)
}

func TestNamesThatMeanNothingAreToldWithWhatIsNear(t *testing.T) {
	t.Parallel()
	many := book(false)
	for i := range 20 {
		many.Add(fmt.Sprint("s", i), "same", fmt.Sprintf("s%d_same", i))
	}
	for _, c := range []struct {
		of   *command.NameIndex
		name string
		code int
		want string
	}{
		{book(false), "clock_tme_in", cli.CodeNotFound, `no tool is called "clock_tme_in"; did you mean "clock_time_in"?`},
		{book(true), "clock_nwo", cli.CodeNotFound, `no tool is called "clock_nwo"; did you mean "clock_now"`},
		{book(false), "tme_in", cli.CodeNotFound, `no tool is called "tme_in"; did you mean "clock_time_in"?`},
		{book(false), "plaec", cli.CodeNotFound, `no tool is called "plaec"; did you mean "atlas_place"?`},
		{book(false), "clock_now", cli.CodeNotFound, `no tool is called "clock_now"`},
		{book(false), "", cli.CodeNotFound, `no tool is called ""`},
		{command.NewNameIndex("prompt"), "x", cli.CodeNotFound, `no prompt is called "x"; no server lists any`},
		{book(false), "zones", cli.CodeFailure, `2 servers have a tool "zones"; say "clock/zones" or "atlas/zones"`},
		{many, "same", cli.CodeFailure, `20 servers have a tool "same"; say "s0/same" or "s1/same" or "s2/same" or "s3/same" or "s4/same" or "s5/same" or "s6/same" or "s7/same", or one of 12 more`},
	} {
		found, err := c.of.Find("clock/time_in", c.name)
		if c.name == "x" {
			found, err = c.of.Find(c.name)
		}
		require.Empty(t, found)
		require.ErrorContains(t, err, c.want)
		require.Equal(t, c.code, cli.ExitCode(err), c.name)
	}
}
