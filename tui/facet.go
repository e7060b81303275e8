package tui

func newFacet(a *app, field, title string) dialog { return newEntry(a, title, "", nil) }
