package archive

import (
	"context"
	"encoding/json"
	"errors"

	"goblin/gateway/callstore"
	"goblin/gateway/config"
	"goblin/gateway/recorder"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/candidate"
	"goblin/registry/recording"
	"goblin/registry/report"
	"goblin/registry/savedcall"
)

// ReadOnly is the reason why a recording cannot be changed.
const ReadOnly = "this is a recording"

var errReadOnly = errors.New(ReadOnly)

// Backend shows an archive to a UI. All methods that would change something fail.
type Backend struct {
	*Archive
	callstore.Store // of calls that the user saves
}

// Request fails.
func (Backend) Request(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
	return nil, errReadOnly
}

// Restart fails.
func (Backend) Restart(string) error { return errReadOnly }

// Wake fails.
func (Backend) Wake(string) error { return errReadOnly }

// SetEnabled fails.
func (Backend) SetEnabled(string, bool) error { return errReadOnly }

// ClientServers fails.
func (Backend) ClientServers() (*candidate.ClientServers, error) { return nil, errReadOnly }

// SearchRegistry fails.
func (Backend) SearchRegistry(context.Context, []string) (*candidate.SearchResult, error) {
	return nil, errReadOnly
}

// AddDefinition fails.
func (Backend) AddDefinition(context.Context, *candidate.Definition, bool) (string, error) {
	return "", errReadOnly
}

// RemoveServer fails.
func (Backend) RemoveServer(string) error { return errReadOnly }

// SetDisabled fails.
func (Backend) SetDisabled(string, bool) error { return errReadOnly }

// OpenConfig fails.
func (Backend) OpenConfig(string) (path string, line int, reload func() report.Reload, err error) {
	return "", 0, nil, errReadOnly
}

// ServerEntry fails.
func (Backend) ServerEntry(string) (*report.ServerEntry, error) { return nil, errReadOnly }

// PreviewEdit fails.
func (Backend) PreviewEdit(report.ServerEdit) (*report.EditPreview, error) { return nil, errReadOnly }

// TryEdit fails.
func (Backend) TryEdit(context.Context, report.ServerEdit) (string, error) { return "", errReadOnly }

// SaveEdit fails.
func (Backend) SaveEdit(report.ServerEdit) (report.Reload, error) {
	return report.Reload{}, errReadOnly
}

// Login fails.
func (Backend) Login(context.Context, string, func(string), func(context.Context, string, string) bool, <-chan string) (string, error) {
	return "", errReadOnly
}

// Logout fails.
func (Backend) Logout(context.Context, string) error { return errReadOnly }

// Approve fails.
func (Backend) Approve(string, []registry.UnapprovedTool) error { return errReadOnly }

// SetEntriesDisabled fails.
func (Backend) SetEntriesDisabled(string, bool, ...*registry.Entry) error { return errReadOnly }

// Diagnose fails.
func (Backend) Diagnose(context.Context, string) (report.Diagnosis, error) {
	return report.Diagnosis{}, errReadOnly
}

// Recording returns nil.
func (Backend) Recording() *report.Recording { return nil }

// TrafficHead returns the lines that precede traffic in a recording.
func (b Backend) TrafficHead() ([]recording.Line, error) {
	return recorder.Head(recorder.Options{
		Bodies: b.Bodies, Settings: config.Settings(b.config), Registry: b.Registry,
	})
}

// ToggleRecording fails.
func (Backend) ToggleRecording() (running, stopped *report.Recording, err error) {
	return nil, nil, errReadOnly
}

// AddRule fails.
func (Backend) AddRule(string) (uint64, error) { return 0, errReadOnly }

// ChangeRule fails.
func (Backend) ChangeRule(uint64, string) error { return errReadOnly }

// SetRuleEnabled fails.
func (Backend) SetRuleEnabled(uint64, bool) error { return errReadOnly }

// RemoveRule fails.
func (Backend) RemoveRule(uint64) error { return errReadOnly }

// DecideStop fails.
func (Backend) DecideStop(uint64, registry.Decision) error { return errReadOnly }

// RevokeApproval fails.
func (Backend) RevokeApproval(string) error { return errReadOnly }

// Redact returns the text: recordings contain no secrets.
func (Backend) Redact(text string) string { return text }

// RunSaved fails.
func (Backend) RunSaved(context.Context, []string, map[string]string, map[string]json.RawMessage, func(savedcall.Result)) error {
	return errReadOnly
}

// CancelRequest reports false.
func (Backend) CancelRequest(string, string) bool { return false }

// Disconnect reports false.
func (Backend) Disconnect(string) bool { return false }

// Session returns "": the UI has no session.
func (Backend) Session() string { return "" }

// Definition returns nothing: recordings have no commands and URLs.
func (Backend) Definition(string) report.Definition { return report.Definition{} }

// InFlight returns the requests without an answer at the end of the recording.
func (b Backend) InFlight() []registry.InFlight { return b.running }

// SessionDetails returns the profile of a session.
func (b Backend) SessionDetails(session string) []string {
	if profile := b.details[session].Profile; profile != "" {
		return []string{"profile " + profile}
	}
	return nil
}

// Profiles returns the names of the recorded profiles.
func (b Backend) Profiles() (names []string) {
	for _, p := range b.config.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// VisibleCounts returns the number of visible entries of each kind for a profile.
func (b Backend) VisibleCounts(profile string) (counts [registry.Kinds]int) {
	if seen, ok := b.views.ForProfile(profile); ok {
		for k := range registry.Kind(registry.Kinds) {
			counts[k] = seen.Lists.Count(k)
		}
	}
	return counts
}

// HiddenReason reports why an entry is hidden from a profile's clients.
func (b Backend) HiddenReason(profile string, e *registry.Entry) (by, why string) {
	if off := b.views.HiddenBy(profile, e); off != nil {
		return string(off.By), off.Why
	}
	return "", ""
}

// ListedAs returns the name of an entry for a profile's clients, or "".
func (b Backend) ListedAs(profile string, e *registry.Entry) string {
	if seen, ok := b.views.ForProfile(profile); ok {
		if own := seen.Lists.ShownEntry(e); own != nil {
			return own.Listed
		}
	}
	return ""
}

// Usage returns the costs of the recorded calls.
func (b Backend) Usage() report.Report {
	r := b.meter.Report()
	r.Since, r.Daemon = b.Start, true
	r.Sort()
	return r
}

func (a *Archive) listedTools() (all []telemetry.ListedTool) {
	for e := range a.views.Full().All(registry.Tool) {
		if e.Server != registry.Local {
			all = append(all, telemetry.ListedTool{Server: e.Server, Tool: e.Name, Name: e.Listed, Bytes: e.JSONLen()})
		}
	}
	return all
}
