package tui

func newHelp(a *app) dialog { return newEntry(a, "Help", "", nil) }
