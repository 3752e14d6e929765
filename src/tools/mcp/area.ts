/**
 * `/mcp`: what assistants may do, as tasks (docs/assistants.md). A tool calls the operations of the API with the key of its
 * caller, so rights, limits, accounts and checks are those of the API. Each call of a tool is a row of the audit log.
 */
import type { Area } from '../../area.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { anyJson, media, nothing } from '../../base/shape.ts'
import { isPlainObject, jsonObject } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { answerTo } from '../../platform/http/answer/errors.ts'
import { bytesReply, Reply } from '../../platform/http/answer/reply.ts'
import type { InnerCalls } from '../../platform/http/inner-calls.ts'
import { type Context, type JsonSchema, operation } from '../../platform/http/operation.ts'
import { type AuditLog, keptText } from '../../platform/http/rights/audit.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { operationTools } from './operations.ts'
import { READING_TOOLS } from './reading-tools.ts'
import { type Api, checkArguments, type Item, type Query, Refused, type Tool } from './tool.ts'
import { writingTools } from './writing-tools.ts'

interface McpUses {
  http: { innerCall: InnerCalls; describe(): JsonSchema }
  audit: AuditLog
}

/** A message that is checked; its files are left out. */
const BODY_LIMIT = { bytes: 1024 * 1024, message: 'request size exceeds 1MiB limit' }
/**
 * Members and elements of a message; those of a tool have some dozens. The library checks a message, and describes what is
 * wrong with each member: 90,000 of them took 1.5 s and made an answer of 23 MB.
 */
const VALUES_MAX = 1_000
/** Bytes of an operation's answer; a tool shows far less. */
const ANSWER_BYTES_MAX = 1024 * 1024
const NAME_LENGTH_MAX = 64
/** Fields of the request that the protocol knows. */
const PROTOCOL_FIELDS = ['content-type', 'accept', 'mcp-protocol-version', 'mcp-method', 'mcp-name'] as const
/** Arguments that the audit log does not keep: content of mail. */
const CONTENT = new Set(['text', 'html', 'content', 'variables', 'subject', 'confirm'])

const NOT_ALLOWED = 'The operator has not allowed assistants to change anything (SENDWRIGHT_MCP_WRITE)'
const MESSAGE = anyJson('A message of JSON-RPC 2.0')
const AS_EVENT = media('text/event-stream', 'The same as one server-sent event')
const FAULT = [MESSAGE, media('text/plain', 'What is wrong')] as const

export function mcpArea({ config, sealer, clock }: Core, { http, audit }: McpUses): Area {
  const isCaptured = config.delivery.kind === 'capture'
  const reading = [...READING_TOOLS, ...operationTools(http.describe)]
  const writing = writingTools({ sealer, isCaptured })
  const listed = config.mcpWrite ? [...reading, ...writing] : reading
  const byName = new Map([...reading, ...writing].map((tool) => [tool.name, tool]))

  /** @throws Refused, whatever goes wrong: other errors would show an assistant what is inside. */
  async function runTool(context: Context<never, Caller>, name: string, args: unknown): Promise<unknown> {
    try {
      return await runRecorded(context, name, args)
    } catch (error) {
      if (error instanceof Refused) throw error
      const { status, body, ourFault } = answerTo(error, clock.now())
      if (ourFault && !context.signal.aborted)
        context.log.error({ err: error, tool: name }, 'a task of an assistant failed')
      throw new Refused(String((body as Item)['message'] ?? 'It failed'), status)
    }
  }

  async function runRecorded(context: Context<never, Caller>, name: string, args: unknown): Promise<unknown> {
    const { caller, remoteAddress, requestId } = context
    const tool = byName.get(name)
    const settle = await audit.open({
      ...{ caller, remoteAddress, requestId, action: 'assistant.call' },
      subject: tool?.name ?? keptText(name).slice(0, NAME_LENGTH_MAX),
      given: tool === undefined ? {} : givenOf(tool, args),
    })
    try {
      if (tool === undefined) throw new Refused('There is no such tool', 404)
      if (tool.writes !== null && !config.mcpWrite) throw new Refused(NOT_ALLOWED, 403)
      checkArguments(tool, args)
      const api = apiFor(http.innerCall, context)
      const result = await tool.run({ api, caller, now: clock.now() }, args as never)
      await settle({ status: 200, made: {} })
      return result
    } catch (error) {
      const status = error instanceof Refused ? error.status : answerTo(error, clock.now()).status
      await settle({ status, made: {} })
      throw error
    }
  }

  return {
    operations: [
      operation({
        method: 'POST',
        path: '/mcp',
        id: 'callAssistant',
        tag: 'Assistants',
        summary: 'Messages of the Model Context Protocol',
        description: 'Streamable HTTP without sessions. The key may be a bearer token.',
        auth: { area: 'events', access: 'read' },
        bearer: true,
        bodyLimit: BODY_LIMIT,
        body: MESSAGE,
        audit: { exempt: 'each call of a tool is recorded by itself' },
        answers: {
          200: [MESSAGE, AS_EVENT],
          202: nothing('A notification was taken'),
          ...{ 400: FAULT, 404: FAULT, 406: FAULT, 413: FAULT, 415: FAULT },
        },
        async handler(context) {
          const { headers, params, signal } = context
          const body = params.json()
          // The protocol has none any more, and one call would cost what thousands do.
          if (Array.isArray(body)) throw new BadRequest('Batches are not taken: send one message')
          if (valuesIn(body) > VALUES_MAX) throw new BadRequest(`A message has at most ${VALUES_MAX} values`)
          const { answerMcp } = await import('./protocol.ts')
          const fields = new Headers({ accept: 'application/json, text/event-stream' })
          for (const name of PROTOCOL_FIELDS)
            if (headers[name] !== undefined) fields.set(name, String(headers[name]))
          const request = { headers: fields, body, signal }
          const { status, contentType, text } = await answerMcp(request, listed, (name, args) =>
            runTool(context, name, args),
          )
          if (contentType === null) return new Reply({ kind: 'none' }, { status })
          return bytesReply(Buffer.from(text), contentType, { status })
        },
      }),
    ],
  }
}

/** JSON of callers is not deep (`JSON_DEPTH_MAX`). */
const valuesIn = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? Object.values(value).reduce((sum: number, one) => sum + valuesIn(one), 1)
    : 1

/** Plain arguments, as the audit log keeps parameters. */
function givenOf({ input }: Tool, args: unknown): Record<string, unknown> {
  const entries = Object.keys(input.fields).flatMap((name) => {
    const value = isPlainObject(args) && Object.hasOwn(args, name) ? args[name] : undefined
    if (value === undefined) return []
    if (CONTENT.has(name)) return [[name, '(not recorded)']]
    return [[name, typeof value === 'object' ? keptText(JSON.stringify(value)) : keptText(String(value))]]
  })
  return Object.fromEntries(entries)
}

function apiFor(innerCall: InnerCalls, context: Context<never, Caller>): Api {
  async function call(
    method: string,
    path: string,
    body?: { json: unknown } | { form: Query },
    once?: string,
  ): Promise<Item> {
    const sent = body === undefined ? {} : 'json' in body ? { json: body.json } : { form: pairsOf(body.form) }
    const asked = { method, url: path, ...sent, ...(once !== undefined && { idempotencyKey: once }) }
    const { status, text, isCut, isReplayed } = await innerCall(context, asked, ANSWER_BYTES_MAX)
    if (isReplayed) throw new Refused('This confirmation has been used: begin with a dry run', 409)
    if (isCut) throw new Refused('The answer is too large: ask for less', 413)
    const answer = jsonObject(text)
    if (status >= 400)
      throw new Refused(String(answer?.['message'] ?? `The service answered ${status}`), status)
    if (answer === null) throw new Refused('The answer is no JSON object', 406)
    return answer
  }
  return {
    call,
    read(path, query = {}) {
      const pairs = new URLSearchParams(pairsOf(query))
      return call('GET', pairs.size > 0 ? `${path}?${pairs}` : path)
    },
  }
}

const pairsOf = (query: Query): [string, string][] =>
  Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one): [string, string] => [name, String(one)]),
  )
