package localexec

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// clip keeps the head and the tail of what is written to it: of each half of limit bytes.
type clip struct {
	limit      int
	head, tail []byte // the tail is at times twice as long as it needs to be
	size       int64  // of all that was written
}

// Write never fails.
func (c *clip) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	n := min(len(p), c.limit/2-len(c.head))
	c.head = append(c.head, p[:n]...)
	rest, keep := p[n:], c.limit-c.limit/2
	rest = rest[max(0, len(rest)-keep):]
	if len(c.tail)+len(rest) > 2*keep {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-keep:]...)
	}
	c.tail = append(c.tail, rest...)
	return len(p), nil
}

// bytes returns what was kept, with a note where something is missing. No character is cut there.
func (c *clip) bytes() []byte {
	head, tail := c.head, c.tail[max(0, len(c.tail)-(c.limit-c.limit/2)):]
	if c.size == int64(len(head)+len(tail)) {
		return slices.Concat(head, tail)
	}
	for i := 1; i < utf8.UTFMax && i <= len(head); i++ { // the start of the last character
		if last := head[len(head)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	note := fmt.Sprintf("\n[… %d of %d bytes left out …]\n", c.size-int64(len(head)+len(tail)), c.size)
	return slices.Concat(head, []byte(note), tail)
}
