import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createInternet } from '../../../../test/support/internet.ts'
import { startTestService } from '../../../../test/support/service.ts'

/** Domain, its return-path host (null: itself), the MX record there. */
const DOMAINS: readonly [name: string, host: string | null, mx: string | null][] = [
  ['elsewhere.example', null, 'mx.office.example'],
  ['none.example', 'bounce.none.example', null],
  ['here.example', null, 'MXB.service.example'],
  ['apart.example', 'bounce.apart.example', 'mail.test.example'],
]

eachDatabase((database) => {
  test('return-path hosts of verified domains whose mail goes elsewhere are told', async (t) => {
    const internet = await createInternet(t)
    const { dns } = internet
    const env = {
      ...internet.env,
      SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
      SENDWRIGHT_MX_HOSTS: 'mxa.service.example,mxb.service.example',
    }
    const service = await startTestService(t, env, { database })
    dns.set('spf.service.example', 'TXT', ['v=spf1 -all'])
    for (const [name, host, mx] of DOMAINS) {
      const made = await service.call('POST', '/v4/domains', { form: { name, dkim_key_size: '1024' } })
      assert.equal(made.status, 200, made.text)
      if (host !== null) await service.call('PUT', `/v4/domains/${name}`, { form: { mailfrom_host: host } })
      const key = made.body.sending_dns_records[0]
      dns.set(key.name, 'TXT', [key.value])
      dns.set(name, 'TXT', ['v=spf1 include:spf.service.example ~all'])
      if (mx !== null) dns.set(host ?? name, 'MX', [[10, mx]])
      const { body } = await service.call('PUT', `/v4/domains/${name}/verify`)
      assert.equal(body.domain.state, 'active', name)
    }
    // An unverified domain sends nothing that could bounce.
    await service.call('POST', '/v4/domains', { form: { name: 'new.example', dkim_key_size: '1024' } })
    const { body } = await service.call('GET', '/sendwright/v1/system/checks')
    const found = body.items.find(({ name }: { name: string }) => name === 'return-paths')
    assert.equal(found.state, 'warning')
    assert.match(
      found.sentence,
      /^No MX record of elsewhere\.example, bounce\.none\.example leads here.* 10 mxa\.service\.example, or give/,
    )
  })
})
