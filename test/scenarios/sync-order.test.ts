/** R3, short: no 200 leaves before a successful sync that covers its rows. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { post } from '../support/crash-rig.ts'
import { ownAddress } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'
import { attachStrace, hasStrace } from '../support/strace.ts'

const SENDS = 60
const subjectOf = (number: number) => `marker-${String(number).padStart(5, '0')}`

test('every 200 follows a sync of its rows', async (t) => {
  if (!hasStrace()) {
    t.skip('strace is not installed: the order of sync and answer is NOT proven here')
    return
  }
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const folder = await temporaryFolder(t)
  const service = await startProcess(ownAddress(), {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
  })
  t.after(() => service.end('SIGKILL'))
  const log = join(folder, 'strace.log')
  const calls = 'trace=fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg'
  const strace = await attachStrace(service.child.pid as number, ['-e', calls, '-s', '5000', '-o', log])
  for (let number = 0; number < SENDS; number++) {
    const answer = await post(service, { to: 'user@example.org', subject: subjectOf(number), text: 'Hi.' })
    assert.ok('id' in answer)
  }
  await strace.detach()
  const lines = (await readFile(log, 'latin1')).split('\n')
  const answers = lines.flatMap((line, index) =>
    / (?:write|writev|sendto|sendmsg)\(.*Queued\. Thank you/.test(line) ? [index] : [],
  )
  assert.equal(answers.length, SENDS, 'answers seen')
  const syncs = completedSyncs(lines)
  for (const [number, answeredAt] of answers.entries()) {
    const written = lines.findIndex((line) => / pwrite64\(/.test(line) && line.includes(subjectOf(number)))
    assert.ok(written >= 0 && written < answeredAt, `${subjectOf(number)} was written before its answer`)
    const fd = / pwrite64\((\d+)/.exec(lines[written] as string)?.[1]
    const synced = syncs.some((sync) => sync.fd === fd && sync.begun > written && sync.done < answeredAt)
    assert.ok(synced, `${subjectOf(number)} was synced before its answer`)
  }
})

/** Syncs that succeeded; a call may be cut into "unfinished" and "resumed" by those of other threads. */
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
