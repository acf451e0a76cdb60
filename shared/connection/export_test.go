package connection

// What the fuzz tests look at.
var (
	Clean       = clean
	CleanSchema = cleanSchema
	Exposed     = exposed
)
