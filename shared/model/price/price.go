// Package price stub.
package price
import "github.com/bdk-lambda/bdk/shared/model"
func Cost(id string, u model.Usage) (float64, bool) { return 0, false }
