package stack

import (
	"context"
	"errors"
	"fmt"
	"os"

	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/serverentry"
	"goblin/registry/report"
)

// noConfigReason returns why there is no config file to edit, or "".
func (i *Stack) noConfigReason() string {
	switch {
	case i.o.Config.Demo:
		return "the demo has no config; goblin init or goblin add NAME -- COMMAND creates one"
	case i.o.Only != nil:
		return "this Goblin serves selected servers only and does not reload its config; goblin edit edits it"
	}
	return ""
}

// OpenConfig returns the absolute path of the config and the line of a server's entry, or
// 1. reload applies the file at once and returns the changes since OpenConfig. If the file is
// missing by then, reload restores its former text.
func (i *Stack) OpenConfig(server string) (path string, line int, reload func() report.Reload, err error) {
	if why := i.noConfigReason(); why != "" {
		return "", 0, nil, errors.New(why)
	}
	path = i.configName()
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", 0, nil, fmt.Errorf("%s is not a regular file", path)
	}
	former, _ := configedit.OpenBroken(path) // without it, nothing is restored
	changes := i.trackChanges()
	reload = func() report.Reload {
		restored := restoreMissing(path, former)
		result := changes()
		result.Restored = restored
		return result
	}
	return path, max(configedit.Line(path, server), 1), reload, nil
}

// restoreMissing writes the former text of a file that no longer exists, and reports
// whether it did.
func restoreMissing(path string, former *configedit.File) bool {
	if former == nil || len(former.Text()) == 0 {
		return false
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	_, err = f.Write(former.Text())
	return errors.Join(err, f.Close()) == nil
}

// trackChanges returns a function that reloads the file and returns the changes since. A
// file without servers is a mistake, since an editor may have failed while writing.
func (i *Stack) trackChanges() (reload func() report.Reload) {
	i.reloadMu.Lock()
	before := i.servedConfig
	i.reloadMu.Unlock()
	return func() report.Reload {
		i.reload(false)
		i.reloadMu.Lock()
		defer i.reloadMu.Unlock()
		if i.configInvalid {
			return report.Reload{Invalid: true}
		}
		return reloadReport(before, i.servedConfig)
	}
}

func reloadReport(before, now *config.Config) report.Reload {
	r := report.Reload{Applied: before.DifferingLiveSettings(now)}
	var changed map[string][]string
	r.Added, r.Removed, changed = before.DifferingServers(now)
	for i := range now.Servers {
		s := &now.Servers[i]
		keys, ok := changed[s.Name]
		if was, _ := before.Server(s.Name); ok && (len(keys) > 0 || was.Problem == "" || s.Problem == "") { // the line in the problem may differ
			r.Changed = append(r.Changed, report.ServerChange{Server: s.Name, Keys: keys})
		}
	}
	r.Later = before.DifferingSettings(now)
	return r
}

func (i *Stack) entryEditor() (*serverentry.Editor, error) {
	if why := i.noConfigReason(); why != "" {
		return nil, errors.New(why)
	}
	return &serverentry.Editor{Path: i.configName(), Store: i.o.Secrets}, nil
}

// ServerEntry returns a server's entry in the file. It loads a file with mistakes, so that
// the registry has them.
func (i *Stack) ServerEntry(server string) (*report.ServerEntry, error) {
	e, err := i.entryEditor()
	if err != nil {
		return nil, err
	}
	entry, err := e.Read(server)
	if bad, ok := errors.AsType[*config.Errors](err); ok {
		i.reload(false)
		err = fmt.Errorf("fix the mistakes in %s first: %s", i.configName(), i.o.Mask.String(bad.Problems[0].Text))
	}
	return entry, err
}

// PreviewEdit returns the text of a change and the secrets in it.
func (i *Stack) PreviewEdit(edit report.ServerEdit) (*report.EditPreview, error) {
	e, err := i.entryEditor()
	if err != nil {
		return nil, err
	}
	return e.Preview(edit)
}

// TryEdit starts a server once with a change, as [Stack.AddDefinition] does.
func (i *Stack) TryEdit(ctx context.Context, edit report.ServerEdit) (lacks string, err error) {
	e, err := i.entryEditor()
	if err != nil {
		return "", err
	}
	cfg, err := e.Config(edit)
	if err != nil {
		return "", err
	}
	return i.try(ctx, cfg, edit.Entry.Server), nil
}

// SaveEdit writes a change and applies it. It returns a [report.FileChangedError] if the
// file was changed meanwhile.
func (i *Stack) SaveEdit(edit report.ServerEdit) (report.Reload, error) {
	e, err := i.entryEditor()
	if err != nil {
		return report.Reload{}, err
	}
	reload := i.trackChanges()
	if err := e.Save(edit); err != nil {
		return report.Reload{}, err
	}
	return reload(), nil
}
