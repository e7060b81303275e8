// Command measure counts what keeps the rooms of Goblin's code apart: production
// lines, mutual uses between the files of each package, and the packages and turns of
// two requests on their way through a Goblin that records which functions are called.
//
// It imports nothing of Goblin. Its tests are the rules that CONTRIBUTING.md gives: who
// may import whom, how large a package may be, and the table of the layout, which they
// also write.
package main

import (
	"fmt"
	"io"
	"os"
)

// Production lines at f5ece24, and what the restructuring since may end at.
const (
	linesBefore = 75_980
	linesTarget = 71_900
)

func main() {
	if err := run(os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string) error {
	all, total, err := packages(root)
	if err != nil {
		return err
	}
	compiled, err := exports(root)
	if err != nil {
		return err
	}
	const row = "%-34s %6d %6d %6d %7d\n"
	fmt.Fprintf(out, "%-34s %6s %6s %6s %7s\n", "package", "files", "lines", "uses", "mutual")
	for _, p := range all {
		path := module + "/" + p.name
		if p.name == "main" {
			path = module
		}
		directions, mutual, err := uses(compiled, compiled[path])
		if err != nil {
			return err
		}
		fmt.Fprintf(out, row, p.name, len(p.GoFiles), p.lines, directions, mutual)
	}
	fmt.Fprintf(out, "%-34s %6s %6d (%+d against f5ece24, target %d)\n", "total", "", total, total-linesBefore, linesTarget)
	return walks(out, root, compiled)
}
