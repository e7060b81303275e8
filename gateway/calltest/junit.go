package calltest

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"goblin/registry/savedcall"
)

// The elements of JUnit's format, as Jenkins and Surefire define it.
type (
	testSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		counts
		Suites []testSuite `xml:"testsuite"`
	}
	testSuite struct {
		Name string `xml:"name,attr"`
		counts
		Skipped   int        `xml:"skipped,attr"`
		Timestamp string     `xml:"timestamp,attr"`
		Cases     []testCase `xml:"testcase"`
	}
	counts struct {
		Time     string `xml:"time,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
	}
	testCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		Time    string       `xml:"time,attr"`
		Failure *testMessage `xml:"failure"`
		Error   *testMessage `xml:"error"`
		Skipped *testMessage `xml:"skipped"`
	}
	testMessage struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit returns the report in JUnit's XML format: a suite per folder and a case per file.
// A server that could not be reached is an error, any other failure is a failure.
func (r *Report) JUnit() ([]byte, error) {
	all := testSuites{Name: "goblin test", counts: count(r.Results, r.Took), Suites: []testSuite{}}
	for _, folder := range r.folders() {
		name := validXML(filepath.ToSlash(folderOf(&folder[0])))
		var took time.Duration
		suite := testSuite{Name: name, Timestamp: r.Began.UTC().Format("2006-01-02T15:04:05")}
		for i := range folder {
			one := &folder[i]
			took += one.Answer.Time
			suite.Cases = append(suite.Cases, r.testCase(name, one))
			if one.State == savedcall.Skipped {
				suite.Skipped++
			}
		}
		suite.counts = count(folder, took)
		all.Suites = append(all.Suites, suite)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write JUnit: %w", err)
	}
	return append([]byte(xml.Header), append(text, '\n')...), nil
}

func (r *Report) testCase(class string, one *savedcall.Result) testCase {
	c := testCase{Name: validXML(filepath.Base(one.Call.Path)), Class: class, Time: seconds(one.Answer.Time)}
	headline, check := r.headline(one)
	message := &testMessage{Type: check, Message: validXML(headline), Text: validXML(r.describe(one))}
	switch {
	case one.State == savedcall.Skipped:
		message.Type = ""
		c.Skipped = message
	case one.State == savedcall.Failed && one.Unreachable:
		c.Error = message
	case one.State == savedcall.Failed:
		c.Failure = message
	}
	return c
}

func count(results []savedcall.Result, took time.Duration) counts {
	var t Totals
	for i := range results {
		t.add(&results[i])
	}
	return counts{Time: seconds(took), Tests: t.Calls, Failures: t.Failed - t.Unreachable, Errors: t.Unreachable}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// validXML removes the characters that XML 1.0 cannot contain.
func validXML(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000:
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
