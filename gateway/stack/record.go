package stack

import (
	"cmp"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/recorder"
	"goblin/registry/recording"
	"goblin/registry/report"
)

// recordings starts and stops the recorder of a stack.
type recordings struct {
	mu      sync.Mutex
	current atomic.Pointer[recorder.Recorder] // written under mu
	config  config.Record                     // guarded by mu
	problem atomic.Pointer[error]             // why there is no recording although one is wanted
}

// startRecordings starts the recording that the options or the config want. Only one by
// the options fails; otherwise the gateway runs without.
func (i *Stack) startRecordings() error {
	i.recordings.mu.Lock()
	defer i.recordings.mu.Unlock()
	i.recordings.config = i.o.Config.Record
	switch {
	case i.o.Record != "":
		return i.startRecordingLocked(i.o.Config, i.o.Record)
	case i.o.Config.Record.On && i.o.Recordings != "":
		i.recordingFailed(i.startRecordingLocked(i.o.Config, cmp.Or(i.o.Config.Record.Dir, i.o.Recordings)))
	}
	return nil
}

func (i *Stack) recorderOptions(cfg *config.Config) recorder.Options {
	name := recording.NoConfig
	if !cfg.Demo {
		name = filepath.Base(cfg.Path)
	}
	return recorder.Options{
		Max: cfg.Record.Max, Age: time.Duration(cfg.Record.Days) * 24 * time.Hour, Bodies: cfg.Record.Bodies,
		Version: i.o.Version, Config: name, Settings: config.Settings(cfg),
		Registry: i.registry, Mask: i.o.Mask, Logger: i.o.Logger,
		AddSink: i.gateway.AddSink, InFlight: i.gateway.Pending.All, Profile: i.sessionProfile, OnStop: i.recordingFailed,
	}
}

// TrafficHead returns the lines that precede the journal's traffic in a recording.
func (i *Stack) TrafficHead() ([]recording.Line, error) {
	o := i.recorderOptions(i.gateway.Views.Config())
	o.Bodies = true
	return recorder.Head(o)
}

func (i *Stack) startRecordingLocked(cfg *config.Config, folder string) error {
	o := i.recorderOptions(cfg)
	o.Folder = folder
	r, err := recorder.Start(o)
	if err != nil {
		return err
	}
	i.recordings.current.Store(r)
	i.recordings.problem.Store(nil)
	i.notify()
	i.o.Logger.Info("recording started", "folder", r.Status().Folder)
	return nil
}

// recordingFailed shows an error to users. The recorder has logged those of its own.
func (i *Stack) recordingFailed(err error) {
	if err == nil {
		return
	}
	i.recordings.problem.Store(&err)
	if i.recordings.current.Load() == nil {
		i.o.Logger.Error("not recorded", "err", err)
	}
	i.notify()
}

func (i *Stack) stopRecordingLocked() error {
	r := i.recordings.current.Swap(nil)
	i.recordings.problem.Store(nil)
	i.notify()
	if r == nil {
		return nil
	}
	failed := r.Status().Error != nil
	err := r.Close()
	if !failed && err == nil {
		i.o.Logger.Info("recording finished", "folder", r.Status().Folder)
	}
	return err
}

// closeRecordings finishes the recording when Run ends.
func (i *Stack) closeRecordings() {
	i.recordings.mu.Lock()
	defer i.recordings.mu.Unlock()
	if err := i.stopRecordingLocked(); err != nil {
		i.o.Logger.Warn("recording not finished", "err", err)
	}
}

// applyRecord applies an edited config, unless the options decide.
func (i *Stack) applyRecord(cfg *config.Config) (changed bool) {
	i.recordings.mu.Lock()
	defer i.recordings.mu.Unlock()
	changed = i.recordings.config != cfg.Record
	i.recordings.config = cfg.Record
	if !changed || i.o.Record != "" || i.o.Recordings == "" {
		if r := i.recordings.current.Load(); r != nil {
			r.SetSettings(config.Settings(cfg))
		}
		return changed
	}
	if err := i.stopRecordingLocked(); err != nil {
		i.o.Logger.Warn("recording not finished", "err", err)
	}
	if cfg.Record.On {
		i.recordingFailed(i.startRecordingLocked(cfg, cmp.Or(cfg.Record.Dir, i.o.Recordings)))
	}
	return changed
}

// Recording describes the recording, or returns nil.
func (i *Stack) Recording() *report.Recording {
	return i.describeRecording(i.recordings.current.Load())
}

func (i *Stack) describeRecording(r *recorder.Recorder) *report.Recording {
	if r == nil {
		return nil
	}
	s := r.Status()
	now := &report.Recording{Folder: s.Folder, File: s.File, Bytes: s.Bytes, Dropped: s.Dropped, Since: s.Since}
	if s.Error != nil {
		now.Error = i.o.Mask.String(s.Error.Error())
	}
	return now
}

// ToggleRecording starts or stops recording for the user, until the daemon stops or the
// config's record changes. It returns the running recording, or nil and the stopped one.
func (i *Stack) ToggleRecording() (running, stopped *report.Recording, err error) {
	i.recordings.mu.Lock()
	defer i.recordings.mu.Unlock()
	before := i.recordings.current.Load()
	err = i.stopRecordingLocked()
	if stopped = i.describeRecording(before); err != nil || stopped != nil && stopped.Error == "" {
		return nil, stopped, err
	}
	cfg := i.gateway.Views.Config()
	folder := cmp.Or(i.o.Record, cfg.Record.Dir, i.o.Recordings)
	if folder == "" {
		return nil, nil, errors.New("no folder for recordings; set record.dir in the config")
	}
	if err := i.startRecordingLocked(cfg, folder); err != nil {
		return nil, nil, err
	}
	return i.Recording(), nil, nil
}

func (i *Stack) sessionProfile(id string) string {
	for _, s := range i.gateway.Sessions() {
		if s.ID() == id {
			return i.gateway.Views.Profile(s)
		}
	}
	return ""
}
