package tui

func newPalette(a *app) dialog { return newEntry(a, "Command", "", nil) }
