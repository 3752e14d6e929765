import assert from 'node:assert/strict'
import { test } from 'node:test'
import { selfSigned } from '../../../test/support/certificates.ts'
import { createSink, type SinkOptions } from '../../../test/support/smtp-sink.ts'
import { readConfig } from '../../platform/config/config.ts'
import { relayFault } from './relay-fault.ts'

const tls = selfSigned(['localhost'])
const auth = { user: 'shop', password: 'secret' }

for (const [what, options, url, fault] of [
  ['without TLS on this machine', { auth }, 'smtp://shop:secret@127.0.0.1', null],
  ['a refused login', { auth }, 'smtp://shop:wrong@127.0.0.1', /535/],
  ['STARTTLS', { tls, auth }, 'smtp://shop:secret@127.0.0.1/?tls=unverified', null],
  ['a certificate that does not verify', { tls, auth }, 'smtp://shop:secret@127.0.0.1', /certificate/],
  ['TLS from the first byte', { tls: { ...tls, implicit: true } }, 'smtps://127.0.0.1', null],
  [
    'a login within it',
    { tls: { ...tls, implicit: true }, auth },
    'smtps://shop:secret@127.0.0.1/?tls=unverified',
    null,
  ],
] satisfies [string, SinkOptions, string, RegExp | null][])
  test(`the relay of a setting is tried: ${what}`, async (t) => {
    const sink = await createSink(options)
    t.after(() => sink.close())
    const SENDWRIGHT_DELIVERY = url.replace('127.0.0.1', `${sink.host}:${sink.port}`)
    const { delivery } = readConfig({ SENDWRIGHT_DELIVERY })
    const found = await relayFault(delivery, 'mail.example')
    if (fault === null) assert.equal(found, null)
    else assert.match(found ?? '', fault)
    assert.equal(sink.messages.length, 0)
  })
