/** R3, short: no 200 and no 250 is sent before a successful sync that covers its rows. */
// Slow: it traces the system calls of whole processes.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { post } from '../support/crash-rig.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { openDialogue, plainLogin } from '../support/smtp-dialogue.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'
import { attachStrace, hasStrace } from '../support/strace.ts'

const SENDS = 60
const subjectOf = (number: number) => `marker-${String(number).padStart(5, '0')}`

test('every 200 follows a sync of its rows', async (t) => {
  await proveOrder(t, / (?:write|writev|sendto|sendmsg)\(.*Queued\. Thank you/, async (service) => {
    for (let number = 0; number < SENDS; number++) {
      const answer = await post(service, { to: 'user@example.org', subject: subjectOf(number), text: 'Hi.' })
      assert.ok('id' in answer)
    }
  })
})

test('every 250 to a submission follows a sync of its rows', async (t) => {
  await proveOrder(t, / (?:write|writev|sendto|sendmsg)\(.*250 2\.0\.0 Queued </, async (service) => {
    const credentials = { login: 'strace', password: 'strace-password-0123456789' }
    const made = await fetch(`${service.url}/v3/domains/${service.domain}/credentials`, {
      method: 'POST',
      headers: { authorization: AUTHORIZATION },
      body: new URLSearchParams(credentials),
    })
    assert.equal(made.status, 200, await made.text())
    const client = await openDialogue(t, { host: new URL(service.url).hostname, port: 2525 })
    await client.reply()
    await client.say('EHLO client.example')
    const user = `${credentials.login}@${service.domain}`
    assert.match((await client.say(`AUTH PLAIN ${plainLogin(user, credentials.password)}`)) ?? '', /^235/)
    for (let number = 0; number < SENDS; number++) {
      for (const line of [`MAIL FROM:<${user}>`, 'RCPT TO:<user@example.org>', 'DATA']) {
        assert.match((await client.say(line)) ?? '', /^[23]5/)
      }
      const answer = await client.say(`From: ${user}\r\nSubject: ${subjectOf(number)}\r\n\r\nHi.\r\n.`)
      assert.match(answer ?? '', /^250 2\.0\.0 Queued </)
    }
  })
})

/** Traces a service while `send` gets SENDS responses, one after the other, each to the message with its number. */
async function proveOrder(
  t: TestContext,
  answerPattern: RegExp,
  send: (service: ServiceProcess) => Promise<void>,
): Promise<void> {
  if (!hasStrace()) {
    t.skip('strace is not installed: the order of sync and answer is NOT proven here')
    return
  }
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const folder = await temporaryFolder(t)
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const service = await startProcess(ownAddress(), env, { synced: true })
  t.after(() => service.end('SIGKILL'))
  const log = join(folder, 'strace.log')
  const calls = 'trace=fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg'
  const strace = await attachStrace(service.child.pid as number, ['-e', calls, '-s', '5000', '-o', log])
  await send(service)
  await strace.detach()
  const lines = (await readFile(log, 'latin1')).split('\n')
  const answers = lines.flatMap((line, index) => (answerPattern.test(line) ? [index] : []))
  assert.equal(answers.length, SENDS, 'answers seen')
  const syncs = completedSyncs(lines)
  for (const [number, answeredAt] of answers.entries()) {
    const written = lines.findIndex((line) => / pwrite64\(/.test(line) && line.includes(subjectOf(number)))
    assert.ok(written >= 0 && written < answeredAt, `${subjectOf(number)} was written before its answer`)
    const fd = / pwrite64\((\d+)/.exec(lines[written] as string)?.[1]
    const synced = syncs.some((sync) => sync.fd === fd && sync.begun > written && sync.done < answeredAt)
    assert.ok(synced, `${subjectOf(number)} was synced before its answer`)
  }
}

/** Successful syncs; a call may be split into "unfinished" and "resumed" by those of other threads. */
function completedSyncs(lines: readonly string[]): { fd: string; begun: number; done: number }[] {
  const open = new Map<string, { fd: string; begun: number }>()
  const syncs: { fd: string; begun: number; done: number }[] = []
  for (const [index, line] of lines.entries()) {
    const thread = /^\d+/.exec(line)?.[0] ?? ''
    const whole = / f(?:data)?sync\((\d+)\) += 0/.exec(line)
    if (whole) syncs.push({ fd: whole[1] as string, begun: index, done: index })
    const begun = / f(?:data)?sync\((\d+) <unfinished/.exec(line)
    if (begun) open.set(thread, { fd: begun[1] as string, begun: index })
    const resumed = open.get(thread)
    if (resumed && / f(?:data)?sync resumed>\) += 0/.test(line)) syncs.push({ ...resumed, done: index })
  }
  return syncs
}
