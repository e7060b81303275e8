package uicontext

import "goblin/registry/report"

// ConfigFile edits the config's file, which is on the terminal's machine.
type ConfigFile interface {
	// OpenConfig returns the path of the config and the line of a server's entry, or 1.
	// reload applies the file at once and returns the changes since OpenConfig. If the file
	// is invalid, the registry has its mistakes. An error says what to do instead.
	OpenConfig(server string) (path string, line int, reload func() report.Reload, err error)
}
