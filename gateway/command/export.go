package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/atomicfile"
	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/registry/export"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// bundleFormat is the value of --format for a bundle.
const bundleFormat = "bundle"

type exportFlags struct {
	format, out string
	url         string
	noBodies    bool
}

func (a *App) export() *cobra.Command {
	var o exportFlags
	cmd := a.withJSON("print a summary as a JSON object; needs -o", &cobra.Command{
		Use:     "export [FILE] [FILTER]...",
		GroupID: cli.GroupRecord,
		Short:   "Export recorded traffic to other formats",
		Long: `Write recorded traffic in another format. FILE is a recording, a folder of
recordings, or FILE#NUMBER for one request and what it caused. Without FILE, it is
the running daemon's traffic, or without a daemon the config's recordings.

FILTER is as for goblin traffic. Without --format, the name of the output decides.
Secrets are masked, but arguments and results are included.`,
		Example: `  goblin export -o traffic.html
  goblin export night.jsonl.gz -o night.har
  goblin export 'night.jsonl.gz#17' --format curl
  goblin export recordings since:1h -o report.zip --no-bodies`,
		ValidArgsFunction: CompleteFileAndFilter,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runExport(cmd, &o, args) },
	})
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "", "`FORMAT`: har, otlp, html, jsonl, curl, or bundle, a ZIP file for bug reports")
	f.StringVarP(&o.out, "output", "o", "", "write to this `FILE`, mode 0600, instead of stdout")
	f.StringVar(&o.url, "url", "", "`URL` for the curl script; default "+export.DefaultURL)
	f.BoolVar(&o.noBodies, "no-bodies", false, "omit arguments, results and error texts")
	_ = cmd.RegisterFlagCompletionFunc("format", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return exportFormats(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func exportFormats() []string {
	var all []string
	for _, f := range export.Formats() {
		all = append(all, string(f))
	}
	return append(all, bundleFormat)
}

func (a *App) runExport(cmd *cobra.Command, o *exportFlags, args []string) error {
	if err := o.complete(cmd); err != nil {
		return err
	}
	if o.out == "" && a.OutTTY && (o.format == string(export.HTML) || o.format == bundleFormat) {
		return cli.Usage(cmd, "the format %s is not for terminals; add -o traffic%s", o.format, formatSuffix(o.format))
	}
	if a.asJSON && (o.out == "" || o.out == "-") {
		return cli.Usage(cmd, "--json needs -o: stdout has the exported text")
	}
	j := exportJob{App: a, flags: o, now: time.Now()}
	if len(args) > 0 && isRecording(args[0]) {
		var err error
		if j.from, err = recording.ParseArgument(args[0]); err != nil {
			return cli.Usage(cmd, "%s", err)
		}
		args = args[1:]
	} else if err := j.readDaemon(cmd.Context()); err != nil {
		if len(args) > 0 {
			a.Warn("%q is no file, so it is a filter for the daemon's traffic", args[0])
		}
		return err
	}
	if filter := strings.Join(args, " "); filter != "" {
		j.filter = recording.NewFilter(filter, func(b *recording.Body) ([]byte, error) {
			return j.source.Body(b)
		})
		j.filter.ShowNotifications()
		if p := j.filter.Problem(); p.Text != "" {
			return cli.Usage(cmd, "filter, column %d: %s", p.Column, p.Text)
		}
	}
	return j.run(cmd.Context())
}

// complete checks the format. Without one, it follows from the output's name.
func (o *exportFlags) complete(cmd *cobra.Command) error {
	if o.format == "" {
		for _, f := range exportFormats() {
			if strings.HasSuffix(strings.ToLower(o.out), formatSuffix(f)) {
				o.format = f
			}
		}
	}
	switch {
	case o.format == "":
		return cli.Usage(cmd, "%s needs --format: %s", cli.CommandPath(cmd), strings.Join(exportFormats(), ", "))
	case !slices.Contains(exportFormats(), o.format):
		return cli.Usage(cmd, "unknown format %q%s", o.format, cli.Suggest(o.format, exportFormats(), ""))
	case o.url != "" && o.format != string(export.Curl):
		return cli.Usage(cmd, "--url is only for --format curl")
	}
	return nil
}

func formatSuffix(format string) string {
	if format == bundleFormat {
		return ".zip"
	}
	return export.Format(format).Extension()
}

// exportJob is one export.
type exportJob struct {
	*App
	flags  *exportFlags
	from   recording.Argument // the zero value is the daemon
	live   []recording.Line   // of the daemon
	filter *recording.Filter  // or nil
	now    time.Time
	url    string        // of the daemon, or ""
	source export.Source // the last one
}

// isRecording reports whether an argument names a recording instead of a filter.
func isRecording(arg string) bool {
	path, _, _ := strings.Cut(arg, "#")
	if strings.ContainsAny(arg, `/\`) && !strings.Contains(arg, ":") {
		return true
	}
	for _, path := range []string{arg, path} {
		if _, err := os.Lstat(path); err == nil || strings.HasSuffix(path, recording.Suffix) || strings.HasSuffix(path, recording.CompressedSuffix) {
			return true
		}
	}
	return false
}

func (j *exportJob) open() (export.Source, error) {
	if j.from.Path == "" {
		j.source = export.NewLines(slices.Clone(j.live))
		return j.source, nil
	}
	r, err := recording.Open(j.from.Path)
	if err != nil {
		return nil, err
	}
	j.source = r
	return r, nil
}

// readDaemon reads the traffic of the running daemon. Without one, it selects the
// recordings of the config.
func (j *exportJob) readDaemon(ctx context.Context) error {
	r, err := j.findDaemon(ctx)
	if errors.Is(err, daemon.ErrNotRunning) && r != nil {
		if dir := j.recordings(); dir != "" {
			j.Warn("no daemon is running; exporting the recordings in %s", dir)
			j.from = recording.Argument{Path: dir}
			return nil
		}
	}
	if err != nil {
		return r.explain(err)
	}
	if j.flags.url == "" && r.status.Address != "" {
		j.url = r.status.Address
	}
	q := daemon.TrafficQuery{Bodies: true, Head: true, Running: true}
	for {
		answer, err := r.Traffic(ctx, q)
		if err != nil {
			return r.explain(err)
		}
		j.warnOfLost(&answer)
		j.live = append(j.live, answer.Head...)
		for _, l := range slices.Concat(answer.Lines, answer.Running) {
			if l.Params == nil && l.CutParams != nil {
				l.Params = &recording.Body{JSON: l.CutParams}
			}
			if l.Line.Answer == nil && l.CutAnswer != nil {
				l.Line.Answer = &recording.Body{JSON: l.CutAnswer}
			}
			j.live = append(j.live, l.Line)
		}
		if !answer.More {
			return nil
		}
		q.From, q.Head = answer.Next, false
	}
}

func (j *exportJob) run(ctx context.Context) error {
	if j.from.Path != "" { // before the output begins
		if _, err := recording.Files(j.from.Path); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	var sum export.Summary
	write := func(w io.Writer) (err error) {
		if j.flags.format == bundleFormat {
			sum, err = j.writeBundle(ctx, w)
			return err
		}
		sum, err = export.Write(ctx, w, export.Format(j.flags.format), j.open, j.options())
		return err
	}
	err := j.output(write)
	j.endProgress()
	switch {
	case err != nil:
		return fmt.Errorf("export: %w", err)
	case j.from.Number > 0 && sum.Requests == 0:
		return cli.Fail(cli.CodeNotFound, "no request %d in %s", j.from.Number, j.from.Path)
	}
	j.report(&sum)
	if j.asJSON {
		return j.printJSON(&sum)
	}
	return nil
}

// output writes to stdout or a file. It replaces files, but not devices and pipes.
func (j *exportJob) output(write func(io.Writer) error) error {
	path := j.flags.out
	if path == "" || path == "-" {
		return write(j.Out)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder", path)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	return atomicfile.WriteFunc(path, write)
}

func (j *exportJob) options() export.Options {
	o := export.Options{NoBodies: j.flags.noBodies, URL: cmp.Or(j.flags.url, j.url), Version: j.Version.Version, Keep: j.keep}
	if j.ErrTTY {
		o.Progress = func(lines int) { fmt.Fprintf(j.Err, "\rexporting, %s lines", termtext.FormatCount(lines)) }
	}
	return o
}

func (j *exportJob) endProgress() {
	if j.ErrTTY {
		fmt.Fprint(j.Err, "\r\x1b[K")
	}
}

// keep selects by the filter, and one request with what it caused.
func (j *exportJob) keep(l *recording.Line) bool {
	if j.from.Number != 0 && l.Number != j.from.Number && l.Parent != j.from.Number {
		return false
	}
	return j.filter == nil || j.filter.Matches(l, j.now)
}

func (j *exportJob) report(sum *export.Summary) {
	if j.flags.out != "" && j.flags.out != "-" {
		text := fmt.Sprintf("Exported %s and %s to %s.", termtext.Count(sum.Requests, "request"), termtext.Count(sum.Notifications, "notification"), j.flags.out)
		fmt.Fprintln(j.Err, termtext.Line(text))
	}
	for _, problem := range []struct {
		n    int
		text string
	}{
		{sum.Unanswered, "without an answer in the recording"},
		{sum.MissingBodies, "with missing or damaged body files"},
		{sum.Skipped, "skipped, because their params are not recorded"},
	} {
		if problem.n > 0 {
			j.Warn("%s %s", termtext.Count(problem.n, "request"), problem.text)
		}
	}
	if sum.CutBodies > 0 {
		j.Warn("%d arguments or results are not complete: Goblin's log keeps 64 KiB of each, recordings keep all", sum.CutBodies)
	}
	if sum.LostLines > 0 {
		j.Warn("the recorder dropped %s", termtext.Count(sum.LostLines, "line"))
	}
	if j.filter != nil && j.filter.Skipped() > 0 {
		j.Warn("the filter did not search %d bodies: over 16 MiB, missing or damaged", j.filter.Skipped())
	}
	if sum.Note != "" {
		j.Warn("%s", sum.Note)
	}
	j.reportProblems()
}

// reportProblems reports lines that could not be read.
func (j *exportJob) reportProblems() {
	const shown = 3
	r, ok := j.source.(*recording.Reader)
	if !ok {
		return
	}
	first, more := r.Problems()
	for i, p := range first {
		if i == shown {
			more += len(first) - shown
			break
		}
		j.Warn("%s", p.String())
	}
	if more > 0 {
		j.Warn("%s more", termtext.Count(more, "problem"))
	}
}
