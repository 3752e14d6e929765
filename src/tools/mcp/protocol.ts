/**
 * The Model Context Protocol over HTTP requests, by the official library (decision 210). It is loaded with the first call:
 * a service that no assistant uses does not have it in memory. There are no sessions: each request is answered by a server
 * of its own, and nothing is kept between two.
 */
import {
  type CallToolResult,
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from '@modelcontextprotocol/server'
import { VERSION } from '../../base/process/version.ts'
import { listGuides, readGuide } from './guides.ts'
import { PREFACE, presented } from './presented.ts'
import { Refused, type Tool } from './tool.ts'

const INSTRUCTIONS = `Tasks for running this mail service: begin with why_not_delivered, domain_health, deliverability or queue_overview. describe_operation and call_operation reach what no task covers. ${PREFACE}`
/** Lists of tools and guides change with the version only. */
const CACHED_MS = 300_000

export interface McpRequest {
  headers: Headers
  /** Parsed; undefined: there was none. */
  body: unknown
  signal: AbortSignal
}

export interface McpAnswer {
  status: number
  contentType: string | null
  text: string
}

/** Carries out a tool, with what it costs: limits and the audit log. @throws Refused */
export type RunTool = (name: string, args: unknown) => Promise<unknown>

/** Answers one POST. @param tools those that are listed */
export async function answerMcp(
  { headers, body, signal }: McpRequest,
  tools: readonly Tool[],
  run: RunTool,
): Promise<McpAnswer> {
  const handler = createMcpHandler(() => serverFor(tools, run), {
    // They would never end.
    maxSubscriptions: 0,
    keepAliveMs: 0,
  })
  const request = new Request('http://localhost/mcp', { method: 'POST', headers, signal })
  try {
    const response = await handler.fetch(request, { parsedBody: body ?? null })
    const contentType = response.headers.get('content-type')
    return { status: response.status, contentType, text: await response.text() }
  } finally {
    await handler.close()
  }
}

function serverFor(tools: readonly Tool[], run: RunTool): Server {
  const server = new Server(
    { name: 'sendwright', title: 'Sendwright', version: VERSION },
    {
      capabilities: { tools: {}, resources: {} },
      instructions: INSTRUCTIONS,
      cacheHints: {
        'tools/list': { ttlMs: CACHED_MS, cacheScope: 'private' },
        'resources/list': { ttlMs: CACHED_MS, cacheScope: 'private' },
      },
    },
  )
  server.setRequestHandler('tools/list', async () => ({ tools: tools.map(described) }))
  server.setRequestHandler('tools/call', ({ params: { name, arguments: args = {} } }) =>
    called(run, name, args),
  )
  server.setRequestHandler('resources/list', async () => ({
    resources: (await listGuides()).map(({ name, uri }) => ({ name, uri, mimeType: 'text/markdown' })),
  }))
  server.setRequestHandler('resources/templates/list', async () => ({ resourceTemplates: [] }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    try {
      return { contents: [{ uri, mimeType: 'text/markdown', text: await readGuide(uri) }] }
    } catch (error) {
      if (error instanceof Refused) throw new ProtocolError(ProtocolErrorCode.InvalidParams, error.message)
      throw error
    }
  })
  return server
}

const described = ({ name, title, description, input, writes, asksOthers }: Tool) => ({
  ...{ name, title, description },
  inputSchema: { ...input.schema, type: 'object' as const, additionalProperties: false },
  annotations: {
    title,
    readOnlyHint: writes === null,
    destructiveHint: writes?.destroys === true,
    idempotentHint: writes === null,
    openWorldHint: asksOthers,
  },
})

async function called(run: RunTool, name: string, args: unknown): Promise<CallToolResult> {
  try {
    const result = presented(await run(name, args))
    return {
      content: [{ type: 'text', text: `${PREFACE}\n${JSON.stringify(result)}` }],
      structuredContent: result,
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    const refused = presented({ refused: error.message, status: error.status })
    return { isError: true, content: [{ type: 'text', text: JSON.stringify(refused) }] }
  }
}
