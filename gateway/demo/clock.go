package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a zone database

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	zoneTemplate = "clock://zones/{zone}"
	zonePrefix   = "clock://zones/"
)

// zones are offered by completion, but any IANA zone can be read.
var zones = strings.Fields(`Africa/Cairo Africa/Johannesburg Africa/Lagos Africa/Nairobi
	America/Anchorage America/Argentina/Buenos_Aires America/Bogota America/Chicago America/Denver
	America/Halifax America/Los_Angeles America/Mexico_City America/New_York America/Sao_Paulo
	America/St_Johns America/Toronto America/Vancouver Antarctica/Troll Asia/Bangkok Asia/Dubai
	Asia/Hong_Kong Asia/Istanbul Asia/Jakarta Asia/Kathmandu Asia/Kolkata Asia/Manila Asia/Seoul
	Asia/Shanghai Asia/Singapore Asia/Tehran Asia/Tokyo Atlantic/Azores Atlantic/Reykjavik
	Australia/Adelaide Australia/Brisbane Australia/Perth Australia/Sydney Europe/Amsterdam
	Europe/Athens Europe/Berlin Europe/Dublin Europe/Helsinki Europe/Kyiv Europe/Lisbon
	Europe/London Europe/Madrid Europe/Oslo Europe/Paris Europe/Rome Europe/Vienna Europe/Warsaw
	Europe/Zurich Indian/Maldives Pacific/Auckland Pacific/Chatham Pacific/Honolulu UTC`)

type zoneTime struct {
	Zone           string `json:"zone"`
	Time           string `json:"time" jsonschema:"RFC 3339, with the zone's offset"`
	Weekday        string `json:"weekday"`
	Abbreviation   string `json:"abbreviation"`
	Offset         string `json:"offset" jsonschema:"distance from UTC, e.g. +05:45"`
	DaylightSaving bool   `json:"daylightSaving"`
}

func describeTime(t time.Time, zone string) zoneTime {
	abbreviation, _ := t.Zone()
	return zoneTime{
		Zone: zone, Time: t.Format(time.RFC3339), Weekday: t.Weekday().String(),
		Abbreviation: abbreviation, Offset: t.Format("-07:00"), DaylightSaving: t.IsDST(),
	}
}

func (z zoneTime) json() string {
	text, _ := json.MarshalIndent(z, "", "  ") // can't fail
	return string(text) + "\n"
}

type clock struct {
	p       *peer
	started time.Time
}

func newClock(p *peer) backend {
	c := &clock{p: p, started: time.Now()}
	allZones := func(map[string]string) []string { return zones }
	completions := completer{
		zoneTemplate + " zone":    allZones,
		"find_meeting_time here":  allZones,
		"find_meeting_time there": allZones,
	}
	srv := newServer(p, "clock", "Clock",
		"The time, here and elsewhere, as resources that tick.",
		"Read clock://now for the time and subscribe to it for an update every second. "+
			"clock://zones/{zone} and the tool time_in support every zone of the IANA database, e.g. Europe/Berlin.",
		"🕰️", completions)
	c.addResources(srv)
	c.addTools(srv)
	srv.addPrompt(newPrompt("find_meeting_time", "Find a time to meet", "🤝", "Asks for a time that suits two time zones.",
		argument("here", "Your zone", "e.g. Europe/Berlin", mcp.RequiredArgument()),
		argument("there", "Their zone", "e.g. Asia/Tokyo", mcp.RequiredArgument()),
	), c.meetingPrompt)
	return backend{exists: c.exists, background: c.tick}
}

func (c *clock) addResources(srv *server) {
	add := func(uri, name, title, description, mime, emoji string, read func() string) {
		srv.addResource(mcp.NewResource(uri, name,
			mcp.WithResourceTitle(title), mcp.WithResourceDescription(description),
			mcp.WithMIMEType(mime), mcp.WithResourceIcons(icon(emoji)),
		), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return textContents(uri, mime, read()), nil
		})
	}
	add("clock://now", "now", "The time now", "Date and time in UTC. Subscribe to it: it changes every second.", "text/plain", "🕛",
		func() string { return time.Now().UTC().Format("Monday, 2 January 2006, 15:04:05 UTC") })
	add("clock://now.json", "now.json", "The time now, for programs", "The same as JSON, ticking too", "application/json", "🕛",
		func() string { return describeTime(time.Now().UTC(), "UTC").json() })
	add("clock://uptime", "uptime", "Uptime", "How long this clock has been running", "text/plain", "⏱️",
		func() string { return time.Since(c.started).Round(time.Second).String() })
	add("clock://moon", "moon", "The moon tonight", "Phase of the moon, by the mean month", "text/plain", "🌙",
		func() string { return moon(time.Now()) })
	add("clock://zones", "zones", "Time zones", "The zones that completion offers", "application/json", "🌍",
		func() string {
			text, _ := json.MarshalIndent(zones, "", "  ") // can't fail
			return string(text) + "\n"
		})
	srv.addTemplate(newTemplate(zoneTemplate, "zone", "The time in a zone", "🌍", "application/json",
		"Date and time in a zone of the IANA database, e.g. Europe/Berlin, which a URI spells Europe%2FBerlin. Ticks every second.",
	), func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		zone, loc, ok := zoneOf(req.Params.URI)
		if !ok {
			return nil, errNoResource(req.Params.URI)
		}
		return textContents(req.Params.URI, "application/json", describeTime(time.Now().In(loc), zone).json()), nil
	})
}

func (c *clock) addTools(srv *server) {
	srv.addTool(newTool("time_in", "The time in a zone", "🌍", readOnly|idempotent,
		"Returns the time in a time zone, now or at a given moment.",
		mcp.WithString("zone", mcp.Required(), mcp.MaxLength(64), mcp.Description("Name in the IANA database, e.g. Europe/Berlin or UTC")),
		mcp.WithString("at", mcp.MaxLength(40), mcp.Description("A moment in RFC 3339, e.g. 2026-07-01T12:00:00Z; default: now")),
		outputSchema[zoneTime](),
	), mcp.NewTypedToolHandler(c.timeIn))
	srv.addTool(newTool("countdown", "Count down", "🚀", readOnly|idempotent,
		"Counts down to zero, reports progress at every step, and can be cancelled. Ten seconds by default.",
		mcp.WithInteger("from", mcp.Min(1), mcp.Max(3600), mcp.DefaultNumber(10), mcp.Description("Where to start")),
		mcp.WithInteger("interval_ms", mcp.Min(1), mcp.Max(60000), mcp.DefaultNumber(1000), mcp.Description("Milliseconds between two steps")),
	), c.countdown)
}

func (c *clock) timeIn(_ context.Context, _ mcp.CallToolRequest, args struct {
	Zone string `json:"zone"`
	At   string `json:"at"`
},
) (*mcp.CallToolResult, error) {
	loc, ok := loadZone(args.Zone)
	if !ok {
		return mcp.NewToolResultErrorf("unknown zone %q: use a name of the IANA database, e.g. Europe/Berlin; clock://zones lists some", args.Zone), nil
	}
	t := time.Now()
	if args.At != "" {
		var err error
		if t, err = time.Parse(time.RFC3339, args.At); err != nil {
			return mcp.NewToolResultErrorf("invalid time %q in at; use the form 2026-07-01T12:00:00Z", args.At), nil
		}
	}
	t = t.In(loc)
	return structured(describeTime(t, args.Zone), "It is "+t.Format("Monday, 2 January 2006, 15:04:05 MST")+" in "+args.Zone+"."), nil
}

func (c *clock) countdown(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	from, interval := req.GetInt("from", 10), req.GetInt("interval_ms", 1000)
	steps := c.p.progress(req, from)
	for left := from; left > 0; left-- {
		if !wait(ctx, time.Duration(interval)*time.Millisecond) {
			c.p.log("clock", fmt.Sprintf("countdown stopped at %d", left))
			return mcp.NewToolResultErrorf("stopped at %d", left), nil
		}
		message := fmt.Sprintf("%d…", left-1)
		if left == 1 {
			message = "Lift-off!"
		}
		steps.step(from-left+1, message)
	}
	return mcp.NewToolResultText(fmt.Sprintf("Counted down from %d. Lift-off!", from)), nil
}

func (c *clock) meetingPrompt(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	var contents []mcp.Content
	for _, arg := range []string{"here", "there"} {
		zone := req.Params.Arguments[arg]
		loc, ok := loadZone(zone)
		if !ok {
			return nil, fmt.Errorf("argument %q: unknown zone %q, use a name such as Europe/Berlin", arg, zone)
		}
		contents = append(contents, embedded(zonePrefix+url.PathEscape(zone), "application/json", describeTime(time.Now().In(loc), zone).json()))
	}
	contents = append(contents, mcp.NewTextContent("I live in the first of these zones, my friend in the second. Propose three times this week that suit both of us."))
	return promptResult("A time to meet", contents...), nil
}

// tick notifies subscribers of the ticking resources every full second.
func (c *clock) tick(ctx context.Context) {
	for wait(ctx, time.Second-time.Duration(time.Now().Nanosecond())) {
		for _, uri := range c.p.subscribed() {
			if uri != "clock://zones" && uri != "clock://moon" {
				c.p.notifyUpdated(uri)
			}
		}
	}
}

func (c *clock) exists(uri string) bool {
	switch uri {
	case "clock://now", "clock://now.json", "clock://uptime", "clock://moon", "clock://zones":
		return true
	}
	_, _, ok := zoneOf(uri)
	return ok
}

func zoneOf(uri string) (zone string, loc *time.Location, ok bool) {
	rest, ok := strings.CutPrefix(uri, zonePrefix)
	if !ok || strings.Contains(rest, "/") {
		return "", nil, false
	}
	zone, err := url.PathUnescape(rest)
	if err != nil {
		return "", nil, false
	}
	loc, ok = loadZone(zone)
	return zone, loc, ok
}

// loadZone rejects "" and "Local", which Go accepts.
func loadZone(zone string) (*time.Location, bool) {
	if zone == "" || zone == "Local" || len(zone) > 64 {
		return nil, false
	}
	loc, err := time.LoadLocation(zone)
	return loc, err == nil
}

func moon(t time.Time) string {
	const month = 29.530588853 // mean synodic month in days
	newMoon := time.Date(2000, time.January, 6, 18, 14, 0, 0, time.UTC)
	age := math.Mod(t.Sub(newMoon).Hours()/24, month)
	phases := []string{
		"🌑 new moon", "🌒 waxing crescent", "🌓 first quarter", "🌔 waxing gibbous",
		"🌕 full moon", "🌖 waning gibbous", "🌗 last quarter", "🌘 waning crescent",
	}
	return fmt.Sprintf("%s, %.1f days old\n", phases[int(age/month*8+0.5)%8], age)
}
