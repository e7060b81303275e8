package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/recorder"
	"goblin/registry/termtext"
)

// recordingsFolder returns the folder in which the config's record writes.
func (a *App) recordingsFolder() (string, error) {
	cfg, err := a.Load()
	if err != nil {
		return "", err
	}
	folder := cmp.Or(cfg.Record.Dir, a.RecordingsDir(cfg))
	if folder == "" {
		return "", errors.New("no folder for recordings; set HOME, XDG_STATE_HOME or --from")
	}
	return folder, nil
}

// hasRecordings reports whether a folder exists.
func hasRecordings(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// deleteRecordings removes old recordings of a folder; "" is the config's.
func (a *App) deleteRecordings(cmd *cobra.Command, folder, older string) error {
	age, err := parseAge(older)
	if err != nil {
		return cli.Usage(cmd, "--delete needs --older with an age such as 7d or 12h: %v", err)
	}
	if folder == "" {
		if folder, err = a.recordingsFolder(); err != nil {
			return err
		}
	}
	gone, err := recorder.Delete(folder, age)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cli.Fail(cli.CodeNotFound, "no recordings: folder %s does not exist; \"record\" in the config or --from names another one", folder)
	case err != nil:
		return fmt.Errorf("delete recordings: %w", err)
	}
	return a.printResult(struct {
		Folder string `json:"folder"`
		recorder.Removed
	}{folder, gone}, fmt.Sprintf("Removed from %s: %s, %s\n", termtext.Line(folder), termtext.Count(gone.Files, "recording"), termtext.Size(gone.Bytes)))
}

// parseAge also accepts days.
func parseAge(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("invalid number of days %q", text)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	age, err := time.ParseDuration(text)
	if err == nil && age < 0 {
		err = errors.New("the age is negative")
	}
	return age, err
}
