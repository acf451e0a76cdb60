// Package cron reads the five fields that say when a schedule is due, in UTC, and computes the times.
//
// The fields are minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or JAN-DEC) and day of the week (0-7 or
// SUN-SAT; 0 and 7 are Sunday), with spaces between them. A field is * for all values, or a list of values, ranges a-b and steps */n or
// a-b/n with commas between them. If both day fields are restricted, a day that matches one of them is due. In place of the fields may
// stand @hourly, @daily or @midnight, @weekly, @monthly, @yearly or @annually.
//
// What other readers of such expressions understand differently is refused: see [Parse].
package cron

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// Schedule says when something is due: at whole minutes in UTC, for ever. The zero Schedule is never due; [Parse] makes others.
// It is immutable and comparable.
type Schedule struct {
	text   string
	fields [5]set
	stars  [5]bool // the field is *
}

// set has the values whose bits are set.
type set uint64

func (s set) has(value int) bool { return s&(1<<value) != 0 }

// The indexes of the fields.
const (
	minute = iota
	hour
	day
	month
	weekday
)

// field describes a field.
type field struct {
	name   string
	lo, hi int
	names  []string // of the values from lo on
}

func fields() [5]field {
	return [5]field{
		{name: "minute", hi: 59},
		{name: "hour", hi: 23},
		{name: "day of the month", lo: 1, hi: 31},
		{name: "month", lo: 1, hi: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{name: "day of the week", hi: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// all returns the set of all values of f.
func (f field) all() (s set) {
	for v := f.lo; v <= f.hi; v++ {
		s |= 1 << v
	}
	return s
}

// Parse reads an expression. It refuses, with an error that names the field and says what to write, what is not of the form that the
// package describes, and
//
//   - */n in one day field if the other one is restricted: readers do not agree whether a day has to match both;
//   - a/n, which is read as a alone or as a-59/n, ranges that run backwards, and steps that reach no second value;
//   - dates that no year has, such as 30 February.
func Parse(text string) (Schedule, error) {
	s := Schedule{text: strings.TrimSpace(text)}
	parts, err := split(s.text)
	if err != nil {
		return Schedule{}, err
	}
	var steps [5]bool
	for i, f := range fields() {
		part := parts[i]
		s.stars[i], steps[i] = part == "*", strings.Contains(part, "*/")
		if s.fields[i], err = f.parse(part); err != nil {
			return Schedule{}, fmt.Errorf("the %s is %.60q: %w", f.name, part, err)
		}
	}
	if s.fields[weekday].has(7) {
		s.fields[weekday] = s.fields[weekday]&^(1<<7) | 1
	}
	if !s.stars[day] && !s.stars[weekday] && (steps[day] || steps[weekday]) {
		return Schedule{}, errors.New("one of the day fields has */ and the other one is restricted, which is read as both or as either: " +
			"write the days out, such as 1-31/2, for days that match either field, or * in one of them")
	}
	if !s.possible() {
		return Schedule{}, fmt.Errorf("the day of the month %s occurs in no month of %s: write a day that there is", parts[day], parts[month])
	}
	return s, nil
}

// split returns the five fields of an expression.
func split(text string) ([]string, error) {
	switch {
	case text == "":
		return nil, errors.New("the expression is empty: write five fields, such as 0 9 * * 1-5, or @daily")
	case strings.HasPrefix(text, "@"):
		return expand(text)
	case strings.Contains(text, "TZ="):
		return nil, errors.New("a time zone cannot be given: times are in UTC")
	case strings.ContainsAny(text, "\r\n"):
		return nil, errors.New("the expression has several lines: write five fields on one line")
	}
	parts := strings.Fields(text)
	switch n := len(parts); {
	case n == 6 || n == 7:
		return nil, fmt.Errorf("there are %d fields: seconds and years cannot be given, write five fields: minute, hour, day, month, day of the week", n)
	case n != 5:
		return nil, fmt.Errorf("there are %d fields: write five, minute, hour, day, month, day of the week, such as 0 9 * * 1-5", n)
	}
	return parts, nil
}

// expand returns the fields that a word stands for.
func expand(word string) ([]string, error) {
	fields := map[string]string{
		"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
		"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
	}[word]
	if fields == "" {
		return nil, fmt.Errorf("%.40q is not known: write @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually or five fields, "+
			"in small letters; nothing can be due at the start of a program", word)
	}
	return strings.Fields(fields), nil
}

// parse reads the text of a field.
func (f field) parse(text string) (s set, err error) {
	if text == "*" {
		return f.all(), nil
	}
	for part := range strings.SplitSeq(text, ",") {
		more, err := f.parsePart(part)
		if err != nil {
			return 0, err
		}
		s |= more
	}
	return s, nil
}

// parsePart reads one element of a list.
func (f field) parsePart(text string) (set, error) {
	span, stepText, stepped := strings.Cut(text, "/")
	first, last, ranged := strings.Cut(span, "-")
	lo, hi := f.lo, f.hi
	switch {
	case text == "":
		return 0, errors.New("a value is missing: write values with single commas between them")
	case text == "*":
		return 0, errors.New("* is all values: write it alone")
	case strings.ContainsAny(text, "?LW#") && !f.named(text):
		return 0, errors.New("?, L, W and # are not known: write *, values, ranges a-b and steps */n")
	case span == "*" && f.hi == 7:
		hi = 6 // Sunday once
	case span == "*":
	case !ranged && stepped:
		return 0, fmt.Errorf("a step needs a range: write %s-%d/%s", span, f.hi, stepText)
	default:
		var err error
		if lo, err = f.value(first, false); err != nil {
			return 0, err
		}
		hi = lo
		if ranged {
			hi, err = f.value(last, true)
		}
		switch {
		case err != nil:
			return 0, err
		case hi < lo:
			return 0, fmt.Errorf("the range %s runs backwards: write it as two, with a comma", span)
		}
	}
	step := 1
	if stepped {
		var ok bool
		if step, ok = number(stepText); !ok || step == 0 || step > max(hi-lo, 1) {
			return 0, fmt.Errorf("the step %.20q is not one of 1 to %d: write one that reaches a second value", stepText, max(hi-lo, 1))
		}
	}
	var s set
	for v := lo; v <= hi; v += step {
		s |= 1 << v
	}
	return s, nil
}

// named reports whether text is made of names of f, which may have the letters of what is not known elsewhere.
func (f field) named(text string) bool {
	span, _, _ := strings.Cut(text, "/")
	first, last, ranged := strings.Cut(span, "-")
	_, err := f.value(first, false)
	if err == nil && ranged {
		_, err = f.value(last, true)
	}
	return err == nil
}

// value reads one value. At the end of a range SUN is 7.
func (f field) value(text string, end bool) (int, error) {
	for i, name := range f.names {
		if !strings.EqualFold(text, name) {
			continue
		}
		if end && f.hi == 7 && i == 0 {
			return 7, nil
		}
		return f.lo + i, nil
	}
	v, ok := number(text)
	if !ok || v < f.lo || v > f.hi {
		what := fmt.Sprintf("%d to %d", f.lo, f.hi)
		if f.names != nil {
			what += fmt.Sprintf(" or %s to %s", strings.ToUpper(f.names[0]), strings.ToUpper(f.names[len(f.names)-1]))
		}
		return 0, fmt.Errorf("%.20q is not one of %s", text, what)
	}
	return v, nil
}

// number reads one or two digits.
func number(text string) (n int, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, text != "" && len(text) <= 2
}

// possible reports whether a restricted day of the month occurs in one of the months.
func (s Schedule) possible() bool {
	if s.stars[day] {
		return true
	}
	least := bits.TrailingZeros64(uint64(s.fields[day]))
	for m := 1; m <= 12; m++ {
		const leap = 2000
		if s.fields[month].has(m) && least <= daysIn(leap, time.Month(m)) {
			return true
		}
	}
	return false
}

func daysIn(year int, m time.Month) int { return time.Date(year, m+1, 0, 0, 0, 0, 0, time.UTC).Day() }

// String returns the expression as it was read.
func (s Schedule) String() string { return s.text }

// horizon is more days than there ever are between two times that are due: 29 February, around a century without one.
const horizon = 9 * 366

// Next returns the first time after t at which the schedule is due, in UTC; the zero time if it never is.
func (s Schedule) Next(t time.Time) time.Time {
	t = t.UTC().Truncate(time.Minute).Add(time.Minute)
	from := t.Hour()*60 + t.Minute()
	for range horizon {
		y, m, d := t.Date()
		if s.onDay(t) {
			for at := from; at < 24*60; at++ {
				if s.fields[hour].has(at/60) && s.fields[minute].has(at%60) {
					return time.Date(y, m, d, at/60, at%60, 0, 0, time.UTC)
				}
			}
		}
		t, from = time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC), 0
	}
	return time.Time{}
}

// Last returns the last time at or before t at which the schedule is due, in UTC; the zero time if it never is.
func (s Schedule) Last(t time.Time) time.Time {
	t = t.UTC()
	from := t.Hour()*60 + t.Minute()
	for range horizon {
		y, m, d := t.Date()
		if s.onDay(t) {
			for at := from; at >= 0; at-- {
				if s.fields[hour].has(at/60) && s.fields[minute].has(at%60) {
					return time.Date(y, m, d, at/60, at%60, 0, 0, time.UTC)
				}
			}
		}
		t, from = time.Date(y, m, d-1, 0, 0, 0, 0, time.UTC), 24*60-1
	}
	return time.Time{}
}

// NextN returns the next n times after t, fewer if the schedule is never due.
func (s Schedule) NextN(t time.Time, n int) []time.Time {
	var times []time.Time
	for range n {
		if t = s.Next(t); t.IsZero() {
			break
		}
		times = append(times, t)
	}
	return times
}

// onDay reports whether the schedule is due on the day of t.
func (s Schedule) onDay(t time.Time) bool {
	inMonth, inWeek := s.fields[day].has(t.Day()), s.fields[weekday].has(int(t.Weekday()))
	matches := inMonth && inWeek // a field that is * has all values
	if !s.stars[day] && !s.stars[weekday] {
		matches = inMonth || inWeek
	}
	return s.fields[month].has(int(t.Month())) && matches
}
