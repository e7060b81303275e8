package remoteui

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEditorsOpenAFileAtALine(t *testing.T) {
	for _, c := range []struct{ command, name, runs, file string }{
		{"vi", "/a/b.yaml:12", "vi +12", "/a/b.yaml"},
		{"/usr/bin/nvim -n", "/a/b.yaml:12", "/usr/bin/nvim -n +12", "/a/b.yaml"},
		{"nano", "/a/b.yaml:3", "nano +3", "/a/b.yaml"},
		{"emacsclient -t", "/a/b.yaml:3", "emacsclient -t +3", "/a/b.yaml"},
		{"code --wait", "/a/b.yaml:3", "code --wait -g", "/a/b.yaml:3"},
		{"FOO=1 hx", "/a/b.yaml:3", "FOO=1 hx", "/a/b.yaml:3"},
		{"kate -b", "/a/b.yaml:3", "kate -b --line 3", "/a/b.yaml"},
		{"unknown", "/a/b.yaml:3", "unknown", "/a/b.yaml"},
		{"vi", "/a/b", "vi", "/a/b"},
		{"vi", "/a/b:x", "vi", "/a/b:x"},
	} {
		file, line := splitLine(c.name)
		runs, file := editorAtLine(c.command, file, line)
		require.Equal(t, c.runs, runs)
		require.Equal(t, c.file, file)
	}
}
