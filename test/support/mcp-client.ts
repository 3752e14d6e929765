/** The official client of the Model Context Protocol, over both transports, and a scripted assistant. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { commandEnvironment } from './command.ts'
import { MAIN } from './program.ts'
import type { TestService } from './service.ts'
import { temporaryFolder } from './stores.ts'

export const TRANSPORTS = ['http', 'stdio'] as const
type Transport = (typeof TRANSPORTS)[number]

/** Result of a tool; `isError` with the text of the refusal. */
export interface ToolAnswer {
  isError: boolean
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test reaches into results freely and asserts on what it finds
  data: any
}

export interface Assistant {
  client: Client
  call(name: string, args?: Record<string, unknown>): Promise<ToolAnswer>
}

/**
 * @param key of the assistant
 * @param mode `legacy`: the handshake of 2025; `auto`: requests that stand alone where the server knows them
 */
export async function connectAssistant(
  t: TestContext,
  service: TestService,
  transport: Transport,
  key: string,
  mode: 'legacy' | 'auto' = 'legacy',
): Promise<Assistant> {
  const client = new Client({ name: 'scripted', version: '1.0.0' }, { versionNegotiation: { mode } })
  if (transport === 'http') {
    const requestInit = { headers: { authorization: `Bearer ${key}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }))
  } else {
    const keyFile = join(await temporaryFolder(t), 'key')
    writeFileSync(keyFile, key)
    const env = { ...commandEnvironment(), SENDWRIGHT_DATA: service.config.dataFolder } as Record<
      string,
      string
    >
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [MAIN, 'mcp', '--key-file', keyFile],
        env,
      }),
    )
  }
  t.after(() => client.close())
  return {
    client,
    async call(name, args = {}) {
      const result = await client.callTool({ name, arguments: args })
      const [content] = result.content
      const text = content?.type === 'text' ? content.text : ''
      return { isError: result.isError === true, text, data: result.structuredContent }
    },
  }
}

/** A key of the role. */
export async function keyOfRole(service: TestService, role: string): Promise<string> {
  const { body } = await service.call('POST', '/v1/keys', { form: { role } })
  return body.key.secret
}
