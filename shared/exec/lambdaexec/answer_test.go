package lambdaexec_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
)

// archived returns an archive with one file.
func archived(t testing.TB, h tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := tar.NewWriter(zip)
	if err := out.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	_, err := out.Write(make([]byte, h.Size))
	if err := errors.Join(err, out.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestAnswersAreNotTrusted: whatever a function in strange hands answers, nothing is changed outside of the command's directory, and
// nothing in it by an answer that is not whole.
func TestAnswersAreNotTrusted(t *testing.T) {
	t.Parallel()
	good := archived(t, tar.Header{Typeflag: tar.TypeReg, Name: "out", Size: 1})
	for name, tc := range map[string]struct {
		answer lambdaexec.Answer
		stored []byte
	}{
		"a path above":          {answer: lambdaexec.Answer{Changes: archived(t, tar.Header{Typeflag: tar.TypeReg, Name: "../out", Size: 1})}},
		"an absolute path":      {answer: lambdaexec.Answer{Changes: archived(t, tar.Header{Typeflag: tar.TypeReg, Name: "/etc/bdk-test", Size: 1})}},
		"a link":                {answer: lambdaexec.Answer{Changes: archived(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "out", Linkname: "/etc/passwd"})}},
		"half an archive":       {answer: lambdaexec.Answer{Changes: good[:len(good)-4]}},
		"more output":           {answer: lambdaexec.Answer{Changes: good, Stdout: make([]byte, 4<<10)}},
		"more error output":     {answer: lambdaexec.Answer{Changes: good, Stderr: make([]byte, 4<<10)}},
		"a long reason":         {answer: lambdaexec.Answer{Changes: good, Killed: strings.Repeat("x", 1000)}},
		"a time before":         {answer: lambdaexec.Answer{Changes: good, Took: -1}},
		"a time without end":    {answer: lambdaexec.Answer{Changes: good, Took: 1 << 60}},
		"nothing stored":        {answer: lambdaexec.Answer{Stored: 10}},
		"less stored":           {answer: lambdaexec.Answer{Stored: int64(len(good) + 1)}, stored: good},
		"something else stored": {answer: lambdaexec.Answer{Stored: 5}, stored: []byte("hello")},
		"negative bytes":        {answer: lambdaexec.Answer{Stored: -1}, stored: good},
		"bytes without end":     {answer: lambdaexec.Answer{Stored: 1 << 60}, stored: good},
		"a strange fault":       {answer: lambdaexec.Answer{Changes: good, Fault: &lambdaexec.Fault{Code: bdkerr.Forbidden, Message: strings.Repeat("x", 5000)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, nil)
			c.answer = func(w http.ResponseWriter, r *http.Request, event []byte) {
				var req lambdaexec.Request
				if err := json.Unmarshal(event, &req); err != nil {
					t.Error(err)
				}
				if tc.stored != nil {
					put, err := http.NewRequestWithContext(r.Context(), "PUT", req.Put, bytes.NewReader(tc.stored))
					if err != nil {
						t.Fatal(err)
					}
					res, err := c.server.Client().Do(put)
					if err != nil {
						t.Fatal(err)
					}
					res.Body.Close()
				}
				if err := json.NewEncoder(w).Encode(tc.answer); err != nil {
					t.Error(err)
				}
			}
			parent := t.TempDir()
			put(t, parent, "files/in", []byte("x"))
			_, err := c.runner().Run(t.Context(), exec.Command{Dir: filepath.Join(parent, "files"), Args: []string{"x"}, Output: 1 << 10})
			if err == nil || len(err.Error()) > 2000 || bdkerr.CodeOf(err) == bdkerr.Forbidden {
				t.Errorf("got %v", err)
			}
			found := map[string]string{}
			for _, name := range []string{"out", "files/in", "files/out"} {
				found[name] = text(t, parent, name)
			}
			if d := cmp.Diff(map[string]string{"out": "", "files/in": "x", "files/out": ""}, found); d != "" {
				t.Errorf("files (-want +got):\n%s", d)
			}
		})
	}
}

// TestSandboxIsEmpty: whatever a command before left behind, even one whose process has ended.
func TestSandboxIsEmpty(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "files/secret", []byte("x"))
	put(t, root, "locked/secret", []byte("x"))
	if err := os.Chmod(filepath.Join(root, "locked"), 0o500); err != nil {
		t.Fatal(err)
	}
	run := func(_ context.Context, c exec.Command) (exec.Result, error) {
		entries, err := os.ReadDir(root)
		inside, ierr := os.ReadDir(c.Dir)
		if len(entries) != 1 || len(inside) != 0 || err != nil || ierr != nil {
			t.Errorf("found %v, %v in it, %v, %v", entries, inside, err, ierr)
		}
		put(t, root, "elsewhere", nil)
		return exec.Result{}, nil
	}
	for range 2 {
		if a := lambdaexec.NewSandbox(runner(run), root, nil).Run(t.Context(), lambdaexec.Request{Args: []string{"x"}}); a.Fault != nil {
			t.Errorf("%+v", a.Fault)
		}
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestSandboxSaysWhy: no fault of it is a result, and no URL is told, which is a key.
func TestSandboxSaysWhy(t *testing.T) {
	t.Parallel()
	nowhere := "http://127.0.0.1:1/key-of-it"
	ran := func(_ context.Context, c exec.Command) (exec.Result, error) {
		put(t, c.Dir, "out", noise(3_000_000))
		return exec.Result{}, nil
	}
	for name, tc := range map[string]struct {
		req  lambdaexec.Request
		code bdkerr.Code
		want string
	}{
		"files that are none":         {lambdaexec.Request{Files: lambdaexec.Part{Data: []byte("x")}}, bdkerr.Internal, "receiving the files"},
		"files that are not there":    {lambdaexec.Request{Files: lambdaexec.Part{URL: "http://x/bucket/x"}}, bdkerr.Internal, "the store answers 404"},
		"files out of reach":          {lambdaexec.Request{Files: lambdaexec.Part{URL: nowhere}}, bdkerr.Internal, "connection refused"},
		"input that is not there":     {lambdaexec.Request{Stdin: lambdaexec.Part{URL: "http://x/bucket/x"}}, bdkerr.Internal, "the standard input"},
		"changes that find no place":  {lambdaexec.Request{Put: nowhere}, bdkerr.Internal, "which was run"},
		"an address that is none":     {lambdaexec.Request{Put: "\x00"}, bdkerr.Internal, "which was run"},
		"nobody who waits for it":     {lambdaexec.Request{End: 1, Files: lambdaexec.Part{URL: nowhere}}, bdkerr.Internal, "deadline"},
		"files with a path above":     {lambdaexec.Request{Files: lambdaexec.Part{Data: archived(t, tar.Header{Typeflag: tar.TypeReg, Name: "../a"})}}, bdkerr.InvalidRequest, "../a"},
		"changes nobody has room for": {lambdaexec.Request{Put: "http://x/refused"}, bdkerr.Internal, "the store answers 403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, nil)
			c.store = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(map[string]int{"GET": http.StatusNotFound, "PUT": http.StatusForbidden}[r.Method])
			})
			for _, at := range []*string{&tc.req.Put, &tc.req.Files.URL, &tc.req.Stdin.URL} {
				*at = strings.Replace(*at, "http://x", c.server.URL, 1)
			}
			a := lambdaexec.NewSandbox(runner(ran), t.TempDir(), c.server.Client()).Run(t.Context(), tc.req)
			if a.Fault == nil || a.Fault.Code != tc.code || !strings.Contains(a.Fault.Message, tc.want) || strings.Contains(a.Fault.Message, "key-of-it") {
				t.Errorf("got %+v", a.Fault)
			}
		})
	}
}
