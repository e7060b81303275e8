package uicontext

import (
	"context"

	"goblin/registry/report"
)

// ConfigFile edits the config's file, which is on the terminal's machine.
type ConfigFile interface {
	// OpenConfig returns the path of the config and the line of a server's entry, or 1.
	// reload applies the file at once and returns the changes since OpenConfig. If the file
	// is invalid, the registry has its mistakes. An error explains what to do instead.
	OpenConfig(server string) (path string, line int, reload func() report.Reload, err error)
	// ServerEntry returns a server's entry. If the file is invalid, it fails and the registry
	// has its mistakes.
	ServerEntry(server string) (*report.ServerEntry, error)
	// PreviewEdit returns the text of a change. TryEdit starts the server once with it and
	// describes its problem, or returns "". SaveEdit writes and applies it. They fail with a
	// [report.FileChangedError] if the file differs from the entry's.
	PreviewEdit(edit report.ServerEdit) (*report.EditPreview, error)
	TryEdit(ctx context.Context, edit report.ServerEdit) (lacks string, err error)
	SaveEdit(edit report.ServerEdit) (report.Reload, error)
}
