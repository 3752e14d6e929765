// By name: it kills processes of the service, again and again.
/** kill -9 around the mail that asks a member, and around the answer: nothing is sent twice, and no answer is without its trail. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const MEMBERS = 12

async function call(service: ServiceProcess, path: string, form?: Record<string, string>, method = 'POST') {
  const answer = await fetch(service.url + path, {
    method: form ? method : 'GET',
    headers: { authorization: AUTHORIZATION },
    ...(form && { body: new URLSearchParams(form) }),
  })
  assert.equal(answer.status, 200, path)
  // biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely
  return answer.json() as Promise<any>
}

test('kill -9 after the commit of a mail, and among many answers', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_DNS: '127.0.0.1:9',
    SENDWRIGHT_RATE_LIMIT: 'off',
  }
  const start = async (more: Record<string, string> = {}) => {
    const started = await startProcess(host, { ...env, ...more })
    t.after(() => started.end('SIGKILL'))
    return started
  }
  let service = await start({ SENDWRIGHT_TEST_FAIL_POINT: 'accept-after-commit:3' })
  const list = `all@${service.domain}`
  const path = `/v3/lists/${list}/members`
  await call(service, '/v3/lists', { address: list })
  await call(service, `/sendwright/v1/lists/${list}/consent`, { confirm: 'yes' }, 'PUT')
  const readers = Array.from({ length: MEMBERS }, (_, n) => `reader${n}@example.org`)
  const death = once(service.child, 'exit')
  // The answer may be lost with the process.
  await call(service, `${path}.json`, { members: JSON.stringify(readers) }).catch(() => {})
  await death
  service = await start()
  const allMails = async () => new Set(sink.messages.flatMap(({ envelope }) => envelope.to)).size === MEMBERS
  // The dead process had the lease of the job, for up to a minute.
  await eventually('all mails', allMails).catch(() => eventually('all mails', allMails))
  const paths = new Set(sink.messages.map(({ envelope }) => envelope.from))
  assert.equal(paths.size, MEMBERS, 'each member has one delivery, which a crash may repeat')

  const links = new Map(
    sink.messages.map(({ envelope, raw }) => [
      envelope.to[0] as string,
      /http:\/\/\S+\/confirm\/[\w-]+/.exec(raw.toString().replaceAll('=\r\n', ''))?.[0] as string,
    ]),
  )
  const confirm = (reader: string) =>
    fetch(links.get(reader) as string, { method: 'POST', body: new URLSearchParams({ action: 'confirm' }) })
      .then(({ status }) => status)
      .catch(() => null)
  const answers = readers.map((reader) => confirm(reader))
  // Somewhere among the others.
  await answers[0]
  await service.end('SIGKILL')
  const statuses = await Promise.all(answers)
  service = await start()
  for (const [n, reader] of readers.entries()) {
    const { member } = await call(service, `${path}/${reader}`)
    const { items } = await call(service, `/sendwright/v1/people/${reader}/consent`)
    const actions = items.map(({ action }: { action: string }) => action)
    assert.deepEqual(actions, member.subscribed ? ['confirmed', 'pending'] : ['pending'], reader)
    if (statuses[n] === 200) assert.equal(member.subscribed, true, 'what was answered is kept')
    assert.equal(await confirm(reader), member.subscribed ? 404 : 200)
  }
})
