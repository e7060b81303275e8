package mcpregistry_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/mcpregistry"
)

type file struct {
	name, text string
	mode       os.FileMode // 0: 0644
}

func zipped(t *testing.T, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		h.SetMode(max(f.mode, 0o644))
		w, err := z.CreateHeader(h)
		require.NoError(t, err)
		_, err = w.Write([]byte(f.text))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return out.Bytes()
}

// bundled returns the choice of a served bundle, with its checksum or another one.
func bundled(t *testing.T, archive []byte, sum string) *mcpregistry.Choice {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/w.mcpb" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(archive)
	}))
	t.Cleanup(web.Close)
	if sum == "" {
		of := sha256.Sum256(archive)
		sum = hex.EncodeToString(of[:])
	}
	e := entry(t, fmt.Sprintf(`"packages":[{"registryType":"mcpb","identifier":"%s/w.mcpb","fileSha256":"%s"}]`, web.URL, sum))
	c := e.Choices()[0]
	require.Empty(t, c.Problem)
	require.True(t, c.NeedsDownload())
	return &c
}

func manifested(server, more string) file {
	return file{name: "manifest.json", text: `{"manifest_version":"0.3","name":"w","server":` + server + more + `}`}
}

const nodeServer = `{"type":"node","entry_point":"server/index.js","mcp_config":{"command":"node","args":["${__dirname}/server/index.js","${user_config.dirs}","--level=${user_config.level}","--to=${user_config.to}","$${x} ${HOME}"],
	"env":{"KEY":"${user_config.key}","PYTHONPATH":"${__dirname}${/}lib","OPT":"${user_config.opt}"}}}`

const nodeOptions = `,"user_config":{
	"dirs":{"type":"directory","multiple":true,"required":true,"title":"Folders","default":["${HOME}/Desktop","/b c"]},
	"level":{"type":"number","default":3,"min":1,"max":5},
	"key":{"type":"string","sensitive":true,"required":true,"description":"of a.example"},
	"to":{"type":"string"},"opt":{"type":"string"}}`

func TestBundlesBecomeCommandsInAFolderOfTheirOwn(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "bundles")
	c := bundled(t, zipped(t, manifested(nodeServer, nodeOptions), file{name: "server/index.js", text: "x"}, file{name: "bin/tool", text: "y", mode: 0o755}), "")
	_, err := c.Build("w", nil)
	require.ErrorContains(t, err, "was not downloaded")
	require.NoError(t, (&mcpregistry.Client{}).Download(t.Context(), c, folder))
	require.False(t, c.NeedsDownload())
	var asked []string
	for _, q := range c.Variables() {
		asked = append(asked, fmt.Sprintf("%s %s %v %v %q", q.Key, q.Format, q.Required, q.Secret, q.Default))
	}
	require.ElementsMatch(t, []string{`dirs filepath true false "${HOME}/Desktop, /b c"`, `level number false false "3"`, `to string false false ""`, `key string true true ""`, `opt string false false ""`}, asked)

	_, err = c.Build("w", nil)
	require.ErrorContains(t, err, "needs key; set it with --set key=VALUE")
	_, err = c.Build("w", set("key", "k", "level", "9"))
	require.ErrorContains(t, err, "level must be 5 or less")
	_, err = c.Build("w", set("key", "k", "level", "0"))
	require.ErrorContains(t, err, "level must be 1 or more")
	d, err := c.Build("w", set("key", "hunter2"))
	require.NoError(t, err)
	in := d.Keys["cwd"].(string)
	require.Equal(t, folder, filepath.Dir(in))
	require.Equal(t, strings.Join([]string{"node", in + "/server/index.js", "${HOME}/Desktop", "/b c", "--level=3", "$$${x} ${HOME}"}, "|"), line(d))
	require.Equal(t, map[string]string{"KEY": "${keyring:w.key}", "PYTHONPATH": in + string(filepath.Separator) + "lib"}, d.Keys["env"])
	require.NoDirExists(t, in, "unpacked on demand only")
	d, err = c.Build("w", set("key", "${K}", "dirs", "/x", "dirs", "/y", "to", "z"))
	require.NoError(t, err)
	require.Contains(t, line(d), "|/x|/y|--level=3|--to=z|")
	require.Empty(t, d.Secrets)

	require.NoError(t, c.Unpack())
	require.NoError(t, c.Unpack(), "a second time changes nothing")
	text, err := os.ReadFile(filepath.Join(in, "server", "index.js"))
	require.NoError(t, err)
	require.Equal(t, "x", string(text))
	info, err := os.Stat(filepath.Join(in, "bin", "tool"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode())
	c.Discard()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1, "the download is removed")
}

func TestBundlesOfEachTypeSayHowTheyRun(t *testing.T) {
	t.Parallel()
	here, other := runtime.GOOS, "win32"
	for name, test := range map[string]struct{ server, want string }{
		"a binary":               {`{"type":"binary","entry_point":"server/w","mcp_config":{"command":"server/w","args":["x"]}}`, "DIR/server/w|x"},
		"node, by its type":      {`{"type":"node","entry_point":"index.js"}`, "node|DIR/index.js"},
		"Python, by its type":    {`{"type":"python","entry_point":"main.py"}`, "python3|DIR/main.py"},
		"uv, by its type":        {`{"type":"uv","entry_point":"main.py"}`, "uv|run|--directory|DIR|DIR/main.py"},
		"another platform's":     {`{"type":"node","mcp_config":{"command":"node","args":["a"],"platform_overrides":{"` + other + `":{"args":["b"]}}}}`, "node|a"},
		"this platform's":        {`{"type":"node","mcp_config":{"command":"node","args":["a"],"platform_overrides":{"` + here + `":{"args":["b"]}}}}`, "node|b"},
		"what no config expands": {`{"type":"node","mcp_config":{"command":"node","args":["${cmd:rm -rf /}","${user_config.none}"]}}`, "node|$${cmd:rm -rf /}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := bundled(t, zipped(t, manifested(test.server, ""), file{name: "server/w", text: "x"}), "")
			require.NoError(t, (&mcpregistry.Client{}).Download(t.Context(), c, t.TempDir()))
			d, err := c.Build("w", nil)
			require.NoError(t, err)
			require.Equal(t, test.want, strings.ReplaceAll(line(d), d.Keys["cwd"].(string), "DIR"))
			require.NoError(t, c.Unpack())
			if name == "a binary" {
				info, err := os.Stat(filepath.Join(d.Keys["cwd"].(string), "server", "w"))
				require.NoError(t, err)
				require.NotZero(t, info.Mode()&0o100, "executable regardless of the archive")
			}
		})
	}
}

func TestBundlesThatCannotBeTrustedAreNotUnpacked(t *testing.T) {
	t.Parallel()
	fine := manifested(nodeServer, "")
	for name, test := range map[string]struct {
		archive []byte
		sum     string
		want    string
	}{
		"another file":         {zipped(t, fine), strings.Repeat("ab", 32), "checksum mismatch"},
		"no archive":           {[]byte("<html>"), "", "not a bundle"},
		"no manifest":          {zipped(t, file{name: "x"}), "", "no manifest.json"},
		"a broken manifest":    {zipped(t, file{name: "manifest.json", text: "{"}), "", "manifest.json:"},
		"a huge manifest":      {zipped(t, file{name: "manifest.json", text: strings.Repeat(" ", 1<<20+1)}), "", "too large"},
		"no command":           {zipped(t, manifested(`{"type":"python"}`, "")), "", "no command for server type"},
		"other platforms":      {zipped(t, manifested(nodeServer, `,"compatibility":{"platforms":["win32"]}`)), "", "for win32 only"},
		"an odd variable":      {zipped(t, manifested(`{"mcp_config":{"command":"x","env":{"A=B":"c"}}}`, "")), "", "environment variable"},
		"a path out of it":     {zipped(t, fine, file{name: "../evil"}), "", "leaves the bundle"},
		"an absolute path":     {zipped(t, fine, file{name: "/etc/evil"}), "", "leaves the bundle"},
		"a path of Windows":    {zipped(t, fine, file{name: `..\evil`}), "", "leaves the bundle"},
		"a link":               {zipped(t, fine, file{name: "l", text: "/etc/passwd", mode: os.ModeSymlink | 0o777}), "", "is not a regular file"},
		"two of the same":      {zipped(t, fine, file{name: "a", text: "1"}, file{name: "a", text: "2"}), "", "exists"},
		"not there (any more)": {nil, "", "HTTP 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			c := bundled(t, test.archive, test.sum)
			if test.archive == nil {
				e := entry(t, `"packages":[{"registryType":"mcpb","identifier":"`+httptest404(t)+`/none.mcpb","fileSha256":"`+strings.Repeat("0", 64)+`"}]`)
				c = &e.Choices()[0]
			}
			err := (&mcpregistry.Client{}).Download(t.Context(), c, folder)
			if err == nil {
				err = c.Unpack()
				c.Discard()
			}
			require.ErrorContains(t, err, test.want)
			left, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	for name, pkg := range map[string]string{
		"no sum":       `"identifier":"https://e.com/w.mcpb"`,
		"no https":     `"identifier":"http://e.com/w.mcpb","fileSha256":"` + strings.Repeat("0", 64) + `"`,
		"not a URL":    `"identifier":"w.mcpb","fileSha256":"` + strings.Repeat("0", 64) + `"`,
		"a user in it": `"identifier":"https://u:p@e.com/w.mcpb","fileSha256":"` + strings.Repeat("0", 64) + `"`,
	} {
		c := entry(t, `"packages":[{"registryType":"mcpb",`+pkg+`}]`)
		require.NotEmpty(t, c.Choices()[0].Problem, name)
	}
}

// A registry on the internet must not cause requests to this machine or its network.
func TestRegistriesOnTheInternetNameNoPrivateBundles(t *testing.T) {
	t.Parallel()
	archive := zipped(t, manifested(nodeServer, ""))
	c := bundled(t, archive, "")
	err := (&mcpregistry.Client{BaseURL: "https://192.0.2.1"}).Download(t.Context(), c, t.TempDir())
	require.ErrorContains(t, err, "names the private address 127.0.0.1")
	require.True(t, c.NeedsDownload())
	require.NoError(t, (&mcpregistry.Client{BaseURL: "http://127.0.0.1:1"}).Download(t.Context(), c, t.TempDir()))
}

// httptest404 returns the URL of a server that answers 404.
func httptest404(t *testing.T) string {
	t.Helper()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	return web.URL
}
