package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/serve"
)

var update = flag.Bool("update", false, "write the command reference")

const referenceFile = "gateway/command/README.md"

// The command reference contains the help of all visible commands.
func TestCommandReferenceIsCurrent(t *testing.T) {
	var help bytes.Buffer
	a := &cli.App{In: strings.NewReader(""), Out: &help, Err: &help, Getenv: func(string) string { return "" }}
	root := newRoot(&serve.Process{App: a, In: os.Stdin, Out: os.Stdout, Err: os.Stderr})

	var index, text strings.Builder
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c.Name() != "help" && c != root {
			return
		}
		path := c.CommandPath()
		fmt.Fprintf(&index, "| [`%s`](#%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), strings.ReplaceAll(c.Short, "|", `\|`))
		help.Reset()
		c.InitDefaultHelpFlag()
		require.NoError(t, c.Help())
		fmt.Fprintf(&text, "\n## %s\n\n```text\n%s\n```\n", path, strings.TrimSpace(help.String()))
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	require.Contains(t, index.String(), "`goblin registry search`")
	current := "# Commands\n\nThis is the help of all commands. `go generate .` writes this file.\n\n| command | what it does |\n|---|---|\n" + index.String() + text.String()

	if *update {
		require.NoError(t, os.WriteFile(referenceFile, []byte(current), 0o644))
	}
	file, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	require.True(t, current == string(file), "%s is not current: run go generate .", referenceFile)
}
