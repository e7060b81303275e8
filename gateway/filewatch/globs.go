package filewatch

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Globs selects files of a folder. A pattern is a path relative to the folder, with "/"
// between names:
//
//   - * matches any characters of a name, ? one, [a-z] one of a class, {a,b} either text,
//     ** any number of folders.
//   - A pattern whose last name is plain also selects everything in that folder.
//   - A leading ! excludes files.
//   - [Sources] selects source files by their names, as does no pattern but exclusions.
//
// Some folders count only if
// a pattern has their exact name: hidden ones, and those of packages and build outputs.
// Hidden files count only if the last name of a pattern begins with a dot.
type Globs struct {
	include, exclude []glob
	sources          bool
	hiddenFiles      bool
}

// glob is a pattern split into names. "**" stands for any number of folders.
type glob []string

// Limits of one pattern.
const (
	maxAlternatives = 64
	maxGlob         = 1024 // bytes
	maxNames        = 60   // positions fit into 64 bits
)

// sourceExtensions are the extensions of files that Globs selects without patterns.
const sourceExtensions = ".astro .bash .c .cc .clj .cljs .cpp .cr .cs .cjs .cts .cxx .dart .ex .exs .erl .fs .go .groovy .h .hpp .hs .java .jl .js .jsx .kt .kts .lua .m .mjs .ml .mts .nim .php .pl .proto .ps1 .py .pyi .r .rb .rs .scala .sh .sql .svelte .swift .ts .tsx .vue .zig"

// sourceNames are further files that Globs selects without patterns.
const sourceNames = "Cargo.toml Gemfile Makefile build.gradle composer.json deno.json go.mod go.work mix.exs package.json pom.xml pyproject.toml requirements.txt setup.cfg tsconfig.json"

// ignoredFolders hold packages and outputs of builds.
const ignoredFolders = "__pycache__ _build bin build coverage deps dist env node_modules obj out target tmp vendor venv"

// Sources is the pattern of source files.
const Sources = "auto"

// ParseGlobs reads patterns. The error names the wrong one.
func ParseGlobs(patterns ...string) (*Globs, error) {
	g := &Globs{}
	for _, text := range patterns {
		if err := g.add(text); err != nil {
			return nil, fmt.Errorf("pattern %q %w", text, err)
		}
	}
	g.sources = g.sources || len(g.include) == 0
	return g, nil
}

func (g *Globs) add(text string) error {
	rest, excludes := strings.CutPrefix(text, "!")
	switch rest = strings.TrimSuffix(filepath.ToSlash(rest), "/"); {
	case text == Sources:
		g.sources = true
		return nil
	case rest == "":
		return errors.New("is empty")
	case len(rest) > maxGlob:
		return fmt.Errorf("is longer than %d bytes", maxGlob)
	case strings.ContainsRune(rest, 0):
		return errors.New("contains a NUL character")
	case filepath.IsAbs(rest) || rest[0] == '/':
		return errors.New("must be relative to the server's folder")
	}
	all, err := alternatives(rest)
	if err != nil {
		return err
	}
	for _, one := range all {
		names := strings.Split(path.Clean(one), "/")
		for _, name := range names {
			if _, err := path.Match(name, ""); err != nil {
				return errors.New(`is not valid: "[" needs a closing "]", and "\" a character after it`)
			}
		}
		if len(names) > maxNames {
			return fmt.Errorf("has more than %d names", maxNames)
		}
		if names[0] == "." {
			names = glob{"**"}
		}
		if excludes {
			g.exclude = append(g.exclude, names)
			continue
		}
		g.include = append(g.include, names)
		g.hiddenFiles = g.hiddenFiles || strings.HasPrefix(names[len(names)-1], ".")
	}
	return nil
}

// alternatives expands the first {a,b} of a pattern, and then those of the results.
func alternatives(text string) ([]string, error) {
	done, left := []string(nil), []string{text}
	for len(left) > 0 {
		one := left[0]
		left = left[1:]
		from := strings.IndexByte(one, '{')
		if from < 0 {
			if strings.Contains(one, "}") {
				return nil, errors.New(`has "}" without "{"`)
			}
			if done = append(done, one); len(done) > maxAlternatives {
				return nil, fmt.Errorf("stands for more than %d patterns", maxAlternatives)
			}
			continue
		}
		to := strings.IndexByte(one[from:], '}')
		if to < 0 {
			return nil, errors.New(`has "{" without "}"`)
		}
		inner := one[from+1 : from+to]
		if strings.Contains(inner, "{") {
			return nil, errors.New(`has "{" inside "{…}"`)
		}
		if len(left) > maxAlternatives {
			return nil, fmt.Errorf("stands for more than %d patterns", maxAlternatives)
		}
		for word := range strings.SplitSeq(inner, ",") {
			left = append(left, one[:from]+word+one[from+to+1:])
		}
	}
	return done, nil
}

// Match reports whether a file is selected. file is relative to the folder, with slashes.
func (g *Globs) Match(file string) bool {
	names := strings.Split(file, "/")
	last := names[len(names)-1]
	if strings.HasSuffix(last, "~") || strings.HasPrefix(last, ".") && !g.hiddenFiles {
		return false
	}
	matches := func(p glob) bool { return p.match(names, false) }
	if slices.ContainsFunc(g.exclude, matches) {
		return false
	}
	return g.sources && isSource(last) || slices.ContainsFunc(g.include, matches)
}

func isSource(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext != "" && isWord(sourceExtensions, ext) || isWord(sourceNames, name)
}

func isWord(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// Enter reports whether a folder may contain selected files.
func (g *Globs) Enter(folder string) bool {
	names := strings.Split(folder, "/")
	last := names[len(names)-1]
	if last != ".." && (strings.HasPrefix(last, ".") || isWord(ignoredFolders, last)) && !g.hasName(last) {
		return false
	}
	if slices.ContainsFunc(g.exclude, func(p glob) bool { return p.excludesAll(names) }) {
		return false
	}
	return g.sources || slices.ContainsFunc(g.include, func(p glob) bool { return p.match(names, true) })
}

func (g *Globs) hasName(name string) bool {
	return slices.ContainsFunc(g.include, func(p glob) bool { return slices.Contains(p, name) })
}

// roots returns the folders to search, relative to the folder of the patterns.
func (g *Globs) roots() []string {
	var roots []string
	if g.sources {
		roots = append(roots, ".")
	}
	for _, p := range g.include {
		up := 0
		for up < len(p) && p[up] == ".." {
			up++
		}
		root := "."
		if up > 0 { // the plain names after ".."
			end := up
			for end < len(p)-1 && isPlain(p[end]) {
				end++
			}
			root = path.Join(p[:end]...)
		}
		roots = append(roots, root)
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

func isPlain(name string) bool { return name != "**" && !strings.ContainsAny(name, `*?[\`) }

// excludesAll reports whether the glob matches everything in a folder.
func (p glob) excludesAll(folder []string) bool {
	last := p[len(p)-1]
	return (last == "**" || isPlain(last)) && p.match(append(slices.Clone(folder), "x"), false)
}

// match reports whether the glob matches a path. With partial, it reports whether the
// glob may match a file in that folder. It follows all positions in the glob at once, so
// its time is proportional to the product of both lengths.
func (p glob) match(names []string, partial bool) bool {
	whole := uint64(1) << len(p) // the position after the last name
	at := p.skip(0)
	for i, name := range names {
		next := uint64(0)
		for n := range p {
			switch {
			case at&(1<<n) == 0:
			case p[n] == "**":
				next |= p.skip(n)
			case matchName(p[n], name):
				next |= p.skip(n + 1)
			}
		}
		at = next
		if at&whole != 0 && isPlain(p[len(p)-1]) && (partial || i < len(names)-1) {
			return true // the glob names this folder
		}
	}
	if partial {
		return at&(whole-1) != 0
	}
	return at&whole != 0
}

// skip returns the positions that are reached at position n, since ** may match nothing.
func (p glob) skip(n int) uint64 {
	at := uint64(1) << n
	for ; n < len(p) && p[n] == "**"; n++ {
		at |= 1 << (n + 1)
	}
	return at
}

func matchName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
