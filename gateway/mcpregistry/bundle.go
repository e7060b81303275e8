package mcpregistry

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Limits of a bundle.
const (
	maxBundle      = 512 << 20 // bytes of the download
	maxUnpacked    = 2 << 30   // bytes
	maxBundleFiles = 100_000
	maxManifest    = 1 << 20 // bytes
	bundleTime     = 15 * time.Minute
)

var sum = once(`^[A-Fa-f0-9]{64}$`)

// bundleProblem returns why a bundle can't be used, or "". A checksum is required, to
// verify the download.
func bundleProblem(p *Package) string {
	u, err := url.Parse(p.Identifier)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return "its identifier is not an https URL"
	case !sum().MatchString(p.SHA256):
		return "it has no checksum (fileSha256), so the download can't be verified"
	}
	return ""
}

func loopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// bundle is an archive with a server and its manifest
// (https://github.com/modelcontextprotocol/mcpb/blob/main/MANIFEST.md).
type bundle struct {
	file     string // the download
	folder   string // target of Unpack
	manifest manifest
}

type manifest struct {
	Server struct {
		Type  string `json:"type"`        // node, python, binary or uv
		Entry string `json:"entry_point"` // the main file
		Run   struct {
			commandLine
			Platforms map[string]commandLine `json:"platform_overrides"`
		} `json:"mcp_config"`
	} `json:"server"`
	UserConfig    map[string]option `json:"user_config"`
	Compatibility struct {
		Platforms []string `json:"platforms"`
	} `json:"compatibility"`
}

type commandLine struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

type option struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Sensitive   bool            `json:"sensitive"`
	Multiple    bool            `json:"multiple"`
	Default     json.RawMessage `json:"default"`
	Min         *float64        `json:"min"`
	Max         *float64        `json:"max"`
}

// NeedsDownload reports whether the choice is a bundle that needs [Client.Download]
// before it can be built.
func (c *Choice) NeedsDownload() bool { return c.Kind == "mcpb" && c.Problem == "" && c.bundle == nil }

// Download downloads a choice's bundle into a folder, which it creates, and reads the
// manifest. It neither unpacks nor runs anything. [Choice.Discard] removes the download.
func (c *Client) Download(ctx context.Context, ch *Choice, folder string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, bundleTime)
	defer cancel()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, "*.part") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(fmt.Errorf("bundle %s: %w", ch.pkg.Identifier, err), os.Remove(f.Name()))
		}
	}()
	hash := sha256.New()
	if err := c.save(ctx, ch.pkg.Identifier, io.MultiWriter(f, hash)); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); !strings.EqualFold(got, ch.pkg.SHA256) {
		return fmt.Errorf("checksum mismatch: got %s, want %s", got, strings.ToLower(ch.pkg.SHA256))
	}
	name := strings.ToLower(ch.entry.ShortName()) + "-" + strings.ToLower(ch.pkg.SHA256[:12])
	b := &bundle{file: f.Name(), folder: filepath.Join(folder, name)}
	if err := b.read(); err != nil {
		return err
	}
	ch.bundle = b
	return nil
}

func (c *Client) save(ctx context.Context, from string, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "goblin/"+c.Version)
	resp, err := c.do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	n, err := io.Copy(to, io.LimitReader(resp.Body, maxBundle+1))
	if err == nil && n > maxBundle {
		err = fmt.Errorf("larger than %d MiB", maxBundle>>20)
	}
	return err
}

func platform() string {
	if runtime.GOOS == "windows" {
		return "win32"
	}
	return runtime.GOOS
}

func (b *bundle) read() error {
	z, err := zip.OpenReader(b.file)
	if err != nil {
		return fmt.Errorf("not a bundle: %w", err)
	}
	defer z.Close()
	f, err := z.Open("manifest.json")
	if err != nil {
		return errors.New("no manifest.json")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(text) > maxManifest {
		err = errors.New("too large")
	}
	if err == nil {
		err = json.Unmarshal(text, &b.manifest)
	}
	if err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	if only := b.manifest.Compatibility.Platforms; len(only) > 0 && !slices.Contains(only, platform()) {
		return fmt.Errorf("for %s only, not for %s", strings.Join(only, ", "), platform())
	}
	if len(b.manifest.UserConfig) > maxParts {
		return errors.New("manifest.json: too many options")
	}
	run := b.manifest.commandLine()
	if run.Command == "" {
		return fmt.Errorf("manifest.json: no command for server type %q", b.manifest.Server.Type)
	}
	for name := range run.Env {
		if !envName().MatchString(name) {
			return errors.New("manifest.json: an environment variable has an invalid name")
		}
	}
	return nil
}

func (m *manifest) commandLine() commandLine {
	run := m.Server.Run.commandLine
	if own, ok := m.Server.Run.Platforms[platform()]; ok {
		run.Command = cmp.Or(own.Command, run.Command)
		if own.Args != nil {
			run.Args = own.Args
		}
		if own.Env != nil {
			run.Env = own.Env
		}
	}
	if entry := "${__dirname}/" + m.Server.Entry; run.Command == "" && m.Server.Entry != "" {
		switch m.Server.Type {
		case "node":
			run.Command, run.Args = "node", []string{entry}
		case "python":
			run.Command, run.Args = "python3", []string{entry}
		case "uv":
			run.Command, run.Args = "uv", []string{"run", "--directory", "${__dirname}", entry}
		case "binary":
			run.Command = entry
		}
	}
	// Relative paths are in the bundle, regardless of the working directory.
	if strings.Contains(run.Command, "/") && !strings.HasPrefix(run.Command, "$") && !path.IsAbs(run.Command) {
		run.Command = "${__dirname}/" + run.Command
	}
	if runtime.GOOS == "windows" && m.Server.Type == "binary" && path.Ext(run.Command) == "" {
		run.Command += ".exe"
	}
	return run
}

func (b *builder) bundle(bun *bundle, keys map[string]any) {
	run := bun.manifest.commandLine()
	command, _ := b.text(bun, run.Command)
	keys["command"] = b.join(command)
	var args []string
	for _, arg := range run.Args {
		if name, ok := strings.CutPrefix(arg, "${user_config."); ok && strings.HasSuffix(name, "}") && !strings.Contains(name, "${") {
			values, _ := b.option(bun, strings.TrimSuffix(name, "}"))
			for _, v := range values { // one argument each
				args = append(args, b.join(v))
			}
			continue
		}
		if pieces, whole := b.text(bun, arg); whole {
			args = append(args, b.join(pieces))
		}
	}
	if len(args) > 0 {
		keys["args"] = args
	}
	env := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(run.Env)) {
		if pieces, whole := b.text(bun, run.Env[name]); whole {
			env[name] = b.join(pieces)
		}
	}
	if len(env) > 0 {
		keys["env"] = env
	}
	keys["cwd"] = literal(bun.folder)
}

// text replaces references in a template. whole is false if one has no value.
func (b *builder) text(bun *bundle, template string) (pieces []segment, whole bool) {
	whole = true
	end := 0
	for _, at := range references().FindAllStringIndex(template, -1) {
		name := template[at[0]+2 : at[1]-1]
		var value []segment
		switch name {
		case "__dirname":
			value = []segment{{text: bun.folder}}
		case "HOME":
			value = []segment{{"${HOME}", true}}
		case "DESKTOP", "DOCUMENTS", "DOWNLOADS":
			value = []segment{{"${HOME}", true}, {text: "/" + name[:1] + strings.ToLower(name[1:])}}
		case "pathSeparator", "/":
			value = []segment{{text: string(filepath.Separator)}}
		default:
			key, ok := strings.CutPrefix(name, "user_config.")
			if !ok {
				continue
			}
			values, has := b.option(bun, key)
			whole = whole && has
			if has && len(values) > 0 {
				value = values[0]
			}
		}
		pieces = append(append(pieces, segment{text: template[end:at[0]]}), value...)
		end = at[1]
	}
	return append(pieces, segment{text: template[end:]}), whole
}

func (b *builder) option(bun *bundle, key string) (values [][]segment, ok bool) {
	o, known := bun.manifest.UserConfig[key]
	if !known {
		return nil, false
	}
	in := Input{Description: cmp.Or(o.Description, o.Title), Required: o.Required, Secret: o.Sensitive, Format: o.Type, Min: o.Min, Max: o.Max}
	if o.Type == "directory" || o.Type == "file" {
		in.Format = "filepath"
	}
	defaults := o.defaults()
	in.Default = strings.Join(defaults, ", ")
	values, ok = b.answer(key, in, o.Multiple)
	if len(b.answers[key]) == 0 && len(defaults) > 0 {
		values = nil
		for _, text := range defaults {
			pieces, _ := b.text(&bundle{folder: bun.folder}, text)
			values = append(values, pieces)
		}
	}
	return values, ok
}

func (o *option) defaults() []string {
	var list []any
	if json.Unmarshal(o.Default, &list) != nil {
		var one any
		if json.Unmarshal(o.Default, &one) != nil || one == nil {
			return nil
		}
		list = []any{one}
	}
	var texts []string
	for _, v := range list {
		if text := fmt.Sprint(v); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// Discard removes a choice's download, but not what was unpacked.
func (c *Choice) Discard() {
	if c.bundle != nil {
		_ = os.Remove(c.bundle.file) // a leftover does no harm
	}
}

// Unpack unpacks the bundle of a choice, unless it was unpacked before. Other choices are
// ignored.
func (c *Choice) Unpack() error {
	if c.bundle == nil {
		return nil
	}
	if err := c.bundle.unpack(); err != nil {
		return fmt.Errorf("unpack bundle %s: %w", c.pkg.Identifier, err)
	}
	return nil
}

func (b *bundle) unpack() (err error) {
	if _, err := os.Stat(b.folder); err == nil {
		return nil // its name contains the checksum
	}
	z, err := zip.OpenReader(b.file)
	if err != nil {
		return err
	}
	defer z.Close()
	temp, err := os.MkdirTemp(filepath.Dir(b.folder), "*.part") // mode 0700
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	if len(z.File) > maxBundleFiles {
		return fmt.Errorf("more than %d files", maxBundleFiles)
	}
	room := int64(maxUnpacked)
	main := path.Clean(strings.TrimPrefix(b.manifest.commandLine().Command, "${__dirname}/"))
	for _, f := range z.File {
		if room, err = extract(f, temp, room, path.Clean(f.Name) == main); err != nil {
			return err
		}
	}
	return os.Rename(temp, b.folder)
}

// extract rejects paths outside of the folder.
func extract(f *zip.File, folder string, room int64, runs bool) (left int64, err error) {
	mode := f.Mode()
	switch {
	case !filepath.IsLocal(filepath.FromSlash(f.Name)) || strings.Contains(f.Name, `\`):
		return room, errors.New("it contains a path that leaves the bundle")
	case mode.IsDir():
		return room, os.MkdirAll(filepath.Join(folder, filepath.FromSlash(f.Name)), 0o700)
	case !mode.IsRegular():
		return room, fmt.Errorf("%q is not a regular file", path.Base(f.Name))
	}
	to := filepath.Join(folder, filepath.FromSlash(f.Name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return room, err
	}
	in, err := f.Open()
	if err != nil {
		return room, err
	}
	defer in.Close()
	perm := fs.FileMode(0o600)
	if runs || mode&0o111 != 0 {
		perm = 0o700
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return room, err
	}
	n, err := io.Copy(out, io.LimitReader(in, room+1))
	if err == nil && n > room {
		err = fmt.Errorf("more than %d MiB", maxUnpacked>>20)
	}
	return room - n, errors.Join(err, out.Close())
}
