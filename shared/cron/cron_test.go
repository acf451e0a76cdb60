package cron_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/cronexpr"

	"github.com/bdk-lambda/bdk/shared/cron"
)

func parse(t *testing.T, text string) cron.Schedule {
	t.Helper()
	s, err := cron.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ expression, after, want string }{
		{"* * * * *", "2026-12-01 13:54:00", "2026-12-01 13:55:00"},
		{"* * * * *", "2026-12-01 13:54:59", "2026-12-01 13:55:00"},
		{"*/15 * * * *", "2026-12-01 13:45:00", "2026-12-01 14:00:00"},
		{"5-59/15 9-17 * * *", "2026-12-01 17:50:00", "2026-12-02 09:05:00"},
		{"0 9 * * 1-5", "2026-12-04 09:00:00", "2026-12-07 09:00:00"},     // Friday, then Monday
		{"0 9 * * MON-fri", "2026-12-04 09:00:00", "2026-12-07 09:00:00"}, // names, in any letters
		{"0 0 * * 0", "2026-12-01 00:00:00", "2026-12-06 00:00:00"},
		{"0 0 * * 7", "2026-12-01 00:00:00", "2026-12-06 00:00:00"},
		{"0 0 * * 5-7", "2026-12-05 00:00:00", "2026-12-06 00:00:00"},
		{"0 0 * * sat-sun", "2026-12-05 00:00:00", "2026-12-06 00:00:00"},
		{"0 0 * * */3", "2026-12-01 00:00:00", "2026-12-02 00:00:00"}, // Sunday, Wednesday, Saturday
		{"0 0 29 2 *", "2026-12-01 00:00:00", "2028-02-29 00:00:00"},
		{"0 0 29 2 *", "2096-12-01 00:00:00", "2104-02-29 00:00:00"}, // 2100 is no leap year
		{"0 0 31 * *", "2026-12-31 00:00:00", "2027-01-31 00:00:00"},
		{"0 0 30 1-2 *", "2026-12-31 00:00:00", "2027-01-30 00:00:00"},
		{"0 0 13 * 5", "2026-12-01 00:00:00", "2026-12-04 00:00:00"}, // the 13th, and Fridays
		{"0 0 13 * 5", "2026-12-11 00:00:00", "2026-12-13 00:00:00"},
		{"0 0 1 JAN *", "2026-12-01 00:00:00", "2027-01-01 00:00:00"},
		{" 00   08 1,15 jan,Jul * ", "2026-12-01 00:00:00", "2027-01-01 08:00:00"},
		{"@hourly", "2026-12-01 13:54:00", "2026-12-01 14:00:00"},
		{"@daily", "2026-12-01 13:54:00", "2026-12-02 00:00:00"},
		{"@midnight", "2026-12-01 13:54:00", "2026-12-02 00:00:00"},
		{"@weekly", "2026-12-01 13:54:00", "2026-12-06 00:00:00"},
		{"@monthly", "2026-12-01 13:54:00", "2027-01-01 00:00:00"},
		{"@yearly", "2026-12-01 13:54:00", "2027-01-01 00:00:00"},
		{"@annually", "2026-12-01 13:54:00", "2027-01-01 00:00:00"},
	} {
		s := parse(t, tc.expression)
		want := at(t, tc.want)
		if got := s.Next(at(t, tc.after)); got != want {
			t.Errorf("%s after %s: got %s; want %s", tc.expression, tc.after, got, tc.want)
		}
		// the zone of the argument has no meaning
		if got := s.Next(at(t, tc.after).In(time.FixedZone("", 5*3600+1800))); got != want {
			t.Errorf("%s after %s, said elsewhere: got %s; want %s", tc.expression, tc.after, got, tc.want)
		}
		if got := s.Last(want.Add(59 * time.Second)); got != want {
			t.Errorf("%s: the last time at %s is %s", tc.expression, tc.want, got)
		}
		if got := s.Last(want.Add(-time.Second)); got.After(at(t, tc.after)) {
			t.Errorf("%s: the last time before %s is %s, which is not the one before", tc.expression, tc.want, got)
		}
	}
}

func TestAWS(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string][]string{
		"* * * * *":           {"cron(* * * * ? *)"},
		"*/15 9-17 * * 1-5":   {"cron(0,15,30,45 9-17 ? * MON,TUE,WED,THU,FRI *)"},
		"0 0 * * 5-7":         {"cron(0 0 ? * SUN,FRI,SAT *)"},
		"0 0 1-31/2 * *":      {"cron(0 0 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * ? *)"},
		"30 6 1 jan,jul *":    {"cron(30 6 1 1,7 ? *)"},
		"0 0 13 * 5":          {"cron(0 0 13 * ? *)", "cron(0 0 ? * FRI *)"},
		"0 0 1-31 * 0-7":      {"cron(0 0 * * ? *)", "cron(0 0 ? * SUN,MON,TUE,WED,THU,FRI,SAT *)"},
		"0-5,7,8 */6 * 1-6 *": {"cron(0-5,7-8 0,6,12,18 * 1-6 ? *)"},
		"@weekly":             {"cron(0 0 ? * SUN *)"},
	} {
		if d := cmp.Diff(want, parse(t, expression).AWS()); d != "" {
			t.Errorf("%s: -want +got\n%s", expression, d)
		}
	}
	if got := (cron.Schedule{}).AWS(); got != nil {
		t.Errorf("the zero schedule: %q", got)
	}
	if got := (cron.Schedule{}).Next(time.Now()); !got.IsZero() {
		t.Errorf("the zero schedule is due at %s", got)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"":                  "five fields",
		"* * * *":           "there are 4 fields: write five",
		"0 * * * * *":       "seconds and years cannot be given",
		"0 0 12 * * ? 2026": "seconds and years",
		"@reboot":           "start of a program",
		"@every 5m":         "@hourly",
		"@Daily":            "small letters",
		"TZ=UTC 0 0 * * *":  "in UTC",
		"0 0 * * *\n":       "",
		"0 0 * *\n*":        "several lines",
		"60 * * * *":        `the minute is "60": "60" is not one of 0 to 59`,
		"* 24 * * *":        `the hour is "24"`,
		"* * 0 * *":         `the day of the month is "0"`,
		"* * 32 * *":        "1 to 31",
		"* * * 13 *":        "1 to 12 or JAN to DEC",
		"* * * * 8":         "0 to 7 or SUN to SAT",
		"* * * * mo":        `"mo" is not one of`,
		"* * * january *":   `"january"`,
		"-1 * * * *":        `"" is not one of`,
		"+1 * * * *":        `"+1"`,
		"001 * * * *":       `"001"`,
		"1, * * * *":        "single commas",
		"1,,2 * * * *":      "single commas",
		"*,1 * * * *":       "write it alone",
		"5-1 * * * *":       "backwards",
		"* 22-2 * * *":      "runs backwards: write it as two, with a comma",
		"* * * * 6-0":       "backwards",
		"5/15 * * * *":      "a step needs a range: write 5-59/15",
		"*/0 * * * *":       `the step "0" is not one of 1 to 59`,
		"*/60 * * * *":      "reaches a second value",
		"*/x * * * *":       `the step "x"`,
		"1-5/ * * * *":      `the step ""`,
		"1-2-3 * * * *":     `"2-3"`,
		"*-5 * * * *":       `"*"`,
		"0 0 ? * *":         "?, L, W and # are not known",
		"0 0 L * *":         "not known",
		"0 0 15W * *":       "not known",
		"0 0 * * 5#2":       "not known",
		"0 0 30 2 *":        "the day of the month 30 occurs in no month of 2",
		"0 0 31 4,6,9,11 *": "occurs in no month",
		"0 0 30 feb mon":    "occurs in no month",
		"0 0 */2 * 1":       "one of the day fields has */",
		"0 0 1 * */2":       "one of the day fields has */",
		"0 0 1,*/7 * 1":     "one of the day fields has */",
		"0 0 \u0661 * *":    "is not one of 1 to 31",
		"0\u00a00 * * *":    "",
	} {
		_, err := cron.Parse(expression)
		if want == "" { // white space around, or any between
			if err != nil {
				t.Errorf("%q: %v", expression, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want %q", expression, err, want)
		}
	}
}

// random returns an expression of any shape, which may be refused.
func random(r *rand.Rand) string {
	field := func(lo, hi int) string {
		value := func() int { return lo + r.IntN(hi-lo+1) }
		part := func() string {
			a, b := value(), value()
			if a > b {
				a, b = b, a
			}
			switch r.IntN(5) {
			case 0:
				return fmt.Sprintf("*/%d", 1+r.IntN(hi-lo))
			case 1:
				return fmt.Sprintf("%d-%d", a, b)
			case 2:
				return fmt.Sprintf("%d-%d/%d", a, b, 1+r.IntN(max(b-a, 1)))
			default:
				return strconv.Itoa(a)
			}
		}
		if r.IntN(3) == 0 {
			return "*"
		}
		parts := []string{part()}
		for r.IntN(3) == 0 {
			parts = append(parts, part())
		}
		return strings.Join(parts, ",")
	}
	return strings.Join([]string{field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7)}, " ")
}

// The times of an expression are those of what is made of it for AWS, as another program reads that; and those that looking at
// each minute finds.
func TestAWSIsDueAtTheSameTimes(t *testing.T) {
	t.Parallel()
	const seed, wanted, times = 42, 4000, 50
	r := rand.New(rand.NewPCG(seed, seed))
	begin := at(t, "2026-12-01 13:54:00")
	tried, both := 0, 0
	for tried < wanted {
		text := random(r)
		s, err := cron.Parse(text)
		if err != nil {
			continue
		}
		tried++
		from := begin.Add(time.Duration(r.IntN(4*366*24*60)) * time.Minute)
		list := s.AWS()
		if len(list) == 2 {
			both++
		}
		got := s.NextN(from, times)
		if d := cmp.Diff(evaluate(t, list, from, times), got); d != "" {
			t.Fatalf("%q from %s: -what AWS gets, %q, +ours\n%s", text, from, list, d)
		}
		last := from
		for _, v := range got {
			if back := s.Last(v.Add(-time.Nanosecond)); back.After(last) {
				t.Fatalf("%q: between %s and %s is %s", text, last, v, back)
			}
			last = v
		}
	}
	if both < wanted/10 {
		t.Errorf("only %d expressions restricted both day fields", both)
	}
}

// evaluate returns the next times of expressions as AWS reads them, each once.
func evaluate(t *testing.T, expressions []string, from time.Time, n int) (times []time.Time) {
	t.Helper()
	var readers []*cronexpr.Expression
	for _, e := range expressions {
		inner, ok := strings.CutPrefix(e, "cron(")
		inner, closed := strings.CutSuffix(inner, ")")
		fields := strings.Fields(inner)
		if !ok || !closed || len(e) > 256 || len(fields) != 6 || (fields[2] == "?") == (fields[4] == "?") {
			t.Fatalf("AWS refuses %q", e)
		}
		reader, err := cronexpr.Parse("0 " + inner) // its first field is seconds
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		readers = append(readers, reader)
	}
	for len(times) < n {
		var next time.Time
		for _, r := range readers {
			if v := r.Next(from); !v.IsZero() && (next.IsZero() || v.Before(next)) {
				next = v
			}
		}
		if next.IsZero() {
			return times
		}
		times, from = append(times, next), next
	}
	return times
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"* * * * *", "*/5 1-3 1,2 jan-mar sat-sun", "@daily", "0 0 29 2 *", "0 0 13 * 5", "0 0 ? * *"} {
		f.Add(text, int64(1_800_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		s, err := cron.Parse(text)
		if err != nil {
			return
		}
		again, err := cron.Parse(s.String())
		if err != nil || again != s {
			t.Fatalf("%q is read as %v, %v", s, again, err)
		}
		for _, e := range s.AWS() {
			if len(e) > 256 {
				t.Errorf("%s has %d characters", e, len(e))
			}
		}
		from := time.Unix(unix%(1<<33), 0)
		next := s.Next(from)
		if !next.After(from) || next.Location() != time.UTC || next.Second() != 0 {
			t.Errorf("%q after %s: %s", text, from, next)
		}
		if s.Last(next) != next || s.Last(next.Add(-1)).After(from) {
			t.Errorf("%q: between %s and %s are others", text, from, next)
		}
	})
}
