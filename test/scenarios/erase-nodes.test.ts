// By name: it starts four processes of the service.
/** A person is erased by one of two nodes: both lose what they have of the person's files. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { call, type TestNode, testNodes } from '../support/nodes.ts'
import { startS3 } from '../support/s3-server.ts'
import { eventually } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const PERSON = 'erased.person@example.org'
const PHRASE = 'PlantedPhrase'
/** Larger than what is kept in a row. */
const TEXT = `Dear ${PHRASE}. ${'x'.repeat(700_000)}`

/** Sends the person a large mail by each of two nodes, and one to others; erases: no file is left that names the person. */
async function erasedOnTwo(t: TestContext, env: Record<string, string>, shared: readonly string[]) {
  const nodes = await testNodes(t, { SENDWRIGHT_SANDBOX_RECIPIENTS: '*', ...env })
  const folders = [await temporaryFolder(t), await temporaryFolder(t)]
  const one = await nodes.start({ SENDWRIGHT_DATA: folders[0] as string })
  const two = await nodes.start({ SENDWRIGHT_DATA: folders[1] as string })
  const send = (node: TestNode, to: string, text: string) =>
    call(node, 'POST', `/v3/${one.domain}/messages`, { from: `a@${one.domain}`, to, subject: 'Hi', text })
  for (const node of [one, two]) await send(node, PERSON, TEXT)
  await send(two, 'other@example.org', `OtherPhrase ${TEXT.replace(PHRASE, '')}`)
  await eventually('all deliveries', async () => {
    const rows = await nodes.query("SELECT 1 FROM deliveries WHERE state IN ('queued', 'sending')")
    return rows.length === 0
  })
  const holding = async (phrase: string) => {
    const found: string[] = []
    for (const folder of [...folders, ...shared])
      for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name)
        if (entry.isFile() && (await readFile(path)).includes(phrase)) found.push(path)
      }
    return found
  }
  assert.ok((await holding(PHRASE)).length >= 2, 'both mails have files')
  const started = await call(two, 'POST', '/sendwright/v1/people/erase', {
    address: PERSON,
    dry_run: 'false',
  })
  const { id } = started['task'] as { id: string }
  const path = `/sendwright/v1/people/tasks/${id}`
  await eventually('the end', async () => {
    const task = await call(one, 'GET', path)
    assert.notEqual(task['state'], 'failed', String(task['error']))
    return task['state'] === 'done'
  })
  assert.ok((await holding('OtherPhrase')).length > 0, 'files of others are there')
  const rows = await nodes.query('SELECT count(*) AS n FROM messages')
  assert.equal(Number(rows[0]?.['n']), 1)
  // The other node looks once a minute.
  const until = Date.now() + 90_000
  let traces = await holding(PHRASE)
  while (traces.length > 0 && Date.now() < until) {
    await sleep(500)
    traces = await holding(PHRASE)
  }
  assert.deepEqual(traces, [])
}

test('two nodes with a shared blob store: neither it nor a copy of a node has a file of the person', async (t) => {
  const s3 = await startS3(t)
  await erasedOnTwo(t, s3.env, [s3.folder])
})

test('two nodes with disks of their own: each removes what it has', async (t) => {
  await erasedOnTwo(t, {}, [])
})
