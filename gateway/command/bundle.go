package command

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"goblin/gateway/config"
	"goblin/registry/export"
	"goblin/registry/termtext"
)

// bundleReadme is the file README.txt of a bundle.
const bundleReadme = `A bundle of Goblin for bug reports.

recording.jsonl  requests and notifications of clients and servers%s
config.json      the part of the config that shapes what clients see; without commands,
                 URLs, headers, environment and secrets
doctor.json      the output of "goblin doctor --json"
version.json     the version of Goblin

Known secrets are masked. Read the files before you publish them.
`

// writeBundle writes a ZIP file for bug reports and prints what is in it.
func (j *exportJob) writeBundle(ctx context.Context, w io.Writer) (sum export.Summary, err error) {
	z := zip.NewWriter(w)
	bodies := ", with arguments and results"
	if j.flags.noBodies {
		bodies = ", without arguments and results"
	}
	out, err := j.entry(z, "recording.jsonl")
	if err == nil {
		counted := &countedWriter{w: out}
		sum, err = export.Write(ctx, counted, export.JSONL, j.open, j.options())
		j.endProgress()
		j.listed("recording.jsonl", counted.n)
	}
	if err != nil {
		return sum, err
	}
	files := []struct {
		name string
		make func() (any, error)
	}{
		{"config.json", j.bundledConfig},
		{"doctor.json", func() (any, error) { return j.runDoctor(ctx, nil) }},
		{"version.json", func() (any, error) { return j.Version, nil }},
	}
	for _, f := range files {
		v, err := f.make()
		if ctx.Err() != nil {
			return sum, ctx.Err()
		}
		if err != nil { // a bug report is most useful for a config with mistakes
			v = map[string]string{"error": err.Error()}
		}
		if err := j.add(z, f.name, v); err != nil {
			return sum, err
		}
	}
	out, err = j.entry(z, "README.txt")
	if err == nil {
		_, err = fmt.Fprintf(out, bundleReadme, bodies)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil && !j.flags.noBodies {
		j.Warn("the bundle includes arguments and results of calls; --no-bodies omits them")
	}
	return sum, err
}

func (j *exportJob) bundledConfig() (any, error) {
	cfg, err := j.Load()
	if err != nil {
		return nil, err
	}
	return config.Settings(cfg), nil
}

func (j *exportJob) entry(z *zip.Writer, name string) (io.Writer, error) {
	return z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now().UTC().Truncate(time.Second)})
}

// add writes a value as JSON, without secrets and without the path of the home folder.
func (j *exportJob) add(z *zip.Writer, name string, v any) error {
	text, err := termtext.EncodeJSON(v, "  ")
	if err != nil {
		return err
	}
	text = j.Mask().String(text)
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		quoted, _ := json.Marshal(home) // Windows paths contain backslashes
		text = strings.ReplaceAll(text, string(bytes.Trim(quoted, `"`)), "~")
	}
	out, err := j.entry(z, name)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, text+"\n"); err != nil {
		return err
	}
	j.listed(name, len(text)+1)
	return nil
}

func (j *exportJob) listed(name string, size int) {
	fmt.Fprintf(j.Err, "%s  %s\n", termtext.Pad(name, len("recording.jsonl")), termtext.Size(int64(size)))
}

type countedWriter struct {
	w io.Writer
	n int
}

func (c *countedWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += n
	return n, err
}
