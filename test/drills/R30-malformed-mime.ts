/**
 * Malformed and extreme messages over SMTP submission; accepted ones are delivered to a sink. Each must get a reply,
 * nothing may crash, and the event loop may never block for long.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import type { DrillReport } from '../../scripts/drill.ts'
import { readConfig } from '../../src/platform/config/config.ts'
import { startService } from '../../src/service.ts'
import { malformedMessages, monstrousMessages } from '../support/malformed-mime.ts'
import { ownAddress, TEST_KEY } from '../support/service.ts'
import { Dialogue, plainLogin } from '../support/smtp-dialogue.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title = 'R30: 2,000 malformed MIME messages and the monsters: no crash, no long block'

const MESSAGES = 2_000
const CONNECTION_MESSAGES = 500
const BLOCK_MAX_MS = 200
const PASSWORD = 'correct-horse'

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink({ host: ownAddress() })
  const host = ownAddress()
  const config = readConfig({
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_API_KEY: TEST_KEY,
    SENDWRIGHT_RATE_LIMIT: 'off',
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
  })
  // In this process, so that its event loop can be measured; the client's work counts too.
  const service = await startService(config, pino({ level: 'silent' }))
  const loop = monitorEventLoopDelay({ resolution: 5 })
  try {
    const domain = service.first.sandboxDomain
    const set = await fetch(`http://${host}:${service.port}/v3/domains/${domain}/credentials/postmaster`, {
      method: 'PUT',
      headers: { authorization: `Basic ${Buffer.from(`api:${TEST_KEY}`).toString('base64')}` },
      body: new URLSearchParams({ password: PASSWORD }),
    })
    assert.equal(set.status, 200)
    const login = plainLogin(`postmaster@${domain}`, PASSWORD)
    const rssBefore = process.memoryUsage().rss
    const codes = new Map<string, number>()
    const mutants = await submitAll(host, login, wired(malformedMessages(MESSAGES, 30)), loop, codes)
    report.figure('longest block, malformed', mutants.blockMs, 'ms')
    const monsters = await submitAll(host, login, wired(monstrousMessages()), loop, codes)
    report.figure('longest block, monsters', monsters.blockMs, 'ms')
    for (const [code, count] of codes) report.figure(`answered ${code}`, count)
    report.figure('RSS growth', Math.round((process.memoryUsage().rss - rssBefore) / 1e6), 'MB')
    assert.deepEqual(
      [...codes.keys()].filter((code) => !/^(?:250|554) /.test(`${code} `)),
      [],
    )
    assert.ok(Math.max(mutants.blockMs, monsters.blockMs) <= BLOCK_MAX_MS, 'the event loop stood still')
  } finally {
    loop.disable()
    await service.stop()
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}

type Loop = ReturnType<typeof monitorEventLoopDelay>

/** Generated before the measurement, because that is not the service's work. */
const wired = (messages: Iterable<Buffer>) =>
  [...messages].map((raw) => Buffer.from(`${raw.toString('latin1').replace(/^\./gm, '..')}.\r\n`, 'latin1'))

async function submitAll(
  host: string,
  login: string,
  wires: readonly Buffer[],
  loop: Loop,
  codes: Map<string, number>,
): Promise<{ blockMs: number }> {
  loop.reset()
  loop.enable()
  for (let from = 0; from < wires.length; from += CONNECTION_MESSAGES) {
    const client = await Dialogue.open({ host, port: 2525 })
    await client.reply()
    await client.say('EHLO drill.example')
    assert.match((await client.say(`AUTH PLAIN ${login}`)) ?? '', /^235/)
    for (const wire of wires.slice(from, from + CONNECTION_MESSAGES)) {
      await client.say('MAIL FROM:<>')
      await client.say('RCPT TO:<alice@example.org>')
      assert.match((await client.say('DATA')) ?? '', /^354/)
      client.write(wire)
      const code = ((await client.reply()) ?? 'closed').slice(0, 3)
      codes.set(code, (codes.get(code) ?? 0) + 1)
    }
    await client.say('QUIT')
    client.destroy()
  }
  // The messages accepted last are still in flight.
  await sleep(3_000)
  loop.disable()
  return { blockMs: Math.round(loop.max / 1e6) }
}
