// Package sse reads server-sent events as providers of models send them: with comments that keep the connection alive,
// with or without the space behind the colon, and with any of the three line ends.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
)

// MaxEvent is the size in bytes over which an event is refused.
const MaxEvent = 16 << 20

// ErrTooLong is yielded for an event or a line over [MaxEvent].
var ErrTooLong = errors.New("server-sent event is longer than 16 MiB")

// An Event is one message of the stream.
type Event struct {
	Name string // the event field; often empty
	Data []byte // the data lines joined with newlines, never empty; valid until the next event is asked for
}

// Events reads r to its end and yields each event that was ended by an empty line. An event that r ends in is yielded too if
// its last line was whole, as some servers forget the empty line. A read error is yielded once, as the last pair.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := lineReader{r: bufio.NewReader(r)}
		var name string
		var data bytes.Buffer
		for {
			line, err := lines.next()
			if err == nil && len(line)+data.Len() > MaxEvent {
				err = ErrTooLong
			}
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Event{}, err)
				return
			}
			if err == nil && len(line) > 0 {
				name = field(line, name, &data)
				continue
			}
			if data.Len() > 0 && !yield(Event{Name: name, Data: bytes.TrimSuffix(data.Bytes(), []byte("\n"))}, nil) {
				return
			}
			if err != nil {
				return
			}
			name = ""
			data.Reset()
		}
	}
}

// field takes one line into data, and returns the event's name, which the line may set.
func field(line []byte, name string, data *bytes.Buffer) string {
	key, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(key) {
	case "event":
		return string(value)
	case "data":
		data.Write(value)
		data.WriteByte('\n')
	}
	return name
}

// A lineReader splits at \n, \r\n and \r, and never waits for the byte behind a \r.
type lineReader struct {
	r      *bufio.Reader
	line   []byte
	afterR bool // the last line ended with \r: a \n that follows belongs to it
	begun  bool
}

// next returns the next whole line; the rest without a line end is dropped with io.EOF.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	for len(l.line) <= MaxEvent {
		if _, err := l.r.Peek(1); err != nil {
			return nil, err
		}
		buffered, _ := l.r.Peek(l.r.Buffered()) // cannot fail
		skip := 0
		if l.afterR && buffered[0] == '\n' {
			skip = 1
		}
		l.afterR = false
		end := bytes.IndexAny(buffered[skip:], "\r\n")
		if end < 0 {
			l.line = append(l.line, buffered[skip:]...)
			_, _ = l.r.Discard(len(buffered)) // cannot fail
			continue
		}
		end += skip
		l.line = append(l.line, buffered[skip:end]...)
		l.afterR = buffered[end] == '\r'
		_, _ = l.r.Discard(end + 1) // cannot fail
		return l.withoutBOM(), nil
	}
	return nil, ErrTooLong
}

func (l *lineReader) withoutBOM() []byte {
	if l.begun {
		return l.line
	}
	l.begun = true
	return bytes.TrimPrefix(l.line, []byte("\ufeff"))
}
