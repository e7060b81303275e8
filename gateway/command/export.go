package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/atomicfile"
	"goblin/gateway/cli"
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
		Use:     "export FILE|DIR [FILTER]",
		GroupID: cli.GroupDiagnose,
		Short:   "Export recorded traffic to other formats",
		Long: `Write a recording, or the files of a folder, in another format:

  har     HTTP Archive 1.2, for the network tools of browsers
  otlp    OpenTelemetry traces, OTLP/JSON
  html    one page with the time line, without references to other files
  jsonl   one recording that contains all bodies
  curl    a shell script that sends the client requests again
  bundle  a ZIP file for bug reports: traffic, config without secrets, doctor

FILE#17 exports request 17 and what it caused. Without --format, the name of the
output decides. Secrets are masked, but arguments and results are included.`,
		Example: `  goblin export traffic.jsonl -o traffic.html
  goblin export 'traffic.jsonl#17' --format curl
  goblin export traffic.jsonl -o report.zip --no-bodies`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, "%s needs a recording", cli.CommandPath(cmd))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runExport(cmd, &o, args) },
	})
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "", "`FORMAT`: har, otlp, html, jsonl, curl or bundle")
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
	from, err := recording.ParseArgument(args[0])
	if err != nil {
		return cli.Usage(cmd, "%s", err)
	}
	j := exportJob{App: a, flags: o, from: from}
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
	from   recording.Argument
	reader *recording.Reader // the last one
}

func (j *exportJob) open() (_ export.Source, err error) {
	j.reader, err = recording.Open(j.from.Path)
	return j.reader, err
}

func (j *exportJob) run(ctx context.Context) error {
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
	var path *fs.PathError
	switch {
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist):
		return cli.Fail(cli.CodeNotFound, "export: %w", err)
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
	o := export.Options{NoBodies: j.flags.noBodies, URL: j.flags.url, Version: j.Version.Version, Keep: j.keep}
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

// keep selects one request with the requests and notifications that it caused.
func (j *exportJob) keep(l *recording.Line) bool {
	return j.from.Number == 0 || l.Number == j.from.Number || l.Parent == j.from.Number
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
	if sum.LostLines > 0 {
		j.Warn("the recorder dropped %s", termtext.Count(sum.LostLines, "line"))
	}
	if sum.Note != "" {
		j.Warn("%s", sum.Note)
	}
	j.reportProblems()
}

// reportProblems reports lines that could not be read.
func (j *exportJob) reportProblems() {
	const shown = 3
	if j.reader == nil {
		return
	}
	first, more := j.reader.Problems()
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
