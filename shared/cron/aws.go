package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// AWS returns the schedule as EventBridge Scheduler writes it, cron(minute hour day month weekday year): one expression, or two if both
// day fields are restricted, which are due together at times that match both. None has more than 256 characters, and none
// depends on how steps and numbers of weekdays are counted. The zero Schedule has none.
func (s Schedule) AWS() []string {
	switch {
	case s.text == "":
		return nil
	case s.stars[weekday]:
		return []string{s.aws(true)}
	case s.stars[day]:
		return []string{s.aws(false)}
	}
	return []string{s.aws(true), s.aws(false)}
}

// aws returns the expression with days of the month, or with days of the week.
func (s Schedule) aws(byDay bool) string {
	days, weekdays := "?", "?"
	if byDay {
		days = s.write(day)
	} else {
		weekdays = s.weekdays()
	}
	return fmt.Sprintf("cron(%s %s %s %s %s *)", s.write(minute), s.write(hour), days, s.write(month), weekdays)
}

// write returns a field as values and ranges.
func (s Schedule) write(index int) string {
	f, values := fields()[index], s.fields[index]
	if values == f.all() {
		return "*"
	}
	var parts []string
	for lo := f.lo; lo <= f.hi; lo++ {
		if !values.has(lo) {
			continue
		}
		hi := lo
		for hi < f.hi && values.has(hi+1) {
			hi++
		}
		part := strconv.Itoa(lo)
		if hi > lo {
			part += "-" + strconv.Itoa(hi)
		}
		parts = append(parts, part)
		lo = hi
	}
	return strings.Join(parts, ",")
}

// weekdays returns the days of the week by name: their numbers are others at AWS.
func (s Schedule) weekdays() string {
	var parts []string
	for i, name := range fields()[weekday].names {
		if s.fields[weekday].has(i) {
			parts = append(parts, strings.ToUpper(name))
		}
	}
	return strings.Join(parts, ",")
}
