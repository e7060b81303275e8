//go:build !linux

package childproc

import (
	"bufio"
	"bytes"
	"context"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// GroupUsage measures a process group with ps. It returns zero values without ps.
func GroupUsage(group int) Usage {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-axo", "pgid=,rss=,time=").Output()
	if err != nil {
		return Usage{}
	}
	var u Usage
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[0] != strconv.Itoa(group) {
			continue
		}
		kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
		u.Processes++
		u.Memory += kilobytes << 10
		u.CPUTime += parseTime(fields[2])
	}
	return u
}

// parseTime parses the time format of ps: [[days-]hours:]minutes:seconds[.hundredths].
func parseTime(s string) time.Duration {
	days, rest, ok := strings.Cut(s, "-")
	if !ok {
		days, rest = "0", s
	}
	n, _ := strconv.Atoi(days)
	total := float64(n)
	parts := strings.Split(rest, ":")
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	for i, part := range parts {
		v, _ := strconv.ParseFloat(part, 64)
		total = total*[]float64{24, 60, 60}[min(i, 2)] + v
	}
	return time.Duration(total * float64(time.Second))
}
