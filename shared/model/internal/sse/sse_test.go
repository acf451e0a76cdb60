package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/model/internal/sse"
)

func read(r io.Reader) (events []string, err error) {
	for e, err := range sse.Events(r) {
		if err != nil {
			return events, err
		}
		events = append(events, e.Name+"|"+string(e.Data))
	}
	return events, nil
}

func TestEvents(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		want []string
	}{
		"name and data":                       {"event: a\ndata: x\n\nevent: b\ndata: y\n\n", []string{"a|x", "b|y"}},
		"the name is for one event":           {"event: a\ndata: x\n\ndata: y\n\n", []string{"a|x", "|y"}},
		"no space behind the colon":           {"data:x\n\n", []string{"|x"}},
		"one space only is dropped":           {"data:  x\n\n", []string{"| x"}},
		"lines are joined":                    {"data: x\ndata\ndata: y\n\n", []string{"|x\n\ny"}},
		"comments and unknown fields":         {": ping\n\n: ping\ndata: x\nid: 1\nretry: 3\nfoo\n\n", []string{"|x"}},
		"events without data are none":        {"event: a\n\n\n\ndata: x\n\n", []string{"|x"}},
		"line ends of all kinds":              {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", []string{"|a", "|b", "|c"}},
		"byte order mark":                     {"\ufeffdata: x\n\n", []string{"|x"}},
		"the end of input ends an event":      {"data: x\n", []string{"|x"}},
		"a line that is cut is dropped":       {"data: x\n\ndata: {\"a\"", []string{"|x"}},
		"a cut line ends the event before it": {"data: x\ndata: y", []string{"|x"}},
		"empty":                               {"", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, r := range map[string]io.Reader{
				"whole": strings.NewReader(tc.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.in)),
			} {
				got, err := read(r)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

func TestAnEventIsYieldedBeforeTheByteBehindIt(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	go func() { _, _ = w.Write([]byte("data: x\r\r")) }()
	for e, err := range sse.Events(r) {
		if err != nil || string(e.Data) != "x" {
			t.Errorf("got %q, %v", e.Data, err)
		}
		break
	}
}

func TestAReadErrorIsYieldedLast(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	got, err := read(io.MultiReader(strings.NewReader("data: x\n\ndata: y\n"), iotest.ErrReader(boom)))
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"|x"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

type endless struct{ line string }

func (e endless) Read(p []byte) (int, error) { return copy(p, e.line), nil }

func TestAnEndlessEventIsRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"data: xxxxxxxxxxxxxxxxxxx", "data: xxxxxxxxxxxxxxxxx\n"} {
		if _, err := read(endless{line}); !errors.Is(err, sse.ErrTooLong) {
			t.Errorf("%q: got %v", line, err)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("event: a\ndata: x\r\n\r\n: c\ndata:y\r\rdata", 3)
	f.Fuzz(func(t *testing.T, in string, cut int) {
		cut = max(0, min(cut, len(in)))
		want, err := read(strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(io.MultiReader(strings.NewReader(in[:cut]), strings.NewReader(in[cut:])))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("cut at %d (-want +got):\n%s", cut, diff)
		}
	})
}
