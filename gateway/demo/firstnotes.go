package demo

import "time"

// firstNotes is the notebook as a newcomer finds it: plain text, Markdown and
// JSON, one note without a description.
func firstNotes() []note {
	at := time.Date(2026, time.March, 20, 9, 30, 0, 0, time.UTC)
	return []note{
		{
			slug: "welcome", title: "Welcome", mime: "text/markdown", changed: at,
			description: "Start here: what this notebook can do",
			text: `# Welcome to the notebook

You are reading a **resource** of the demo server *notes*. Things to try:

- Read another note: every one is a resource ` + "`note:///<slug>`" + `.
- Call the tool ` + "`add_note`" + ` and watch the resource list grow.
- Subscribe to this note, then call ` + "`edit_note`" + ` with the slug ` + "`welcome`" + `.
- Ask for the prompt ` + "`summarize_notes`" + `, which brings all notes along.

Nothing is saved. When the server stops, the notebook is as you found it.
`,
		},
		{
			slug: "shopping", title: "Shopping list", mime: "text/plain", changed: at.Add(26 * time.Hour),
			description: "For the cave, before Friday",
			text: `lantern oil
milk
oats
mushrooms (the brown ones, not the singing ones)
a new broom
`,
		},
		{
			slug: "ideas", title: "Ideas for the workshop", mime: "text/markdown", changed: at.Add(51 * time.Hour),
			description: "A list of half-built things",
			text: `# Ideas for the workshop

1. A kettle that whistles in tune
2. A map that folds *itself*
3. A door bell that only rings for friends

| idea     | difficulty | fun   |
|----------|-----------:|-------|
| kettle   |          3 | high  |
| map      |          8 | higher|
| bell     |          5 | high  |

> Whatever can be taken apart can be put together differently.
`,
		},
		{
			slug: "goblin-facts", title: "Facts about goblins", mime: "application/json", changed: at.Add(75 * time.Hour),
			description: "Carefully collected, poorly checked",
			text: `{
  "favourite_food": ["mushrooms", "toast", "other people's toast"],
  "average_height_cm": 87.5,
  "can_keep_secrets": false,
  "known_languages": {"spoken": 4, "whistled": 2},
  "hoard": {"spoons": 1024, "buttons": 65536, "left_socks": 9007199254740993}
}
`,
		},
		{
			slug: "lighthouse", title: "Letter from the lighthouse", mime: "text/plain", changed: at.Add(99 * time.Hour),
			description: "From a cousin by the sea",
			text: `Dear all,

the new lamp turns once in twelve seconds and the gulls have stopped
complaining. Three ships came by this week: one with apples, one with
books – für euch! – and one that only wanted to know the time.

Come when the heather is in bloom. 🌿

Yours, Brindle
`,
		},
		{
			slug: "haiku", title: "Haiku", mime: "text/plain", changed: at.Add(120 * time.Hour),
			text: "Rain on the tin roof –\nthe kettle and I agree\nto stay in today.\n",
		},
	}
}
