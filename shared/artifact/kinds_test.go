package artifact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
)

// Where kinds are declared there are no others, and data is as its kind wants it.
func TestDeclaredKinds(t *testing.T) {
	t.Parallel()
	store := artifact.New(kv.New(memkv.New(), kv.Options{}), blob.New(memblob.New()), artifact.Options{Agent: "a", Kinds: map[string]bdk.ArtifactKind{
		"link": {}, "score": {Data: bdk.ResultOf[struct {
			Points int `json:"points"`
		}]()},
	}})
	for name, test := range map[string]struct{ kind, data, want string }{
		"any data":    {"link", `[1]`, ""},
		"no data":     {"link", "", ""},
		"good data":   {"score", ` {"points": 3} `, ""},
		"other kind":  {"report", "", `there is no kind "report" of artifacts: the kinds are link, score`},
		"needs data":  {"score", "", `an artifact of the kind "score" needs data`},
		"wrong field": {"score", `{"points":"x"}`, "points"},
		"more fields": {"score", `{"points":1,"more":2}`, "more"},
		"no object":   {"score", `[]`, "is not as it must be"},
	} {
		kept, err := store.Tag(t.Context(), artifact.Tagged{Kind: test.kind, Key: name, Data: json.RawMessage(test.data), Owner: "ann", SessionID: "s"})
		switch {
		case test.want == "" && (err != nil || test.kind == "score" && string(kept.Data) != `{"points":3}`):
			t.Errorf("%s: got %s, %v", name, kept.Data, err)
		case test.want != "" && (bdkerr.CodeOf(err) != bdkerr.InvalidRequest || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
