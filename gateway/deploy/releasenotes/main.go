// Command releasenotes prints the section of a version in CHANGELOG.md.
//
// Without a version it prints the newest section with a date.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
)

func main() {
	file := flag.String("changelog", "CHANGELOG.md", "the changelog `FILE`")
	version := flag.String("version", "", "the `VERSION`, such as 1.2.3; by default the newest")
	flag.Parse()
	text, err := os.ReadFile(*file)
	if err == nil {
		var notes string
		if notes, err = section(string(text), strings.TrimPrefix(*version, "v")); err == nil {
			fmt.Fprint(os.Stdout, notes)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "release-notes:", err)
	os.Exit(1)
}

// section returns the text below the heading of a version, which looks like
// "## [1.2.3] - 2026-11-27". An empty version stands for the newest.
func section(changelog, version string) (string, error) {
	heading := regexp.MustCompile(`(?m)^## \[([^\]]+)\] - \d{4}-\d\d-\d\d$`)
	for _, m := range heading.FindAllStringSubmatchIndex(changelog, -1) {
		if found := changelog[m[2]:m[3]]; version != "" && found != version {
			continue
		}
		text := changelog[m[1]:]
		// Another section or the definitions of links follow.
		if end := regexp.MustCompile(`(?m)^(## |\[[^\]]+\]: )`).FindStringIndex(text); end != nil {
			text = text[:end[0]]
		}
		if text = strings.TrimSpace(text); text == "" {
			return "", fmt.Errorf("the section of version %s is empty", changelog[m[2]:m[3]])
		}
		return text + "\n", nil
	}
	if version == "" {
		return "", errors.New(`the changelog has no section with a version and a date, such as "## [1.2.3] - 2026-11-27"`)
	}
	return "", fmt.Errorf("the changelog has no dated section of version %s", version)
}
