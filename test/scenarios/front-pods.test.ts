// Slow: it makes two pods with a hundred tables each.
/** A front before two real pods: what the pods enter into their directory is what the front looks for. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { basic, testFront } from '../support/front.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { eventually, startTestService } from '../support/service.ts'
import { openDialogue, plainLogin } from '../support/smtp-dialogue.ts'

const PASSWORD = 'long enough'
const SECRET = 'secret-of-all-processes-0123456789'

const startPod = (t: TestContext, url: string, name: string) =>
  startTestService(t, {
    ...{ SENDWRIGHT_DATABASE_URL: url, SENDWRIGHT_POD: name, SENDWRIGHT_SECRET: SECRET },
    ...{ SENDWRIGHT_API_KEY: `key-of-pod-${name}-0123456789`, SENDWRIGHT_SMTP_PORT: '0' },
    ...{ SENDWRIGHT_HTTP_PROXY_PROTOCOL: '127.0.0.1', SENDWRIGHT_SMTP_PROXY_PROTOCOL: '127.0.0.1' },
  })

test('a front finds keys, sessions, links, logins and recipients of pods that it reads of in PostgreSQL', async (t) => {
  const { url, drop } = await createTestDatabase()
  t.after(drop)
  const pods = [await startPod(t, url, 'a'), await startPod(t, url, 'b')]
  const front = await testFront(t, undefined, { SENDWRIGHT_DATABASE_URL: url, SENDWRIGHT_SECRET: SECRET })
  for (const [at, { domain, config }] of pods.entries()) {
    const headers = { authorization: basic(config.apiKey ?? '') }
    const domains = await eventually('the pod has a node', async () => {
      const answer = await fetch(`${front.url}/v4/domains`, { headers })
      return answer.ok && ((await answer.json()) as { items: { name: string }[] }).items
    })
    assert.deepEqual(
      domains.map(({ name }) => name),
      [domain],
    )
    const signedIn = await fetch(`${front.url}/sendwright/v1/session`, {
      method: 'POST',
      body: new URLSearchParams({ key: config.apiKey ?? '' }),
    })
    const [cookie = ''] = signedIn.headers.getSetCookie()
    assert.match(cookie, new RegExp(`^sendwright_session=${'ab'[at]}\\.`))
    const session = await fetch(`${front.url}/sendwright/v1/session`, {
      headers: { cookie: cookie.replace(/;.*/, ''), host: '127.0.0.1' },
    })
    assert.equal(session.status, 200, await session.text())
    const linked = await fetch(`${front.url}/sendwright/v1/login-links`, { method: 'POST', headers })
    const link = new URL(((await linked.json()) as { url: string }).url)
    assert.match(link.pathname, new RegExp(`^/login/${'ab'[at]}\\.`))
    const redeemed = await fetch(front.url + link.pathname, { redirect: 'manual' })
    assert.match(redeemed.headers.getSetCookie()[0] ?? '', new RegExp(`^sendwright_session=${'ab'[at]}\\.`))
    const made = await fetch(`${front.url}/v3/domains/${domain}/credentials`, {
      ...{ method: 'POST', headers, body: new URLSearchParams({ login: 'app', password: PASSWORD }) },
    })
    assert.equal(made.status, 200, await made.text())
    const dialogue = await openDialogue(t, { host: front.host, port: front.front.smtp.port })
    await dialogue.reply()
    await dialogue.say('EHLO client.example')
    await dialogue.say('MAIL FROM:<a@sender.example>')
    assert.match((await dialogue.say(`RCPT TO:<postmaster@${domain}>`)) ?? '', /^(?:250|550 5\.1\.1) /)
    await dialogue.say('RSET')
    await dialogue.say('STARTTLS')
    await dialogue.secure()
    await dialogue.say('EHLO client.example')
    assert.match((await dialogue.say(`AUTH PLAIN ${plainLogin(`app@${domain}`, PASSWORD)}`)) ?? '', /^235 /)
    dialogue.destroy()
  }
})
