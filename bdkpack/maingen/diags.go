package maingen

// The codes of building. A code is never given another meaning.
const (
	codeCompile = "BDK160" // what the compiler says about the author's code that type-checking did not find
	codeBuild   = "BDK161" // what else the go command says
)
