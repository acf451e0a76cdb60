package memsecret_test

import (
	"testing"

	"github.com/bdk-lambda/bdk/shared/secret"
	"github.com/bdk-lambda/bdk/shared/secret/memsecret"
	"github.com/bdk-lambda/bdk/shared/secret/secrettest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	secrettest.Run(t, func(*testing.T) secrettest.Harness {
		d := new(memsecret.Driver)
		return secrettest.Harness{
			Open: func(*testing.T) secret.Driver { return d },
			Put:  func(_ *testing.T, version string) { d.Put(version) },
		}
	})
}
