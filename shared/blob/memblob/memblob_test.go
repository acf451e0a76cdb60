package memblob_test

import (
	"testing"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/blobtest"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(*testing.T) blobtest.Harness {
		d := memblob.New()
		return blobtest.Harness{
			Open: func(*testing.T) blob.Driver { return d },
			Damage: func(t *testing.T, ref blob.Ref, data []byte) {
				t.Helper()
				if err := d.Put(t.Context(), ref, data); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
