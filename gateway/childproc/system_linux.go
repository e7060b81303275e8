package childproc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// bootID returns the boot and process namespace in which process ids and start times
// (counted from boot) are valid.
func bootID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

type stat struct {
	member
	group int
	dead  bool
}

func startOf(pid int) (int64, error) {
	s, err := readStat("/proc/" + strconv.Itoa(pid))
	return s.start, err
}

func readStat(dir string) (s stat, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return s, err
	}
	// The program name in parentheses may contain anything.
	number, _, _ := bytes.Cut(text, []byte{' '})
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 { // counted from field 3; 22 is needed
		return s, fmt.Errorf("%s/stat is incomplete", dir)
	}
	s.dead = fields[0] == "Z" || fields[0] == "X"
	if s.pid, err = strconv.Atoi(string(number)); err != nil {
		return s, err
	}
	if s.group, err = strconv.Atoi(fields[2]); err != nil {
		return s, err
	}
	if s.session, err = strconv.Atoi(fields[3]); err != nil {
		return s, err
	}
	s.start, err = strconv.ParseInt(fields[19], 10, 64)
	return s, err
}

func members(all []child) map[int][]member {
	groups := make(map[int][]member, len(all))
	for _, c := range all {
		groups[c.PID] = nil
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		s, err := readStat(dir)
		if err != nil || s.dead {
			continue
		}
		if group, ok := groups[s.group]; ok {
			groups[s.group] = append(group, s.member)
		}
	}
	return groups
}
