package tui

func newWatched(a *app) dialog { return newEntry(a, "Subscriptions", "", nil) }
