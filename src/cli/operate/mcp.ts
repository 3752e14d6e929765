/**
 * `sendwright mcp`: the Model Context Protocol over standard input and output, for assistants that start their servers.
 * Each message goes to `/mcp` of a service, whose settings and rights decide; nothing is decided here.
 */
import { jsonObject } from '../../base/values.ts'
import { type Target, targetFor } from '../local/client.ts'
import { CommandError, parseFlags, switches, texts } from '../usage.ts'
import { print } from './service.ts'

export const usage = `sendwright mcp [--service URL --key-file FILE] [--allow-http]

Serves an assistant over standard input and output (Model Context Protocol); the assistant starts it. What it may do is what its key may
do, and nothing is changed unless the service has SENDWRIGHT_MCP_WRITE. docs/assistants.md says how to connect assistants.

  --service URL   another service, with --key-file FILE; default: the one on this machine, as its administrator
  --key-file FILE the key of the assistant, which may have fewer rights
  --allow-http    send the key to another machine over http, unencrypted
`

/** As `/mcp` takes. */
const LINE_LENGTH_MAX = 1024 * 1024
const AT_ONCE_MAX = 8
/** Codes of JSON-RPC 2.0 §5.1. */
const PARSE_ERROR = -32_700
const INTERNAL_ERROR = -32_603
const VERSION_FIELD = 'io.modelcontextprotocol/protocolVersion'

interface Message {
  id?: unknown
  method?: unknown
  params?: { _meta?: Record<string, unknown>; name?: unknown; uri?: unknown; requestId?: unknown }
}

export async function run(args: string[]): Promise<void> {
  const values = parseFlags('mcp', args, { ...texts('service', 'key-file'), ...switches('allow-http') })
  const target = targetFor(process.env, values)
  const running = new Map<unknown, AbortController>()
  const open = new Set<Promise<void>>()
  for await (const line of linesOf(process.stdin)) {
    const message: Message | null = jsonObject(line)
    if (message === null) {
      answer({ id: null, error: { code: PARSE_ERROR, message: 'Not a JSON object in one line' } })
      continue
    }
    if (message.method === 'notifications/cancelled') running.get(message.params?.requestId)?.abort()
    const end = new AbortController()
    if (message.id !== undefined) running.set(message.id, end)
    const exchange = pass(target, line, message, end.signal).finally(() => {
      open.delete(exchange)
      if (running.get(message.id) === end) running.delete(message.id)
    })
    open.add(exchange)
    if (open.size >= AT_ONCE_MAX) await Promise.race(open)
  }
  await Promise.all(open)
}

/** Sends one message to the service, and prints what it answers. */
async function pass(target: Target, line: string, message: Message, signal: AbortSignal): Promise<void> {
  const { id } = message
  try {
    const response = await target.fetch(`${target.base}/mcp`, {
      ...{ method: 'POST', body: line, signal },
      headers: { ...fieldsOf(message), authorization: target.authorization },
    })
    const text = await response.text()
    const messages = messagesIn(response, text)
    for (const one of messages) print(`${JSON.stringify(one)}\n`)
    if (messages.length === 0 && id !== undefined)
      throw new Error(`The service answered ${response.status}: ${reasonIn(text)}`)
  } catch (error) {
    // Nobody waits for the answer to a notification, or to what was cancelled.
    if (id === undefined || signal.aborted) return
    answer({ id, error: { code: INTERNAL_ERROR, message: (error as Error).message } })
  }
}

/** What the protocol wants in the header besides the body. */
function fieldsOf({ method, params }: Message): Record<string, string> {
  const fields: Record<string, unknown> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': params?._meta?.[VERSION_FIELD],
    'mcp-method': method,
    'mcp-name': params?.name ?? params?.uri,
  }
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, fieldValue(value)]] : [],
    ),
  )
}

/** As it is where a field can hold it, else in the form that the protocol has for that. */
const fieldValue = (text: string): string =>
  /^[!-~](?:[ -~]*[!-~])?$/.test(text) && !text.startsWith('=?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

/** Messages of the protocol in an answer; none: it is one of the service, or there is nothing to say. */
function messagesIn(response: Response, text: string): object[] {
  const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  // Data of an event is JSON in one line.
  const texts = isEvents ? [...text.matchAll(/^data: ?(.+)$/gm)].map(([, data = '']) => data) : [text]
  return texts.map(jsonObject).filter((one) => one !== null && 'jsonrpc' in one) as object[]
}

const reasonIn = (text: string): string => String(jsonObject(text)?.['message'] ?? text)

const answer = (message: object): void => print(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

/** @throws CommandError for a line that no service would take */
async function* linesOf(input: AsyncIterable<unknown>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of input) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if ([rest, ...lines].some(({ length }) => length > LINE_LENGTH_MAX))
      throw new CommandError('A message is longer than 1 MiB')
    for (const line of lines) if (line.trim() !== '') yield line.trim()
  }
}
