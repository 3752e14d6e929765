/**
 * Node's HTTP without what an import of it loads too: an import reads all its names, among them `WebSocket`, and with that
 * comes `fetch`. Both stay for the life of each thread that imports it, 2.5 MB of heap and as much again of code.
 */
export const { Agent, createServer, request, STATUS_CODES, validateHeaderName, validateHeaderValue } =
  process.getBuiltinModule('node:http')
