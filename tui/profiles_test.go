package tui

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEntriesAreTurnedOffAndOnFromTheirList(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 / forecast enter x")
	require.Contains(t, r.backend.acts, `switch "" false weather_forecast`)
	require.Contains(t, r.screen(), "Disabled weather_forecast for all clients")
	require.Contains(t, r.line("│>"), "disabled")
	require.Contains(t, r.screen(), "said by you (by you)")
	r.keys("x")
	require.Contains(t, r.backend.acts, `switch "" true weather_forecast`)
	require.NotContains(t, r.line("│>"), "disabled")

	r.keys("4 / day-0 enter g space space x")
	require.Contains(t, r.screen(), "Disable 2 resources?")
	require.Contains(t, r.screen(), "For all clients:")
	before := len(r.backend.acts)
	require.NotContains(t, r.keys("n").screen(), "Disabled")
	require.Len(t, r.backend.acts, before, "nothing changes without a yes")
	require.Contains(t, r.keys("x y").screen(), "Disabled 2 resources for all clients")
	require.Contains(t, r.keys("2 esc * x").screen(), "Disable 4 tools?", "the disabled and the other three")
	r.keys("n esc")
	r.keys("3 x")
	require.Contains(t, r.screen(), "Disabled github/review for all clients")

	r.backend.fails = errors.New("the disk is full")
	r.keys("2 x")
	require.Contains(t, r.screen(), "disable: the disk is full")
}

func TestTheScreenLooksAtWhatClientsOfAProfileSee(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.backend.lacks["coding weather_forecast"] = "profile"
	r.keys("2 V")
	require.Regexp(t, "tools +prompts +resources", r.line("profile  "))
	require.Regexp(t, `\(no profile\) +4 +3 +2 `, r.screen())
	require.Regexp(t, `coding +1 of 4 +0 of 3 +0 of 2 `, r.screen())
	r.keys("j enter")
	require.Contains(t, r.screen(), "as seen by coding")
	require.Contains(t, r.line("weather_forecast "), "hidden")
	r.keys("/ forecast enter x")
	require.Contains(t, r.screen(), "said by profile")
	require.NotContains(t, r.backend.acts, `switch "coding" false weather_forecast`)
	r.keys("esc g / delete enter x")
	require.Contains(t, r.backend.acts, `switch "coding" false github_delete_repo`)
	require.Contains(t, r.screen(), "Disabled github_delete_repo for clients of coding")
	r.keys("V k enter")
	require.NotContains(t, r.screen(), "as seen by coding")
	require.NotContains(t, r.line("github_delete_repo"), " off")
}

func TestWhatIsFoundInsteadOfListedIsMarkedAndTurnedOff(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.backend.lacks["coding weather_forecast"] = "search"
	r.keys("2")
	require.NotContains(t, r.line("weather_forecast "), "search only", "other clients have it in their lists")
	r.keys("V j enter")
	require.Contains(t, r.line("weather_forecast "), "search only")
	require.NotContains(t, r.line("github_delete_repo"), "search only")
	r.keys("/ forecast enter")
	require.Contains(t, r.line("listed  "), "said by search")
	require.NotContains(t, r.screen(), "(search only)", "it is not disabled")
	r.keys("x")
	require.Contains(t, r.backend.acts, `switch "coding" false weather_forecast`, "it exists and can be disabled")
	require.Contains(t, r.line("│>"), "disabled")
}

func TestADetailTellsUnderWhichNameClientsOfAProfileKnowAnEntry(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 / day-0 enter")
	require.NotContains(t, r.screen(), "listed as")
	r.keys("V j enter")
	require.Regexp(t, `listed as +\w+_\w*day-0`, r.screen())
	r.keys("V k enter")
	require.NotContains(t, r.screen(), "listed as")
}

func TestAProfileCountsWhatItsClientsSee(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	for _, name := range []string{"github_create_issue", "github_delete_repo", "github_search"} {
		r.backend.lacks["coding "+name] = "profile"
	}
	r.keys("2 V j enter")
	require.Contains(t, r.screen(), "Tools 1 of 4")
	require.Contains(t, r.screen(), "github_search")
	require.Contains(t, r.screen(), "v hide dim rows")
	r.keys("v")
	require.Contains(t, r.screen(), "v show dim rows")
	require.NotContains(t, r.screen(), "github_search")
	require.Contains(t, r.screen(), "weather_forecast")
	r.keys("v")
	require.Contains(t, r.screen(), "github_search")
}
