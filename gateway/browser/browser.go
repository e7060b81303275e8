// Package browser opens web pages in the user's browser.
//
// It doesn't wait for the browser, which may stay open for days. It must not know what
// the pages are for.
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

// errRemote means that a browser would open on a machine that the user isn't sitting at.
var errRemote = errors.New("SSH session without a display")

// Open opens a web page in $BROWSER or in the system's browser. Over SSH without a
// display it only uses $BROWSER, because the user set it for that machine.
func Open(getenv func(string) string, page string) error {
	if u, err := url.Parse(page); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("not an http or https URL")
	}
	if wish := getenv("BROWSER"); wish != "" {
		var fault error
		for _, command := range filepath.SplitList(wish) { // the first that starts
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

// commandLine returns the words of a $BROWSER command. It is a program or a command with
// arguments, in which %s is replaced by the page.
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
	go func() { _ = cmd.Wait() }() // returns when the browser exits
	return nil
}
