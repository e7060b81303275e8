package pane

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/tui/approve"
	"goblin/tui/build"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

func (p *Servers) Subject() Subject {
	a := p.app
	s, ok := p.Table.Selected()
	if !ok {
		if p.Table.Total() > 0 {
			return Subject{}
		}
		return Subject{Key: "getting started", Title: "Getting started", Blocks: func(context.Context) []viewer.Section { return a.Intro() }}
	}
	tail := p.stderrTails[s.Name]
	wrote := ""
	if len(tail) > 0 {
		newest := tail[len(tail)-1]
		wrote = fmt.Sprint(newest.Seq, newest.times)
	}
	lk, pinned, found := a.Theme, a.Reg.UnapprovedTools(s.Name), p.findings[s.Name].blocks(a.Theme, s)
	lately := a.Pulse.Sections(lk, a.Now(), s.Name)
	return Subject{
		Key: "server " + s.Name, Title: s.Name,
		Version: strconv.FormatInt(a.Now().Unix()/5, 10) + approve.Version(pinned) + build.Version(s.Build) + p.findings[s.Name].version() + fmt.Sprintf("%s %d %s %s %s %d %v %v %d %d %d %s %d %d %s %p %v %s %v %v %s", s.State, s.Since.UnixNano(), s.ServerName, s.ServerVersion,
			s.ProtocolVersion, s.Counts, s.Listed, s.Stale, s.Restarts, s.PID, s.Latency, s.LastError, len(s.Capabilities), len(s.Instructions), wrote, lk, s.Projects, s.Login, s.CanLogIn, s.CachedAt, s.KeepAwakeReason) + fmt.Sprintf(" %d %d", s.Repairs.Changed, s.Repairs.Dropped),
		Blocks: func(context.Context) []viewer.Section {
			blocks := []viewer.Section{{Kind: viewer.Fields, Fields: append(serverFacts(lk, s), definitionFacts(lk, a.Backend.Definition(s.Name))...)}}
			blocks = append(blocks, build.Sections(lk, s.Build)...)
			blocks = append(blocks, found...)
			blocks = append(blocks, repairBlocks(s.Repairs)...)
			if p.app.ReadOnly == "" {
				blocks = append(blocks, serverHelp(s, p.app.KeyOf)...)
			}
			blocks = append(blocks, approve.Sections(a.Context, lk, pinned)...)
			blocks = append(blocks, lately...)
			if a.Demo {
				blocks = append(blocks, a.Intro()...)
			}
			if s.Instructions != "" {
				blocks = append(blocks, viewer.Section{Title: "Instructions", Kind: viewer.Markdown, Text: s.Instructions})
			}
			if len(s.Capabilities) > 0 {
				blocks = append(blocks, viewer.Section{Title: "Capabilities", Kind: viewer.JSON, Data: s.Capabilities})
			}
			return append(blocks, logTailBlocks(lk, tail)...)
		},
	}
}

func serverFacts(lk *theme.Theme, s registry.ServerState) []viewer.Field {
	_, style := stateMark(lk, s.State)
	state := s.State.Label()
	if !s.Since.IsZero() {
		state += " since " + s.Since.Format("15:04:05")
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	f := []viewer.Field{
		{Label: "server", Value: s.Name},
		{Label: "state", Value: state, Style: style},
		{Label: "last error", Value: s.LastError, Style: lk.Bad},
		{Label: "server info", Value: strings.TrimSpace(s.ServerName + " " + s.ServerVersion)},
		{Label: "title", Value: s.ServerTitle},
		{Label: "login", Value: s.Login.String()},
		{Label: "transport", Value: s.Transport},
		{Label: "revision", Value: s.ProtocolVersion},
	}
	if len(s.Projects) == 0 {
		f = append(f, viewer.Field{Label: "pid", Value: number(s.PID)})
	}
	for _, p := range s.Projects {
		pid := ""
		if p.PID > 0 {
			pid = fmt.Sprintf(" (pid %d)", p.PID)
		}
		f = append(f, viewer.Field{Label: "project", Value: p.Folder + pid})
	}
	if s.Latency > 0 {
		f = append(f, viewer.Field{Label: "latency", Value: uicontext.FormatDuration(s.Latency)})
	}
	f = append(f, viewer.Field{Label: "restarts", Value: number(s.Restarts)})
	if (s.State == registry.StateFailed || s.State == registry.StateRetrying) && !s.NextAttempt.IsZero() {
		f = append(f, viewer.Field{Label: "attempts", Value: fmt.Sprintf("%d, next at %s", s.Attempts, s.NextAttempt.Format("15:04:05"))})
	}
	for _, kind := range []registry.Kind{registry.Tool, registry.Prompt, registry.Resource, registry.Template, registry.Skill} {
		if n := s.Counts[kind]; n > 0 {
			f = append(f, viewer.Field{Label: kind.String() + "s", Value: strconv.Itoa(n)})
		}
	}
	if n := s.Repairs.Changed; n > 0 {
		f = append(f, viewer.Field{Label: "definitions", Value: fmt.Sprintf("%d %s", n, registry.ChangedText), Style: lk.Warn})
	}
	if n := s.Repairs.Dropped; n > 0 {
		f = append(f, viewer.Field{Label: "definitions", Value: fmt.Sprintf("%d dropped", n), Style: lk.Warn})
	}
	if s.KeepAwakeReason != "" {
		f = append(f, viewer.Field{Label: "in use", Value: "kept running by " + s.KeepAwakeReason})
	}
	switch {
	case !s.CachedAt.IsZero():
		f = append(f, viewer.Field{Label: "lists", Value: "~ cached " + s.CachedAt.Format("2006-01-02 15:04") + "; not listed yet since Goblin started"})
	case s.Stale:
		f = append(f, viewer.Field{Label: "lists", Value: "stale: the connection was lost"})
	case s.State == registry.StateReady && !s.Listed:
		f = append(f, viewer.Field{Label: "lists", Value: "loading"})
	}
	return f
}

func repairBlocks(r registry.Repairs) []viewer.Section {
	if len(r.Details) == 0 {
		return nil
	}
	facts := make([]viewer.Field, len(r.Details))
	for i, d := range r.Details {
		facts[i] = viewer.Field{Label: d.Kind.String(), Value: strings.TrimSpace(d.Name + " " + d.Text)}
	}
	if more := r.Changed + r.Dropped - len(r.Details); more > 0 {
		facts = append(facts, viewer.Field{Label: "more", Value: strconv.Itoa(more)})
	}
	return []viewer.Section{{Title: "Changed and dropped definitions", Kind: viewer.Fields, Fields: facts}}
}

func definitionFacts(lk *theme.Theme, d report.Definition) []viewer.Field {
	f := []viewer.Field{
		{Label: "command", Value: d.Command},
		{Label: "folder", Value: d.Folder},
		{Label: "URL", Value: d.URL},
		{Label: "variables", Value: strings.Join(d.Env, ", ")},
		{Label: "headers", Value: strings.Join(d.Headers, ", ")},
	}
	if len(d.LeftOut) > 0 {
		more := ""
		if d.More > 0 {
			more = fmt.Sprintf(" and %d more", d.More)
		}
		f = append(f, viewer.Field{Label: "hidden", Value: strings.Join(d.LeftOut, ", ") + more + " (filtered by config)"})
	}
	if d.Processes > 0 {
		processes := "1 process"
		if d.Processes > 1 {
			processes = strconv.Itoa(d.Processes) + " processes"
		}
		f = append(f, viewer.Field{Label: "usage", Value: fmt.Sprintf(lk.Own("CPU %s · %s · %s"),
			uicontext.FormatDuration(d.Processor), uicontext.FormatSize(d.Memory), processes)})
	}
	return f
}
