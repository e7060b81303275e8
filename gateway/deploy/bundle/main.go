// Command bundle builds MCP bundles and the server.json of a release.
//
// See https://github.com/modelcontextprotocol/mcpb/blob/main/MANIFEST.md,
// https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json.
//
// It must not know how the programs are built.
package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const about = "All your MCP servers as one, for every client, with a UI that shows them live."

func main() {
	var r release
	flag.StringVar(&r.folder, "to", "dist-extras/bundles", "the `FOLDER` of bundles")
	flag.StringVar(&r.version, "version", "", "the `VERSION`, such as 1.2.3")
	flag.StringVar(&r.name, "name", "", "how the registry calls the server, for server.json: `NAMESPACE/NAME`")
	flag.StringVar(&r.address, "releases", "", "the `URL` of the folder that will hold the bundles, for server.json; VERSION in it stands for the version")
	flag.StringVar(&r.homepage, "homepage", "", "the `URL` of the repository")
	binary := flag.String("binary", "", "make a bundle of this `PROGRAM`; without it, server.json of all bundles there")
	system := flag.String("os", "", "the program's system, as Go calls it")
	machine := flag.String("arch", "", "the program's processor, as Go calls it")
	flag.Parse()
	r.address = strings.ReplaceAll(r.address, "VERSION", r.version)
	var err error
	if *binary != "" {
		err = r.bundle(*binary, *system, *machine)
	} else {
		err = r.serverJSON()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// release names the files that are published under one version.
type release struct{ folder, version, name, address, homepage string }

// platforms maps Go's names of systems to the names in bundles.
var platforms = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}

type object = map[string]any

// bundle writes a program and its manifest to an archive.
func (r release) bundle(program, system, machine string) (err error) {
	platform, ok := platforms[system]
	if !ok {
		return fmt.Errorf("bundles don't support system %q", system)
	}
	entry := "server/" + filepath.Base(program)
	manifest, err := json.MarshalIndent(object{
		"manifest_version": "0.3",
		"name":             "goblin",
		"display_name":     "Goblin",
		"version":          r.version,
		"description":      about,
		"author":           object{"name": "Goblin contributors"},
		"license":          "MIT",
		"homepage":         r.homepage,
		"server": object{
			"type": "binary", "entry_point": entry,
			"mcp_config": object{"command": "${__dirname}/" + entry, "args": []string{"stdio"}},
		},
		"compatibility":     object{"platforms": []string{platform}},
		"tools_generated":   true,
		"prompts_generated": true,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.folder, fmt.Sprintf("goblin_%s_%s_%s.mcpb", r.version, system, machine)))
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	z := zip.NewWriter(f)
	if err := put(z, "manifest.json", 0o644, manifest); err != nil {
		return err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := put(z, entry, 0o755, text); err != nil {
		return err
	}
	return z.Close()
}

// put adds a file without a time, so that bundles are reproducible.
func put(z *zip.Writer, name string, mode os.FileMode, text []byte) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate}
	h.SetMode(mode)
	w, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// serverJSON writes the description of the release for registries into the folder of
// bundles.
func (r release) serverJSON() error {
	bundles, err := filepath.Glob(filepath.Join(r.folder, "goblin_"+r.version+"_*.mcpb"))
	if err != nil {
		return err
	}
	if len(bundles) == 0 || r.name == "" || r.address == "" || r.homepage == "" {
		return fmt.Errorf("server.json needs -name, -homepage, -releases and bundles of version %q in %s", r.version, r.folder)
	}
	slices.Sort(bundles)
	var packages []object
	for _, b := range bundles {
		sum, err := sumOf(b)
		if err != nil {
			return err
		}
		packages = append(packages, object{
			"registryType": "mcpb", "identifier": r.address + "/" + filepath.Base(b), "version": r.version,
			"fileSha256": sum, "transport": object{"type": "stdio"},
		})
	}
	text, err := json.MarshalIndent(object{
		"$schema":     "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":        r.name,
		"title":       "Goblin",
		"description": about,
		"version":     r.version,
		"websiteUrl":  r.homepage,
		"packages":    packages,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.folder, "server.json"), append(text, '\n'), 0o644)
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
