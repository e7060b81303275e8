package pane

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/uicontext"
)

// ToggleRecording starts or stops the recording of traffic. show receives the running
// one, or nil.
func (a *Layout) ToggleRecording(show func(*report.Recording)) tea.Cmd {
	var running, stopped *report.Recording
	return a.Do(func() (err error) {
		running, stopped, err = a.Backend.ToggleRecording()
		return err
	}, "record", func() tea.Cmd {
		show(running)
		switch {
		case running != nil:
			return a.Say("Recording to %s", uicontext.SanitizeLine(running.Folder))
		case stopped != nil:
			return a.Say("Recording stopped: %s in %s", termtext.Size(stopped.Bytes), uicontext.SanitizeLine(stopped.Folder))
		}
		return nil
	})
}

// RecordingMark returns the mark of a recording for the header, or "" for nil.
func RecordingMark(r *report.Recording) string {
	switch {
	case r == nil:
		return ""
	case r.Error != "": // the notice shows it
		return "REC stopped"
	case r.Dropped > 0:
		return fmt.Sprintf("REC, %s lost", uicontext.FormatInt(r.Dropped))
	}
	return "REC"
}
