package uicontext

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/report"
	"goblin/registry/termtext"
)

// ToggleRecording starts or stops the recording of traffic. show receives the running
// one, or nil.
func (c *Context) ToggleRecording(show func(*report.Recording)) tea.Cmd {
	var running, stopped *report.Recording
	return c.Do(func() (err error) {
		running, stopped, err = c.Backend.ToggleRecording()
		return err
	}, "record", func() tea.Cmd {
		show(running)
		switch {
		case running != nil:
			return c.Say("Recording to %s", SanitizeLine(running.Folder))
		case stopped != nil:
			return c.Say("Recording stopped: %s in %s", termtext.Size(stopped.Bytes), SanitizeLine(stopped.Folder))
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
		return fmt.Sprintf("REC, %s lost", FormatInt(r.Dropped))
	}
	return "REC"
}
