/** Names around other accounts' verified domains: who may claim them, and what an old claim can still do. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { newDomainRow } from '../../src/sending/domains/domain.ts'
import { eachDatabase } from '../support/databases.ts'
import { type Scene, SPF_HOST, startScene } from '../support/identities.ts'
import { eventually } from '../support/service.ts'
import { openDialogue } from '../support/smtp-dialogue.ts'
import { type Call, callAs, SUBACCOUNTS } from '../support/subaccounts.ts'

const TAKEN = 'This domain name is already taken: victim.example belongs to another account'

const claim = (as: Call, name: string, form: Record<string, string> = {}, path = '/v4/domains') =>
  as('POST', path, { form: { name, dkim_key_size: '1024', ...form } })

const change = async (as: Call, name: string, form: Record<string, string>) => {
  const { status, body } = await as('PUT', `/v4/domains/${name}`, { form })
  return status === 200 ? '200' : (body.message as string)
}

/** The host of the return path of one mail from the domain. */
async function returnPathOf({ sink, attacker }: Scene, domain: string): Promise<string> {
  const to = `u${sink.messages.length}@sink.example`
  const form = { from: `a@${domain}`, to, subject: 's', text: 't' }
  const sent = await attacker.call('POST', `/v3/${domain}/messages`, { form })
  assert.equal(sent.status, 200, sent.text)
  const mail = await eventually('the mail', async () =>
    sink.messages.find(({ envelope }) => envelope.to[0] === to),
  )
  return mail.envelope.from.replace(/^.*@/, '')
}

async function replyTo(t: TestContext, { service, internet }: Scene, recipient: string): Promise<string> {
  const client = await openDialogue(t, { host: service.config.smtpHost, port: internet.port })
  await client.reply()
  await client.say('EHLO client.example')
  await client.say('MAIL FROM:<>')
  return (await client.say(`RCPT TO:<${recipient}>`)) ?? 'closed'
}

/** A claim from before such names were refused. */
async function oldClaim({ core, attacker }: Scene, name: string): Promise<void> {
  const row = newDomainRow({
    id: name.replace(/[^a-f]/g, '').padEnd(24, '0'),
    account_id: attacker.id,
    name,
    type: 'custom',
    state: 'unverified',
    created_at: 0,
  })
  await core.store.db.insertInto('domains').values(row).execute()
  core.domains.changed(row)
}

eachDatabase((database) => {
  test("names below a verified domain are its owner's", async (t) => {
    const scene = await startScene(t, database)
    const { service, platform, victim, attacker } = scene
    await scene.verified(victim.call, 'victim.example')
    for (const path of ['/v4/domains', '/v3/domains'])
      for (const name of ['bounce.victim.example', 'email.victim.example', 'a.b.victim.example']) {
        const { status, body } = await claim(attacker.call, name, {}, path)
        assert.deepEqual([status, body.message], [400, TAKEN], name)
      }
    assert.equal((await claim(victim.call, 'own.victim.example')).status, 200)
    assert.equal((await claim(platform, 'ours.victim.example')).status, 200, 'the parent of the owner')
    const granted = await claim(callAs(service, attacker.id), 'tenant.victim.example')
    assert.equal(granted.status, 200, 'the parent of the owner on behalf of another subaccount')
    await scene.verified(platform, 'platform.example')
    assert.equal((await claim(attacker.call, 'x.platform.example')).status, 400)
    assert.equal((await claim(callAs(service, attacker.id), 'x.platform.example')).status, 200)
    // Nobody has proven that one, so that its names are free.
    assert.equal((await claim(victim.call, 'later.example')).status, 200)
    assert.equal((await claim(attacker.call, 'x.later.example')).status, 200)
  })

  test("a claim of a verified domain's parent has no power over it", async (t) => {
    const scene = await startScene(t, database)
    const { victim, attacker } = scene
    await scene.verified(victim.call, 'mg.corp.example')
    const send = (from: string) =>
      victim.call('POST', '/v3/mg.corp.example/messages', {
        form: { from, to: 'b@sink.example', subject: 's', text: 't' },
      })
    assert.equal((await claim(attacker.call, 'corp.example', { web_prefix: 'mg' })).status, 400)
    assert.equal(
      (await claim(attacker.call, 'corp.example', { dkim_host_name: 'x.mg.corp.example' })).status,
      400,
    )
    assert.equal((await claim(attacker.call, 'corp.example')).status, 200)
    assert.equal((await send('ann@corp.example')).status, 200, 'the parent was claimed, not proven')
    assert.equal(
      await change(attacker.call, 'corp.example', { web_prefix: 'mg' }),
      'Cannot use web_prefix "mg": mg.corp.example belongs to another account',
    )
    for (const host of ['mg.corp.example', 'bounce.mg.corp.example'])
      assert.equal(
        await change(attacker.call, 'corp.example', { mailfrom_host: host }),
        `'${host}' is not a valid value for mailfrom_host`,
      )
  })

  test("a return path host is the account's own, and used once its record is found", async (t) => {
    const scene = await startScene(t, database)
    const { victim, attacker, internet, core } = scene
    await scene.verified(victim.call, 'victim.example')
    await scene.verified(attacker.call, 'attacker.example')
    await scene.verified(attacker.call, 'second.example')
    for (const host of ['victim.example', 'bounce.victim.example', 'nobody.example', 'example.com'])
      assert.equal(
        await change(attacker.call, 'attacker.example', { mailfrom_host: host }),
        `'${host}' is not a valid value for mailfrom_host`,
      )
    const deprecated = await attacker.call('PUT', '/v3/domains/attacker.example/mailfrom_host', {
      form: { mailfrom_host: 'bounce.victim.example' },
    })
    assert.equal(deprecated.status, 400)

    const host = 'bounce.attacker.example'
    const verify = (name: string) => attacker.call('PUT', `/v4/domains/${name}/verify`)
    assert.equal(await change(attacker.call, 'second.example', { mailfrom_host: host }), '200')
    assert.equal(await returnPathOf(scene, 'second.example'), 'second.example', 'no record yet')
    internet.dns.set(host, 'TXT', [`v=spf1 include:${SPF_HOST} -all`])
    await verify('second.example')
    assert.equal(await returnPathOf(scene, 'second.example'), host)
    internet.dns.set(host, 'TXT', ['v=spf1 -all'])
    await verify('second.example')
    assert.equal(await returnPathOf(scene, 'second.example'), 'second.example', 'the record is gone')

    // As an old row could have it.
    internet.dns.set('bounce.victim.example', 'TXT', [`v=spf1 include:${SPF_HOST} -all`])
    await core.store.db
      .updateTable('domains')
      .set({ mailfrom_host: 'bounce.victim.example', return_path_valid: 1 })
      .where('name', '=', 'second.example')
      .execute()
    const [row] = await core.store.db
      .selectFrom('domains')
      .selectAll()
      .where('name', '=', 'second.example')
      .execute()
    core.domains.changed(row as { id: string; name: string })
    assert.equal(await returnPathOf(scene, 'second.example'), 'second.example', 'it is another account’s')
  })
})

test('old claims of names below a verified domain take no mail from it', async (t) => {
  const scene = await startScene(t)
  const { service, victim, attacker, internet } = scene
  await scene.verified(victim.call, 'victim.example', { wildcard: 'yes' })
  internet.dns.set('bounce.victim.example', 'TXT', [`v=spf1 include:${SPF_HOST} -all`])
  assert.equal(await change(victim.call, 'victim.example', { mailfrom_host: 'bounce.victim.example' }), '200')
  await scene.verified(attacker.call, 'attacker.example')
  await oldClaim(scene, 'bounce.victim.example')
  await oldClaim(scene, 'in.victim.example')
  const made = await victim.call('POST', '/v3/routes', {
    form: { expression: 'match_recipient(".*@in.victim.example")', action: 'store()' },
  })
  assert.equal(made.status, 200, made.text)
  const disabled = await service.call('POST', `${SUBACCOUNTS}/${attacker.id}/disable`)
  assert.equal(disabled.status, 200, disabled.text)
  assert.match(await replyTo(t, scene, 'fbl@bounce.victim.example'), /^250/)
  assert.match(await replyTo(t, scene, 'ann@in.victim.example'), /^250/)
  assert.match(await replyTo(t, scene, 'fbl@attacker.example'), /^450/)
})

test('names that nobody can own are no domains', async (t) => {
  const scene = await startScene(t)
  for (const [name, why] of [
    ['co.uk', 'is a public suffix'],
    ['a.localhost', 'is reserved'],
    ['mail.invalid', 'is reserved'],
    ['2.0.192.in-addr.arpa', 'is reserved'],
  ]) {
    const { status, body } = await claim(scene.attacker.call, name as string)
    assert.deepEqual([status, body.message], [400, `Invalid domain name: ${name} ${why}`])
  }
  for (const name of ['localhost', '192.0.2.1', '[192.0.2.1]', 'example', '2001:db8::1']) {
    const { status, body } = await claim(scene.attacker.call, name)
    assert.deepEqual([status, body.message], [400, 'Invalid domain name'], name)
  }
  for (const name of ['shop.co.uk', 'shop.github.io'])
    assert.equal((await claim(scene.attacker.call, name)).status, 200, name)
})
