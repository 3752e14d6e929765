/** An official client makes its calls to a service; with recording, requests and responses become a file for the tests. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ownAddress, TEST_KEY } from '../../support/service.ts'
import { AUTHORIZATION, startProcess } from '../../support/service-process.ts'
import type { Exchange, Exchanges } from './exchange.ts'
import { LIBRARIES, type Library } from './libraries.ts'
import { startRecordingProxy } from './recording-proxy.ts'
import { CREATED_DOMAIN, recordedFile, SETTINGS, startDns, startSink } from './scene.ts'

/** @throws Error when the client fails a call or finds something else than it expects */
export async function runLibrary(name: string, record: boolean): Promise<void> {
  const library = LIBRARIES[name] as Library
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-interop-'))
  const [sink, dns] = await Promise.all([startSink(), startDns()])
  const host = ownAddress()
  const proxy = await startRecordingProxy(`http://${host}:8080`)
  const service = await startProcess(host, {
    ...SETTINGS,
    SENDWRIGHT_DATA: join(folder, 'data'),
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_PUBLIC_URL: proxy.url,
  })
  try {
    const { domain } = service
    const args = [proxy.url, TEST_KEY, domain, CREATED_DOMAIN]
    const { versions, calls } = await makeCalls(library, args, () => proxy.exchanges.length).catch(
      (error) => {
        throw new Error(`the last request was ${JSON.stringify(proxy.exchanges.at(-1))}`, { cause: error })
      },
    )
    assert.deepEqual([...proxy.authorizations], [AUTHORIZATION])
    const exchanges = proxy.exchanges.map((exchange, at) => ({
      call: calls.findLast(({ from }) => from <= at)?.name ?? '',
      ...exchange,
    }))
    const names = new Set(calls.map((call) => call.name))
    console.log(`${name}: ${names.size} calls, ${exchanges.length} requests, ${JSON.stringify(versions)}`)
    const recordedAt = new Date().toISOString()
    const recorded: Exchanges = {
      versions,
      recordedAt,
      domain,
      url: proxy.url,
      exchanges: lastOfEach(exchanges),
    }
    if (record) await writeFile(recordedFile(name), `${JSON.stringify(recorded, null, 1)}\n`)
  } finally {
    await service.end('SIGTERM')
    await Promise.all([proxy.close(), sink.close(), dns.close()])
    await rm(folder, { recursive: true, force: true })
  }
}

interface Made {
  versions: Record<string, string>
  /** `from`: number of requests before the call. */
  calls: { name: string; from: number }[]
}

async function makeCalls(
  { command }: Library,
  args: readonly string[],
  requests: () => number,
): Promise<Made> {
  const [program = '', ...first] = command
  const child = spawn(program, [...first, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const made: Made = { versions: {}, calls: [] }
  for await (const line of createInterface({ input: child.stdout })) {
    const { call, versions } = JSON.parse(line) as { call?: string; versions?: Made['versions'] }
    if (versions) made.versions = versions
    if (call === undefined) continue
    made.calls.push({ name: call, from: requests() })
    child.stdin.write('\n') // the call may begin
  }
  const code = await ended
  assert.equal(code, 0, `${program} ended with ${code} in ${made.calls.at(-1)?.name}`)
  return made
}

/** A call that waits for something asks again and again: the last time is kept. */
function lastOfEach(exchanges: readonly Exchange[]): Exchange[] {
  const same = (one: Exchange, other: Exchange | undefined) =>
    other !== undefined &&
    ['call', 'method', 'path', 'body'].every(
      (name) => one[name as keyof Exchange] === other[name as keyof Exchange],
    )
  return exchanges.filter((exchange, at) => !same(exchange, exchanges[at + 1]))
}
