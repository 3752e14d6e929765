/**
 * Moving in at full size: `sendwright import` as a process of its own, from a service with 200 domains, 100,000 suppressions,
 * 500 templates and 10,000 list members, behind a server that answers 429 and 503 and cuts connections. The import is killed
 * half way, continues, and is complete; repeated it makes nothing. It has a heap of 64 MB.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import type { Totals } from '../../src/carry/import/journal.ts'
import {
  contentsOf,
  createFaultyProxy,
  type Fault,
  fillSource,
  type SourceSize,
} from '../support/moving-source.ts'
import { ownAddress, TEST_KEY } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'

export const title =
  'import: 200 domains, 100,000 suppressions, 500 templates; killed half way, continued, repeated without doubles'

const SIZE: SourceSize = { domains: 200, suppressions: 100_000, templates: 500, members: 10_000 }
/** For objects that outlive a collection: what an import holds must not grow with its source. */
const HEAP_MB = 64
const LOOK_EVERY_MS = 100
const now = { 'retry-after': '0' }

/** One in 50 requests is refused, one in 97 fails, one in 211 is cut. */
const fault = (count: number): Fault =>
  count % 50 === 7
    ? { status: 429, headers: now }
    : count % 97 === 11
      ? { status: 503, headers: now }
      : count % 211 === 13
        ? 'cut'
        : 'pass'

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const at = (name: string) => join(folder, name)
  const env = { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' }
  const source = await startProcess(ownAddress(), { ...env, SENDWRIGHT_DATA: at('source') })
  const target = await startProcess(ownAddress(), { ...env, SENDWRIGHT_DATA: at('target') })
  const proxy = await createFaultyProxy(source.url, ownAddress(), fault)
  try {
    const filled = await fillSource(async (method, path, body) => {
      const { text, status } = await callTo(source.url, method, path, body)
      assert.equal(status, 200, `${method} ${path}: ${text}`)
    }, SIZE)
    report.note('The source is filled')
    await writeFile(at('key'), TEST_KEY)
    const from = ['mailgun', '--source', proxy.url, '--source-key-file', at('key')]
    const to = ['--service', target.url, '--key-file', at('key'), '--state', at('state'), '--json']
    const started = () => spawnImport([...from, ...to])

    // All calls of the source without faults, for knowing what half of them is.
    const dry = await watched(spawnImport([...from, ...to, '--dry-run']))
    const calls = proxy.count()
    report.figure('dry run', dry.tookMs / 1_000, 's')
    report.figure('calls of the source', calls)

    const killed = started()
    await proxy.reached(calls + Math.floor(calls / 2))
    killed.kill('SIGKILL')
    await once(killed, 'close')
    const resumedAt = proxy.count()
    const rest = await watched(started())
    assert.equal(rest.result.resumed, true)
    report.figure('calls when it was killed', resumedAt - calls)
    report.figure('calls after that', proxy.count() - resumedAt)
    report.figure('continued and finished in', rest.tookMs / 1_000, 's')
    report.figure('CPU time of the continued import', rest.cpuMs / 1_000, 's')
    report.figure('memory of the import, at most', Math.max(rest.memoryMb, dry.memoryMb), 'MB')

    const totals = rest.result.totals
    const taken = Object.values(totals).reduce((sum, { made, existing }) => sum + made + existing, 0)
    report.figure('entries taken', taken)
    assert.equal(
      (await readFile(at('state/report.jsonl'), 'utf8')).trim().split('\n').length,
      1,
      'the sandbox domain',
    )
    const expected = await contentsOf(getFrom(source.url), filled.domains)
    assert.deepEqual(await contentsOf(getFrom(target.url), filled.domains), expected)
    const { total_count: domains } = await getFrom(target.url)('/v4/domains')
    assert.equal(domains, SIZE.domains + 1)

    const again = await watched(started())
    report.figure('repeated in', again.tookMs / 1_000, 's')
    for (const [kind, { made, changed }] of Object.entries(again.result.totals))
      assert.deepEqual([kind, made, changed], [kind, 0, 0])
    assert.deepEqual(await contentsOf(getFrom(target.url), filled.domains), expected)
  } finally {
    await proxy.close()
    await Promise.all([source.end('SIGTERM'), target.end('SIGTERM')])
    await rm(folder, { recursive: true, force: true })
  }
}

type Body = { form: Record<string, string> } | { json: unknown }

async function callTo(url: string, method: string, path: string, body?: Body) {
  const content =
    body === undefined
      ? {}
      : 'form' in body
        ? { body: new URLSearchParams(body.form) }
        : { body: JSON.stringify(body.json), headers: { 'content-type': 'application/json' } }
  const response = await fetch(url + path, {
    method,
    ...content,
    headers: { authorization: AUTHORIZATION, ...('headers' in content && content.headers) },
  })
  return { status: response.status, text: await response.text() }
}

const getFrom = (url: string) => async (path: string) =>
  JSON.parse((await callTo(url, 'GET', path)).text) as Record<string, unknown>

function spawnImport(args: readonly string[]): ChildProcess {
  const main = join(import.meta.dirname, '../../src/main.ts')
  return spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, main, 'import', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

interface Watched {
  result: { resumed?: boolean; totals: Totals }
  tookMs: number
  cpuMs: number
  memoryMb: number
}

/** Waits for its end; the sandbox domain is in the report, so its exit code is 3. */
async function watched(child: ChildProcess): Promise<Watched> {
  const begun = performance.now()
  let out = ''
  child.stdout?.on('data', (bytes: Buffer) => {
    out += bytes.toString()
  })
  let memoryMb = 0
  let cpuMs = 0
  const look = async () => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '')
    memoryMb = Math.max(memoryMb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024)
    const stat = await readFile(`/proc/${child.pid}/stat`, 'utf8').catch(() => '')
    const [user = 0, system = 0] = stat.split(') ')[1]?.split(' ').slice(11, 13).map(Number) ?? []
    // Clock ticks are hundredths of a second on Linux.
    cpuMs = Math.max(cpuMs, (user + system) * 10)
  }
  const timer = setInterval(look, LOOK_EVERY_MS)
  const [code] = (await once(child, 'close')) as [number]
  clearInterval(timer)
  assert.equal(code, 3, out)
  return { result: JSON.parse(out), tookMs: performance.now() - begun, cpuMs, memoryMb }
}
