package command

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

// twoServers returns the tools of two servers. A profile renames one of them.
func twoServers(profile bool) *nameIndex {
	x := &nameIndex{noun: "tool"}
	for _, t := range [][3]string{{"clock", "time_in", "clock_time_in"}, {"clock", "zones", "clock_zones"}, {"atlas", "zones", "atlas_zones"}, {"atlas", "place", "atlas_place"}} {
		x.entry(t[0], t[1]).listed = t[2]
	}
	x.entry("gone", "old_thing") // disabled and not listed
	if profile {
		x.entry("clock", "time_in").inProfile = "clock_now"
		x.entry("clock", "zones").inProfile = "clock_zones"
	}
	return x
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
		found, err := twoServers(c.profile).find(c.names...)
		require.NoError(t, err, c.names)
		require.Equal(t, c.want, fmt.Sprint(entryNames(found)), "%v, profile %v", c.names, c.profile)
	}
}

func TestWhatClientsOfTheProfileSeeGoesFirst(t *testing.T) {
	t.Parallel()
	x := &nameIndex{noun: "tool"}
	x.entry("a", "one").listed = "a_one"
	x.entry("b", "a_one").inProfile = "a_one"
	found, err := x.find("a_one")
	require.NoError(t, err)
	require.Equal(t, []*namedEntry{{server: "b", own: "a_one", inProfile: "a_one"}}, found)
}

func TestNamesThatMeanNothingAreToldWithWhatIsNear(t *testing.T) {
	t.Parallel()
	many := twoServers(false)
	for i := range 20 {
		many.entry(fmt.Sprint("s", i), "same").listed = fmt.Sprintf("s%d_same", i)
	}
	for _, c := range []struct {
		of   *nameIndex
		name string
		code int
		want string
	}{
		{twoServers(false), "clock_tme_in", cli.CodeNotFound, `no tool "clock_tme_in"; did you mean "clock_time_in"?`},
		{twoServers(true), "clock_nwo", cli.CodeNotFound, `no tool "clock_nwo"; did you mean "clock_now"`},
		{twoServers(false), "tme_in", cli.CodeNotFound, `no tool "tme_in"; did you mean "clock_time_in"?`},
		{twoServers(false), "plaec", cli.CodeNotFound, `no tool "plaec"; did you mean "atlas_place"?`},
		{twoServers(false), "clock_now", cli.CodeNotFound, `no tool "clock_now"`},
		{twoServers(false), "", cli.CodeNotFound, `no tool ""`},
		{&nameIndex{noun: "prompt"}, "x", cli.CodeNotFound, `no prompt "x"; no server lists any`},
		{twoServers(false), "zones", cli.CodeFailure, `2 servers have a tool "zones"; use "clock/zones" or "atlas/zones"`},
		{many, "same", cli.CodeFailure, `20 servers have a tool "same"; use "s0/same" or "s1/same" or "s2/same" or "s3/same" or "s4/same" or "s5/same" or "s6/same" or "s7/same", or one of 12 more`},
	} {
		found, err := c.of.find("clock/time_in", c.name)
		if c.name == "x" {
			found, err = c.of.find(c.name)
		}
		require.Empty(t, found)
		require.ErrorContains(t, err, c.want)
		require.Equal(t, c.code, cli.ExitCode(err), c.name)
	}
}
