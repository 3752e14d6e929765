/** Plants a person, their address and a phrase about them, in everything that the service can fill. */
import assert from 'node:assert/strict'
import type { Core } from '../../src/core.ts'
import { insert } from '../../src/platform/store/store.ts'
import { addRows, rowsFor } from './account-rows.ts'
import { type CallOptions, eventually, type TestService } from './service.ts'

export const PERSON = 'planted.person@example.org'
export const PHRASE = 'PlantedPhrase'
/** How clients write it. */
const WRITTEN = 'Planted.Person@EXAMPLE.org'
const OTHER = 'other@example.org'
const SHARED_QUERY = {
  ...{ duration: '1d', resolution: 'day', dimensions: ['time'], metrics: ['accepted_count'] },
  filter: { AND: [{ attribute: 'tag', comparator: '=', values: [{ value: PERSON }] }] },
}
const SCRIPT = '<script>alert(1)</script>'
/** Larger than what is kept in a row. */
const LARGE = 300_000

type Fields = NonNullable<CallOptions['form']>

/** `domain`: of the first account, with tracking; `hook`: a URL that fails. */
export async function plantPerson(
  service: TestService,
  core: Core,
  { domain, domainId, hook }: { domain: string; domainId: string; hook: string },
): Promise<void> {
  const call = async (method: string, path: string, options: CallOptions = {}) => {
    const answer = await service.call(method, path, options)
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.body
  }
  const form = (method: string, path: string, fields: Fields) => call(method, path, { form: fields })
  const send = (fields: Fields) =>
    form('POST', `/v3/${domain}/messages`, {
      ...{
        from: `shop@${domain}`,
        to: WRITTEN,
        subject: `Hello ${PHRASE} ${SCRIPT}`,
        text: `Dear ${PHRASE}`,
      },
      ...fields,
    })
  const events = async (query: string) => (await call('GET', `/v3/${domain}/events?${query}`)).items
  const fault = (reply: string) => [{ recipient: PERSON, stage: 'rcpt', reply }]

  // Refused, for dialogues, failures and bounces.
  await call('PUT', '/sendwright/v1/inbox/faults', { json: fault(`550 5.1.1 <${PERSON}> unknown`) })
  await send({})
  await eventually('a refusal', async () => (await events(`event=failed&recipient=${PERSON}`)).length > 0)
  await call('PUT', '/sendwright/v1/inbox/faults', { json: [] })
  await call('DELETE', `/v3/${domain}/bounces/${PERSON}`)

  const link = `https://example.org/?to=planted.person%40example.org&q=${'y'.repeat(1_500)}`
  const html = `<p>${PHRASE} ${PERSON} <a href="${link}">x</a></p>`
  await send({
    ...{ html, 'o:tag': PERSON, 'v:about': PHRASE, 'o:archive-to': `${hook}/archive` },
    to: `"${PHRASE}" <${WRITTEN}>`,
  })
  await send({
    attachment: new File([`${PHRASE}${'x'.repeat(LARGE)}`], 'a.txt'),
    html: 'z'.repeat(2 * LARGE),
  })
  await send({
    to: [PERSON, OTHER],
    cc: `Planted Person <${PERSON}>`,
    subject: 'Shared',
    text: `of ${PERSON}.`,
  })
  const file = new File([`${'x'.repeat(LARGE)} ${PERSON}`], 'a.txt', { type: 'text/plain' })
  await send({ to: [PERSON, OTHER], subject: 'Shared', text: 'a file', attachment: file })
  const variables = JSON.stringify({ [PERSON]: { name: PHRASE }, [OTHER]: { name: 'O' } })
  await send({
    ...{ to: [PERSON, OTHER], subject: 'Batch', text: 'Hi %recipient.name%', html: 'Hi' },
    'recipient-variables': variables,
  })
  await send({ to: OTHER, subject: 'About', text: `Ask ${PERSON} about it.`, 'o:tag': `of:${PERSON}` })
  const base64 = (
    Buffer.from(`Dear ${PERSON}, and others\r\n`)
      .toString('base64')
      .match(/.{1,20}/g) ?? []
  ).join('\r\n')
  const mime = [
    ...[
      `From: shop@${domain}`,
      `To: =?utf-8?q?Planted?= <${PERSON}>, ${OTHER}`,
      'Subject: Shared',
      'MIME-Version: 1.0',
    ],
    ...['Content-Type: text/plain', 'Content-Transfer-Encoding: base64', '', base64, ''],
  ].join('\r\n')
  await form('POST', `/v3/${domain}/messages.mime`, {
    to: [PERSON, OTHER],
    message: new File([mime], 'm.eml'),
  })
  await send({ subject: PHRASE, 'o:deliverytime': new Date(Date.now() + 3_600_000).toUTCString() })

  const path = `/v3/lists/news@${domain}`
  await form('POST', `${path}/members`, {
    address: WRITTEN,
    name: PHRASE,
    vars: JSON.stringify({ a: PHRASE }),
  })
  await form('POST', `${path}/members.json`, {
    members: JSON.stringify([{ address: PERSON, name: PHRASE, vars: {} }]),
    upsert: 'yes',
  })
  await send({ to: `news@${domain}`, subject: 'News', text: 'To all.' })
  await eventually('the post', async () => {
    const found = await events(`event=delivered&recipient=${PERSON}`)
    return found.some(
      (event: { message: { headers: { subject: string } } }) => event.message.headers.subject === 'News',
    )
  })
  await form('POST', `/v4/address/validate/bulk/of-person`, { file: new File([`${PERSON}\n`], 'a.csv') })
  const placed = { from: `a@${domain}`, subject: `About ${PERSON}`, html: 'Hi.' }
  await call('POST', '/v4/inbox/tests', { json: placed })
  await form('POST', '/v5/sandbox/auth_recipients', { email: PERSON })
  const headers = { 'idempotency-key': 'planted' }
  await call('POST', `/v3/${domain}/complaints`, { headers, form: { address: PERSON } })
  await form('POST', `/v3/${domain}/bounces`, { address: WRITTEN, error: `${PHRASE}: ${PERSON}` })
  for (const kind of ['unsubscribes', 'whitelists'])
    await form('POST', `/v3/${domain}/${kind}`, { address: PERSON })
  await form('POST', '/sendwright/v1/spam-traps', { address: PERSON, note: PHRASE })
  await form('POST', '/v3/exports', { url: `/v3/${domain}/bounces` })
  await eventually('an export', async () =>
    (await call('GET', '/v3/exports')).items.every(({ status }: { status: string }) => status === 'complete'),
  )
  await eventually('the end of the validation', async () => {
    const { jobs } = await call('GET', '/v4/address/validate/bulk')
    return jobs.every(({ status }: { status: string }) => status === 'uploaded')
  })
  const title = { title: `Mail to ${PERSON}`, days: 1, query: SHARED_QUERY }
  await call('POST', '/sendwright/v1/shared-figures', { json: title })
  await form('POST', `/v3/${domain}/templates`, {
    ...{ name: 'planted', template: 'Hi {{name}}', tag: 'v1' },
    sample: JSON.stringify({ member: { address: PERSON, name: PHRASE } }),
  })
  await addPassing(core, domain, domainId)
}

/** What others would have to do: passes of retention, servers that ask, work that is cut off. */
async function addPassing(core: Core, domain: string, domainId: string): Promise<void> {
  const accountId = core.firstAccountId
  const rows = rowsFor(accountId, domainId, domain)
  const summary = { to: PERSON, subject: PHRASE, recipients: [PERSON] }
  await addRows(core.store, {
    past_messages: { ...rows.past_messages, summary_json: JSON.stringify(summary) },
    past_deliveries: {
      ...rows.past_deliveries,
      recipient: PERSON,
      recipient_header: `${PHRASE} <${PERSON}>`,
    },
    route_posts: { ...rows.route_posts, recipient: PERSON },
    domain_reports: { ...rows.domain_reports, rows_json: JSON.stringify([{ to: PERSON }]) },
  })
  const uploaded = { address: PERSON, name: PHRASE }
  const blob = await core.blobs.keep((await core.blobs.spool(once(`address\n${PERSON}\n`))).chunk)
  const job = await core.store.db.selectFrom('validation_jobs').selectAll().limit(1).executeTakeFirstOrThrow()
  await core.store.commit([
    insert('validation_probes', { key: `address ${PERSON}`, result: PHRASE, until_at: Date.now() + 1e9 }),
    insert('counted_bounces', {
      ...{ event_id: 'planted', domain_id: domainId, address: PERSON, severity: 'soft' },
      bounced_at: Date.now(),
    }),
    insert('webhook_attempts', {
      ...{
        id: 'planted',
        account_id: accountId,
        domain_name: domain,
        event_id: 'e',
        event_type: 'delivered',
      },
      ...{
        url: 'https://example.org/',
        attempt: 1,
        status: 'ok',
        status_code: 200,
        error: null,
        duration_ms: 1,
      },
      ...{ recipient: WRITTEN, subject: PHRASE },
      ...{ response: `Thanks for ${PERSON}`, next_attempt_at: null, created_at: Date.now() },
    }),
    ...consent(accountId, domain),
    insert('key_requests', {
      ...{ id: 'planted', account_id: accountId, key_id: 'k', method: 'POST', path: '/x', operation: 'x' },
      ...{ form: 'json', given_json: JSON.stringify({ title: PERSON }), status: 400, duration_ms: 1 },
      ...{ message: `${PERSON} is unknown`, remote_address: '127.0.0.1', request_id: 'r', acted_for: null },
      created_at: Date.now(),
    }),
    insert('event_sinks', {
      ...{
        name: 'planted',
        kind: 'stdout',
        settings_json: '{}',
        secret_sealed: null,
        sent: 0,
        sent_at: null,
      },
      ...{
        skipped: 0,
        skipped_from: null,
        skipped_to: null,
        failing_since: null,
        created_at: 1,
        updated_at: 1,
      },
      last_error: `refused: ${PERSON}`,
    }),
    // It has read all events: one that reads or fails would have another error.
    insert('event_followers', {
      name: 'sink:planted',
      tx: Number.MAX_SAFE_INTEGER,
      seq: Number.MAX_SAFE_INTEGER,
    }),
    insert('sandbox_mails', { account_id: accountId, address: PERSON, sent_at: Date.now() }),
    insert('validation_jobs', { ...job, id: 'planted', list_id: 'planted', blob, status: 'uploaded' }),
    insert('list_uploads', {
      ...{
        id: 'planted',
        account_id: accountId,
        list_id: 'gone',
        format: 'json',
        is_upsert: 1,
        is_confirmed: 0,
        subscribed: 1,
      },
      ...{
        entries_json: JSON.stringify([uploaded]),
        done: 1,
        upserted_count: 1,
        failed_count: 0,
        state: 'done',
      },
      ...{ lease_owner: null, lease_until: 0, created_at: Date.now(), updated_at: Date.now() },
    }),
  ])
}

/** Of the person, and of another whose browser names the person. */
function consent(accountId: string, domain: string) {
  const list = { list_id: null, list_address: null, domain_name: domain, topic: PERSON, called_by: null }
  const row = (address_key: string, user_agent: string) =>
    insert('consent_trail', {
      ...{ ...list, account_id: accountId, address_key, id: `planted-${address_key}`, user_agent },
      ...{ action: 'unsubscribed', source: 'one_click', ip: '127.0.0.1', at: 1, expires_at: null },
    })
  return [
    row(PERSON, PHRASE),
    row(OTHER, 'Browser'),
    insert('confirmation_mails', { address_key: PERSON, list_id: 'gone', mailed_at: Date.now() }),
  ]
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}
