package memsession_test

import (
	"testing"

	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
	"github.com/bdk-lambda/bdk/shared/session/sessiontest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sessiontest.Run(t, sessiontest.Harness{
		New: func(*testing.T) session.Driver { return memsession.New() },
	})
}
