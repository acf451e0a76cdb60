package memkv_test

import (
	"testing"

	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/kvtest"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(*testing.T) kvtest.Harness {
		d := memkv.New()
		return kvtest.Harness{Open: func(*testing.T) kv.Driver { return d }}
	})
}
