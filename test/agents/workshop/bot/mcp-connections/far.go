// Package connections is a part of the fixture.
package connections

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

// Far is a server that a test runs, which paints. Tests that have none do not set where it is.
var Far = bdk.Connection{
	URL:            "${FAR_MCP}",
	Headers:        map[string]string{"Authorization": "Bearer ${FAR_KEY}"},
	AdvertiseTools: true,
	Deny:           []string{"scratch"},
	Reads:          []string{"look"},
}
