/**
 * Short texts of strangers that took seconds to read: header fields, the first line of a mail, commands, and the texts that
 * other servers answer with. The main thread never works on one of them for long.
 */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parseStsPolicy } from '../../src/protocols/mta-sts/policy.ts'
import { longestBlock } from '../support/block-probe.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { Dialogue } from '../support/smtp-dialogue.ts'
import { temporaryFolder } from '../support/stores.ts'

const BLOCK_MAX_MS = 200
/** Below the limit of a header. */
const LENGTH = 900_000

const filled = (unit: string) => unit.repeat(Math.floor(LENGTH / unit.length))

/** The beginning of a mail, up to its From field. */
const BEGINNINGS: Record<string, string> = {
  'blanks before a colon': `Subject${filled('\t')}: s\r\n`,
  'blanks within a name': `X-A: b\r\nSubject${filled(' ')}x: s\r\n`,
  'a first line that is no field': `Subject${filled('\t')}x: s\r\n`,
  'a first line of an mbox': `From a@example.org ${filled('\t')}x: s\r\n`,
  'Received of brackets': `Received: ${filled('[a ')}\r\n`,
  'Received of words': `Received: ${filled('a b')}\r\n`,
  'Received of many brackets': `Received: ${'[a '.repeat(600)}\r\n`.repeat(400),
  'a signature of blanks': `DKIM-Signature: v=1; a=rsa-sha256; d=a.example; s=s; h=from; bh=x; b=${filled('\t')}x\r\n`,
  'folded signatures':
    `ARC-Seal: i=1; cv=none; a=rsa-sha256; d=a.example; s=s; b=${'\r\n '.repeat(2_000)}x\r\n`.repeat(30),
  'an author of groups': `From: ${filled('a:')}\r\n`,
  'an author of dots': `From: ${filled('a.')}@example.org\r\n`,
}

/** Longest that a line may be: 512 bytes. */
const COMMANDS = [
  `MAIL FROM:<> ${' '.repeat(230)}<${' '.repeat(230)}<\\""x>`,
  `MAIL FROM:<>${' '.repeat(480)}x`,
  `MAIL FROM:<${'"\\"" '.repeat(90)}`,
  `MAIL FROM:<a@example.org> ${'A='.repeat(230)}`,
]
/** The service ends a connection after some malformed commands. */
const CONNECTIONS = 20

async function start(t: TestContext) {
  const folder = await temporaryFolder(t)
  const probe = join(folder, 'probe.json')
  const host = ownAddress()
  const service = await startProcess(host, { SENDWRIGHT_DATA: join(folder, 'data') }, { probe })
  t.after(() => service.end('SIGKILL'))
  const { url, domain, child } = service
  const open = async () => {
    const client = await Dialogue.open({ host, port: 2525 })
    t.after(() => client.destroy())
    await client.reply()
    await client.say('EHLO client.example')
    return client
  }
  return {
    url,
    domain,
    open,
    async give(content: string) {
      const client = await open()
      await client.say('MAIL FROM:<stranger@example.org>')
      assert.match((await client.say(`RCPT TO:<in@${domain}>`)) ?? '', /^250/)
      await client.say('DATA')
      client.write(`${content}From: a@example.org\r\n\r\nHello\r\n.\r\n`)
      const reply = await client.reply()
      client.destroy()
      return reply
    },
    async measured(what: string, run: () => Promise<void>) {
      const longestMs = await longestBlock({ pid: child.pid as number, probe }, BLOCK_MAX_MS, run)
      t.diagnostic(`${what}: ${Math.round(longestMs)} ms`)
      assert.ok(longestMs < BLOCK_MAX_MS, `${what}: the main thread was busy for ${Math.round(longestMs)} ms`)
    },
  }
}

test('no header of a received mail takes the main thread for long', async (t) => {
  const { url, give, measured } = await start(t)
  const body = new URLSearchParams({ expression: 'catch_all()', action: 'store()' })
  const headers = { authorization: AUTHORIZATION }
  assert.equal((await fetch(`${url}/v3/routes`, { method: 'POST', headers, body })).status, 200)
  // Loading the check of signatures is not measured.
  assert.match((await give('')) ?? '', /^250/)
  for (const [what, content] of Object.entries(BEGINNINGS))
    await measured(what, async () => assert.match((await give(content)) ?? '', /^(250|554) /, what))
})

test('no line of a client that has not logged in takes the main thread for long', async (t) => {
  const { open, measured } = await start(t)
  for (const command of COMMANDS)
    await measured(command.slice(0, 20), async () => {
      for (let count = 0; count < CONNECTIONS; count++) {
        const client = await open()
        client.write(`${command}\r\n`.repeat(10))
        assert.match((await client.reply()) ?? '', /^[45]\d\d/)
        client.destroy()
      }
    })
})

test('no MTA-STS policy takes the main thread for long', () => {
  for (const line of [
    `mx:${' '.repeat(60_000)}y\rx`,
    `mx: a${' '.repeat(60_000)}x`,
    `${'m'.repeat(60_000)}`,
    `${' '.repeat(60_000)}:`,
  ]) {
    const before = process.threadCpuUsage()
    const policy = parseStsPolicy(`version: STSv1\nmode: none\nmax_age: 1\n${line}\n`)
    const { user } = process.threadCpuUsage(before)
    assert.ok(!('invalid' in policy))
    assert.ok(user < BLOCK_MAX_MS * 1_000, `${JSON.stringify(line.slice(0, 10))}: ${user / 1_000} ms`)
  }
})
