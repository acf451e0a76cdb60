package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/test/need"
)

// TestMain is a function when a Runtime API is there.
func TestMain(m *testing.M) {
	api := os.Getenv("AWS_LAMBDA_RUNTIME_API")
	if api == "" {
		os.Exit(m.Run())
	}
	base := "http://" + api + "/2018-06-01/runtime/invocation/"
	switch os.Getenv("_HANDLER") {
	case "ends":
		fmt.Println("no such table")
		return
	case "asks":
		get(os.Getenv("AWS_ENDPOINT_URL"))
	}
	event := get(base + "next")
	res, err := http.Post(base+"bench/response", "application/json", strings.NewReader("to "+event))
	if err != nil {
		os.Exit(1)
	}
	res.Body.Close()
	get(base + "next")
}

func get(url string) string {
	res, err := http.Get(url)
	if err != nil {
		os.Exit(1)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return string(body)
}

func TestAFunctionIsWatched(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for handler, asked := range map[string]int64{"quiet": 0, "asks": 1} {
		f := &function{event: "event", answered: make(chan answer, 1)}
		err := f.run(t.Context(), program, handler, func(*os.Process) error {
			if a := <-f.answered; string(a.body) != "to event" || a.took <= 0 {
				t.Errorf("%s: got %q after %s", handler, a.body, a.took)
			}
			return nil
		})
		if err != nil || f.asked.Load() != asked || !f.polled.After(f.began) {
			t.Errorf("%s: %d requests to AWS, polled %s after its start, error %v", handler, f.asked.Load(), f.polled.Sub(f.began), err)
		}
	}
}

func TestAFunctionThatEndsIsNotMeasured(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	err = (&function{}).run(t.Context(), program, "ends", func(*os.Process) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("got %v", err)
	}
}

func TestPeakMemory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		need.Missing(t, "functions are measured on Linux")
	}
	mib, err := peakMemory(os.Getpid())
	if err != nil || mib < 1 || mib > 4096 {
		t.Errorf("this process has taken %g MiB, error %v", mib, err)
	}
}
