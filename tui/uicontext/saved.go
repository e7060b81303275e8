package uicontext

import (
	"context"
	"encoding/json"

	"goblin/registry/savedcall"
)

// SavedCalls are the saved calls of a folder and its runs. Names are relative to the
// folder, with slashes.
type SavedCalls interface {
	// SavedCalls reads the folder. Later changes are [registry.SavedCalls] of the registry.
	SavedCalls() (*savedcall.Folder, error)
	// StoredAnswer returns the answer stored beside a call, or nil.
	StoredAnswer(name string) ([]byte, error)
	// SaveCall writes a file and returns its path. Comments of the same call stay. Without
	// overwrite it fails with fs.ErrExist for an existing file.
	SaveCall(name string, c *savedcall.Call, overwrite bool) (where string, err error)
	StoreAnswer(name string, answer []byte) error
	// MoveSavedCall renames a call, or copies it with keep. It fails with fs.ErrExist for
	// an existing file.
	MoveSavedCall(from, to string, keep bool) error
	DeleteSavedCall(name string) error
	// RunSaved runs calls in this UI's session and reports each result to done, not
	// concurrently. set and captures win over the environment. The end of ctx skips the
	// remaining calls.
	RunSaved(ctx context.Context, names []string, set map[string]string, captures map[string]json.RawMessage, done func(savedcall.Result)) error
}
