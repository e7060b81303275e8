// Package browser opens web pages in the user's browser.
//
// It must not know what they are for, and waits for no browser: one may stay open for
// days.
package browser

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// errRemote is the error where a browser would open on a machine that the user does not
// sit at.
var errRemote = errors.New("this is an SSH session without a display")

// Open starts the browser of $BROWSER, else the system's way to one, with a page of the
// web. Over SSH without a display only $BROWSER is started: whoever set it there knows
// one.
func Open(getenv func(string) string, page string) error {
	if u, err := url.Parse(page); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("this is no page of the web")
	}
	if wish := getenv("BROWSER"); wish != "" {
		var fault error
		for _, command := range filepath.SplitList(wish) { // the first that there is
			if fault = start(commandLine(command, page)); fault == nil {
				return nil
			}
		}
		return fmt.Errorf("$BROWSER: %w", fault)
	}
	switch {
	case getenv("SSH_CONNECTION") != "" && getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "":
		return errRemote
	case runtime.GOOS == "darwin":
		return start([]string{"open", page})
	case runtime.GOOS == "windows":
		return start([]string{"rundll32", "url.dll,FileProtocolHandler", page})
	}
	return start([]string{"xdg-open", page})
}

// commandLine returns a command of $BROWSER, a program or one with arguments, in which %s stands for the
// page.
func commandLine(command, page string) []string {
	if _, err := exec.LookPath(command); err == nil {
		return []string{command, page}
	}
	all := strings.Fields(command)
	if !strings.Contains(command, "%s") {
		all = append(all, "%s")
	}
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "%s", page)
	}
	return all
}

func start(command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // ends with the browser
	return nil
}
