package command

const troubled = `
servers:
  off: {url: "https://example.com/mcp", headers: {A: "${GOBLIN_TEST_UNSET}"}, disabled: true}
  spaced: {command: echo hello world}
`
