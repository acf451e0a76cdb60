package templates

var MoveImports = moveImports
